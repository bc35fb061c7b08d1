"""The slot clock and how times and lengths are written."""

from datetime import datetime

import pytest

from tests.support.streams import DAY, SECOND
from wevent.errors import InvalidSettings
from wevent.settings.values import format_time, parse_length, parse_offset, parse_time
from wevent.streams.clock import SlotClock


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("100min", 6000), ("1h", 3600), ("1d", 86400), ("500ms", 0.5)]
)
def test_slot_lengths(text: str, seconds: float) -> None:
    assert parse_length(text) == seconds * SECOND


@pytest.mark.parametrize("text", ["0s", "", "60", "s", "-5m", "1.5h", "5 parsecs"])
def test_a_length_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        parse_length(text)
    assert caught.value.key == "slot"


def test_slots_start_at_one_and_do_not_overlap() -> None:
    clock = SlotClock(DAY, 60 * SECOND)
    assert [clock.slot_of(DAY + offset) for offset in (-1, 0, 60 * SECOND - 1, 60 * SECOND)] == [0, 1, 1, 2]
    assert clock.start_of(clock.slot_of(DAY + 12_345_678_901)) <= DAY + 12_345_678_901


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00", "2025-12-31 19:00:00-05:00", "2026-01-01T00:00Z"]
)
def test_times_carry_their_offset(text: str) -> None:
    assert parse_time(text, "start") == DAY


def test_a_declared_offset_holds_for_times_without_one() -> None:
    assert parse_time("2026-01-01T02:00:00", "start", parse_offset("+02:00")) == DAY
    assert parse_time("2026-01-01", "start", parse_offset("UTC")) == DAY


@pytest.mark.parametrize("value", ["2026-10-25T02:30:00", "2026-10-25", datetime(2026, 10, 25, 2, 30)])
def test_a_local_time_around_the_end_of_summer_time_is_refused_in_one_sentence(value: object) -> None:
    with pytest.raises(InvalidSettings, match="can mean two moments"):
        parse_time(value, "start")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "CET", "+25:00", "+01:77", "2"])
def test_a_zone_with_summer_time_is_no_offset(zone: str) -> None:
    with pytest.raises(InvalidSettings, match="an hour twice"):
        parse_offset(zone)


def test_times_are_written_in_utc() -> None:
    assert format_time(DAY) == "2026-01-01T00:00:00Z"
