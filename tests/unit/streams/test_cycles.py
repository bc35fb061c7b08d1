"""Cycles and calendars as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from wevent.errors import InvalidInput, InvalidSettings
from wevent.streams.clock import SlotClock
from wevent.streams.cycles import calendar_slots, read_cycles, read_days

HOUR, DAY = 3_600_000_000, 86_400_000_000


@pytest.mark.parametrize(
    ("written", "slots"),
    [
        (288, (288.0,)),
        ("288", (288.0,)),
        (14.4, (14.4,)),
        (Decimal("14.4"), (14.4,)),
        ("14.4", (14.4,)),
        ("1d", (24.0,)),
        ("1d, 12h", (24.0, 12.0)),
        (["1d", 100, "24"], (24.0, 100.0)),
        (timedelta(days=1), (24.0,)),
        ("100min", (100 / 60,)),
        ("none", ()),
        ([], ()),
    ],
)
def test_cycles_in_slots(written: Any, slots: tuple[float, ...]) -> None:
    assert read_cycles(written, HOUR) == slots


NO_NUMBER = (float("nan"), Decimal("nan"), Decimal("sNaN"))  # `cycle = nan` in a configuration is a Decimal
NO_CYCLES = ["daily", "1 month", True, None, {}, ["1d", "x"], "-3", "1e3", b"1d", *NO_NUMBER]


@pytest.mark.parametrize("written", NO_CYCLES)
def test_what_is_no_cycle_is_refused_by_name(written: Any) -> None:
    with pytest.raises(InvalidSettings, match="cycle") as caught:
        read_cycles(written, HOUR)
    assert caught.value.facts["key"] == "cycle"
    assert "or a number of slots" in str(caught.value)


def test_a_duration_needs_slots_that_have_a_length() -> None:
    assert read_cycles("24", None) == (24.0,)
    with pytest.raises(InvalidSettings, match="in slots"):
        read_cycles("1d", None)


def test_days_of_a_file_or_a_list(tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    file.write_text("kind,day\nholiday,2026-12-25\nsunday,2026-01-04\nagain,2026-01-04\n")
    days = (date(2026, 1, 4), date(2026, 12, 25))
    assert read_days(file) == read_days(str(file)) == days
    assert read_days(["2026-12-25", date(2026, 1, 4)]) == days
    lines = tmp_path / "days.txt"
    lines.write_text("# closed\n2026-12-25\n\n2026-01-04\n")
    assert read_days(lines) == days
    assert read_days("none") == ()


@pytest.mark.parametrize("written", [["25.12.2026"], ["2026-02-30"], [datetime(2026, 1, 1)], [7], 7, [None]])
def test_what_is_no_day_is_refused_by_name(written: Any) -> None:
    with pytest.raises(InvalidSettings, match="calendar to name days"):
        read_days(written)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not there"):
        read_days(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="is a folder"):
        read_days(tmp_path)


def test_the_first_day_is_never_taken_for_a_heading(tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    for text, said in (
        ("2026-01-03\n2026-01-04\n", "header line missing"),
        ("date\n2026-01-03\n", "'date'. Give the column the heading day"),
        ("day;kind\n2026-01-03;sunday\n", "separated by"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidInput, match="Expected a column day") as caught:
            read_days(file)
        assert said in str(caught.value)


def test_days_become_slots() -> None:
    clock = SlotClock(0, HOUR)  # 1970-01-01, slot 1 is its first hour
    assert calendar_slots([date(1970, 1, 1)], clock, None) == (1, 25)
    assert calendar_slots([date(1970, 1, 3), date(1970, 1, 4), date(1970, 1, 7)], clock, 0) == (49, 97, 145, 169)
    assert calendar_slots([date(1970, 1, 2)], clock, 2 * HOUR) == (23, 47)  # two hours earlier in UTC
    assert calendar_slots([date(1969, 12, 30), date(1969, 12, 31), date(1970, 1, 1)], clock, 0) == (1, 25)
    assert calendar_slots([], clock, 0) == ()
    assert calendar_slots([date(1969, 12, 30)], clock, 0) == ()


def test_a_slot_belongs_to_the_day_in_which_it_starts() -> None:
    clock = SlotClock(0, 7 * HOUR)
    assert calendar_slots([date(1970, 1, 2)], clock, None) == (5, 8)  # starts at 28, 35 and 42 hours
    for slot, day in ((4, 21), (5, 28), (7, 42), (8, 49)):
        assert clock.start_of(slot) == day * HOUR


def test_numbers_alone_have_no_days() -> None:
    with pytest.raises(InvalidSettings, match="slots that have times"):
        calendar_slots([date(2026, 1, 1)], None, None)
