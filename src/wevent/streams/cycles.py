"""Cycles and calendars as people write them, and as a filter takes them: in slots."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from wevent.errors import InvalidSettings
from wevent.streams.clock import SlotClock, parse_length
from wevent.streams.files.requirements_file import read_column

_DAY_US = 86_400_000_000
_1970 = date(1970, 1, 1).toordinal()


def read_cycles(written: Any, slot_us: int | None) -> tuple[int, ...]:
    """The slots of cycles such as 288, "1d", "1d,12h" or ["1d", 100]; "none" is none.

    Args:
        written: one of them, or several.
        slot_us: how long a slot is, None for slots that have numbers and no times.

    Raises:
        InvalidSettings: for what is no cycle, a duration where slots have no length, or one that is no whole number of
            slots: its days would begin at another time every day.
    """
    if written == "none":
        return ()
    parts = written.split(",") if isinstance(written, str) else written
    if not isinstance(parts, (list, tuple)):
        parts = [parts]
    return tuple(dict.fromkeys(_slots(part, slot_us) for part in parts))


def _slots(written: Any, slot_us: int | None) -> int:
    if type(written) is int:
        return written
    text = str(written).strip()
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        return int(text)
    length_us = parse_length(written if not isinstance(written, str) else text, "cycle")
    if slot_us is None:
        raise InvalidSettings(
            "a cycle in slots, for slots that have numbers and no length",
            f"{written!r}",
            "Write the number of slots.",
            key="cycle",
        )
    if length_us % slot_us:
        raise InvalidSettings(
            "a cycle of whole slots",
            f"{text!r}, which is {length_us / slot_us:.5g} of them",
            "Choose a slot that divides it, or write a number of slots.",
            key="cycle",
        )
    return length_us // slot_us


def read_days(written: Any) -> tuple[date, ...]:
    """The days of a calendar: a file with a column `day`, or a list of dates.

    Raises:
        InvalidSettings: for what is no date.
        InvalidInput: for a file that cannot be read.
    """
    if written == "none":
        return ()
    days = read_column(written, "day") if isinstance(written, (str, Path)) else written
    if not isinstance(days, Iterable):
        raise _no_day(written)
    return tuple(sorted({_day(day) for day in days}))


def _day(written: Any) -> date:
    if isinstance(written, datetime) or not isinstance(written, (date, str)):
        raise _no_day(written)
    try:
        return written if isinstance(written, date) else date.fromisoformat(written.strip())
    except ValueError:
        raise _no_day(written) from None


def _no_day(written: Any) -> InvalidSettings:
    return InvalidSettings(
        "calendar to name days such as 2026-12-25",
        f"{written!r}",
        "Write one per line under the heading day, or as a list.",
        key="calendar",
    )


def calendar_slots(days: Iterable[date], clock: SlotClock | None, timezone_us: int | None) -> tuple[int, ...]:
    """The slots with which these days begin and end, in turns; a slot belongs to the day in which it starts.

    Args:
        days: in order.
        clock: when slots are; None for slots that have numbers and no times.
        timezone_us: where days begin; UTC if nothing is declared.

    Raises:
        InvalidSettings: without a clock.
    """
    if clock is None:
        raise InvalidSettings(
            "a calendar with slots that have times", "slots with numbers alone", "Leave it out.", key="calendar"
        )
    changes: list[int] = []
    for day in days:
        starts = (day.toordinal() - _1970) * _DAY_US - (timezone_us or 0)
        first, after = (max(clock.slot_of(moment - 1) + 1, 1) for moment in (starts, starts + _DAY_US))
        if first == after:
            continue
        if changes and changes[-1] == first:  # the day before was one, too
            changes.pop()
        else:
            changes.append(first)
        changes.append(after)
    return tuple(changes)
