"""Cycles and calendars as people write them, and as a filter takes them: in slots."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from wevent.errors import InvalidSettings
from wevent.streams.clock import SlotClock, parse_length
from wevent.streams.requirements_file import read_column

_DAY_US = 86_400_000_000
_1970 = date(1970, 1, 1).toordinal()
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")
_FAR = 10**15  # slots; no option is that large


def read_cycles(written: Any, slot_us: int | None) -> tuple[float, ...]:
    """The slots of cycles such as 288, "1d", "1d,12h" or ["1d", 14.4]; "none" is none.

    Args:
        written: one of them, or several.
        slot_us: how long a slot is, None for slots that have numbers and no times.

    Raises:
        InvalidSettings: for what is no cycle, or a duration where slots have no length.
    """
    if written == "none":
        return ()
    parts = written.split(",") if isinstance(written, str) else written
    if not isinstance(parts, (list, tuple)):
        parts = [parts]
    return tuple(dict.fromkeys(_slots(part, slot_us) for part in parts))


def _slots(written: Any, slot_us: int | None) -> float:
    if isinstance(written, (int, float, Decimal)) and not isinstance(written, bool) and not _is_nan(written):
        return float(min(max(written, 0), _FAR))  # neither is a cycle, and the message says so
    text = written.strip() if isinstance(written, str) else written
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        return float(text)
    try:
        length_us = parse_length(text, "cycle")
    except InvalidSettings:
        raise InvalidSettings(
            "cycle to be a length such as 1d, or a number of slots such as 24, or up to four of them",
            f"{written!r}",
            "Correct the value.",
            key="cycle",
        ) from None
    if slot_us is None:
        raise InvalidSettings(
            "a cycle in slots, for slots that have numbers and no length",
            f"{written!r}",
            "Write the number of slots.",
            key="cycle",
        )
    return length_us / slot_us


def _is_nan(number: float | Decimal) -> bool:
    """`nan` in a configuration file is a Decimal, which no comparison takes."""
    return number.is_nan() if isinstance(number, Decimal) else isinstance(number, float) and math.isnan(number)


def read_days(written: Any) -> tuple[date, ...]:
    """The days of a calendar: a file with a column `day`, or a list of dates.

    Raises:
        InvalidSettings: for what is no date.
        InvalidInput: for a file that cannot be read or has no such column.
    """
    if written == "none":
        return ()
    days = read_column(written, "day", headed=True) if isinstance(written, (str, Path)) else written
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
