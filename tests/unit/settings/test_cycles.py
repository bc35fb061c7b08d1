"""Cycles and calendars as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from wevent.errors import InvalidSettings
from wevent.settings.values import calendar_slots, parse_cycles, parse_days
from wevent.streams.clock import SlotClock

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
    assert parse_cycles(written, HOUR) == slots


NO_NUMBER = (float("nan"), Decimal("nan"), Decimal("sNaN"))  # `seasonality = nan` in a configuration is a Decimal
NO_CYCLES = ["daily", "1 month", True, None, {}, ["1d", "x"], "-3", "1e3", b"1d", *NO_NUMBER]


@pytest.mark.parametrize("written", NO_CYCLES)
def test_what_is_no_cycle_is_refused_by_name(written: Any) -> None:
    with pytest.raises(InvalidSettings, match="seasonality") as caught:
        parse_cycles(written, HOUR)
    assert caught.value.facts["key"] == "seasonality"
    assert "or a number of slots" in str(caught.value)


def test_a_duration_needs_slots_that_have_a_length() -> None:
    assert parse_cycles("24", None) == (24.0,)
    with pytest.raises(InvalidSettings, match="a number of slots"):
        parse_cycles("1d", None)


@pytest.mark.parametrize("written", [["25.12.2026"], ["2026-02-30"], [datetime(2026, 1, 1)], [7], 7, [None]])
def test_what_is_no_day_is_refused_by_name(written: Any) -> None:
    with pytest.raises(InvalidSettings, match="special_days must be days"):
        parse_days(written)


def test_days_become_slots() -> None:
    clock = SlotClock(0, HOUR)  # 1970-01-01, slot 1 is its first hour
    assert calendar_slots([date(1970, 1, 1)], clock.slot_of, None) == (1, 25)
    assert calendar_slots([date(1970, 1, 3), date(1970, 1, 4), date(1970, 1, 7)], clock.slot_of, 0) == (
        49,
        97,
        145,
        169,
    )
    assert calendar_slots([date(1970, 1, 2)], clock.slot_of, 2 * HOUR) == (23, 47)  # two hours earlier in UTC
    assert calendar_slots([date(1969, 12, 30), date(1969, 12, 31), date(1970, 1, 1)], clock.slot_of, 0) == (1, 25)
    assert calendar_slots([], clock.slot_of, 0) == ()
    assert calendar_slots([date(1969, 12, 30)], clock.slot_of, 0) == ()


def test_a_slot_belongs_to_the_day_in_which_it_starts() -> None:
    clock = SlotClock(0, 7 * HOUR)
    assert calendar_slots([date(1970, 1, 2)], clock.slot_of, None) == (5, 8)  # starts at 28, 35 and 42 hours
    for slot, day in ((4, 21), (5, 28), (7, 42), (8, 49)):
        assert clock.start_of(slot) == day * HOUR


def test_numbers_alone_have_no_days() -> None:
    with pytest.raises(InvalidSettings, match="slots that have times"):
        calendar_slots([date(2026, 1, 1)], None, None)
