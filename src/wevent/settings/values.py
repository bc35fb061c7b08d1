"""Values of settings as users write them: lengths, times, offsets, windows, cycles, days and addresses.

Lengths and times are whole microseconds, times since 1970 in UTC.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from wevent.core.options import option_text
from wevent.errors import InvalidRequirement, InvalidSettings

SECOND_US = 1_000_000
_DAY_US = 86_400 * SECOND_US
_UNITS_US = {
    "ms": 1_000,
    "s": SECOND_US,
    "sec": SECOND_US,
    "m": 60 * SECOND_US,
    "min": 60 * SECOND_US,
    "h": 3_600 * SECOND_US,
    "d": _DAY_US,
    "w": 7 * _DAY_US,
}
_SPANS = (("day", _DAY_US), ("hour", 3_600 * SECOND_US), ("minute", 60 * SECOND_US), ("second", SECOND_US))
_LENGTH = re.compile(r"\s*(\d{1,9})\s*([a-z]+)\s*")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")
_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[A-Za-z0-9.-]+)):(?P<port>\d{1,5})")
_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_FAR = 10**15  # slots; no option is that large


def invalid(key: str, expected: str, value: Any, fix: str) -> InvalidSettings:
    """Return the error for a value that a setting does not take."""
    table, _, name = key.rpartition(".")
    setting = f"{name} in [service]" if table == "service" else key
    return InvalidSettings(f"{setting} must be {expected}, not {option_text(value)}.", fix, key=key)


def parse_length(text: object, key: str = "slot") -> int:
    """Return a length such as 500ms, 60s, 5m, 100min, 1h, 1d, 1w, or a timedelta; a slot must be longer than zero."""
    if isinstance(text, timedelta) and text > timedelta(0):
        return text // timedelta(microseconds=1)
    match = _LENGTH.fullmatch(str(text).lower())
    if match is None or match[2] not in _UNITS_US:
        expected = f"a whole number with a unit ({', '.join(_UNITS_US)})"
        raise invalid(key, expected, text, "Write 60s, 5m, 100min, 1h or 1d.")
    length_us = int(match[1]) * _UNITS_US[match[2]]
    if not length_us and key == "slot":
        raise invalid(key, "longer than zero", text, "Write the length of one slot, for example 60s.")
    return length_us


def span_text(length_us: int) -> str:
    """Return a length in words: 2 hours, 1 day 30 minutes."""
    parts, left = [], length_us
    for name, unit in _SPANS:
        number, left = divmod(left, unit)
        if number:
            parts.append(f"{number} {name}{'s' if number != 1 else ''}")
    if left or not parts:
        parts.append(f"{left / 1000:g} ms")
    return " ".join(parts)


def parse_offset(text: object) -> int:
    """Return the offset of local times, UTC or a fixed one: microseconds to subtract.

    The name of a zone is refused: in most zones an hour occurs twice every autumn.
    """
    match = _OFFSET.fullmatch(str(text))
    if str(text).upper() in ("UTC", "Z"):
        return 0
    if match is None or int(match[2]) > 18 or int(match[3] or 0) > 59:
        fix = "A zone with summer time has an hour twice every year: convert the times to UTC, or write their offset."
        raise invalid("timezone", "UTC or a fixed offset such as +02:00", text, fix)
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return (-minutes if match[1] == "-" else minutes) * 60 * SECOND_US


def parse_time(value: object, key: str, timezone_us: int | None = None) -> int:
    """Return a declared time, ISO 8601 text or a datetime; without an offset only if `timezone_us` declares one."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise invalid(key, "a time such as 2026-01-01T00:00:00Z", value, "Write it in ISO 8601.") from None
    if time.tzinfo is None:
        if timezone_us is None:
            fix = "Add Z for UTC, or an offset such as +02:00: a local time without one can mean two moments."
            raise invalid(key, "a time with its offset, such as 2026-01-01T00:00:00Z", str(value), fix)
        time = time.replace(tzinfo=timezone(timedelta(microseconds=timezone_us)))
    return (time - _1970) // timedelta(microseconds=1)


def utc_time(time_us: int) -> datetime:
    """Return a time from microseconds."""
    return _1970 + timedelta(microseconds=time_us)


def format_time(time_us: int) -> str:
    """Return a time as ISO 8601 in UTC."""
    return utc_time(time_us).isoformat().replace("+00:00", "Z")


class WindowReader:
    """Reader of windows of one stream, whose slots have a length or only numbers (None).

    Attributes:
        notes: a sentence for each length that was rounded up.
    """

    def __init__(self, slot_us: int | None) -> None:
        self._slot_us = slot_us
        self.notes: tuple[str, ...] = ()

    def read(self, written: object) -> int:
        """Return the slots of a window such as 120, "120" or "24h".

        A length that is no whole number of slots is rounded up: the guarantee covers all of it.
        """
        text = str(written).strip()
        if isinstance(written, int) and not isinstance(written, bool):
            return written
        if text.isascii() and text.isdecimal() and len(text) <= 18:
            return int(text)
        try:
            length_us = parse_length(text, "window")
        except InvalidSettings:
            length_us = 0
        if not length_us:
            problem = f"A window is a whole number of slots or a duration such as 24h, not {written!r}."
            raise InvalidRequirement(problem, "Write for example 40 or 24h.", window=written)
        if self._slot_us is None:
            problem = f"The window {written!r} is a duration, but slots have numbers and no length (slot_column)."
            raise InvalidRequirement(problem, "Write the number of slots.", window=written)
        slots = -(-length_us // self._slot_us)
        if slots * self._slot_us != length_us:
            covered = "1 slot" if slots == 1 else f"{slots} slots"
            whole = span_text(slots * self._slot_us)
            note = f"Window {text} is no whole number of slots: it covers {covered} ({whole})."
            self.notes += () if note in self.notes else (note,)
        return slots


def parse_cycles(written: Any, slot_us: int | None) -> tuple[float, ...]:
    """Return the slots of cycles such as 288, "1d", "1d,12h" or ["1d", 14.4]; "none" is none.

    The slot length is None for slots that have numbers and no times.
    """
    if written == "none":
        return ()
    parts = written.split(",") if isinstance(written, str) else written
    if not isinstance(parts, (list, tuple)):
        parts = [parts]
    return tuple(dict.fromkeys(_cycle_slots(part, slot_us) for part in parts))


def _cycle_slots(written: Any, slot_us: int | None) -> float:
    is_number = isinstance(written, (int, float, Decimal)) and not isinstance(written, bool)
    if is_number and not Decimal(written).is_nan():  # `nan` in a configuration file is a Decimal
        return float(min(max(written, 0), _FAR))  # neither bound is a cycle: the check of the range refuses it
    text = written.strip() if isinstance(written, str) else written
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        return float(text)
    try:
        length_us = parse_length(text, "seasonality")
    except InvalidSettings:
        expected = "a length such as 1d, or a number of slots such as 24, or up to four of them"
        raise invalid("seasonality", expected, written, "Correct the value.") from None
    if slot_us is None:
        expected = "a number of slots, for slots that have numbers and no length"
        raise invalid("seasonality", expected, written, "Write the number of slots.")
    return length_us / slot_us


def parse_days(written: Any) -> tuple[date, ...]:
    """Return the days of a calendar, in order, each once; "none" is none."""
    if written == "none":
        return ()
    days = written if isinstance(written, Iterable) and not isinstance(written, str) else [written]
    return tuple(sorted({_parse_day(day) for day in days}))


def _parse_day(written: Any) -> date:
    if isinstance(written, date) and not isinstance(written, datetime):
        return written
    try:
        return date.fromisoformat(written.strip())
    except (ValueError, TypeError, AttributeError):
        fix = "Write one per line under the heading day, or as a list."
        raise invalid("special_days", "days such as 2026-12-25", written, fix) from None


def calendar_slots(
    days: Iterable[date], slot_of: Callable[[int], int] | None, timezone_us: int | None
) -> tuple[int, ...]:
    """Return the slots with which these days begin and end, in turns; a slot belongs to the day in which it starts.

    Args:
        slot_of: returns the slot of a time; None for slots that have numbers and no times.
        timezone_us: offset of the days; None: UTC.
    """
    if slot_of is None:
        problem = "special_days is for slots that have times, not numbers alone."
        raise InvalidSettings(problem, "Leave it out.", key="special_days")
    changes: list[int] = []
    for day in days:
        starts = (day.toordinal() - _1970.toordinal()) * _DAY_US - (timezone_us or 0)
        first, after = (max(slot_of(moment - 1) + 1, 1) for moment in (starts, starts + _DAY_US))
        if first == after:
            continue
        if changes and changes[-1] == first:  # the day before is in the calendar too
            changes.pop()
        else:
            changes.append(first)
        changes.append(after)
    return tuple(changes)


class ListenAddress(NamedTuple):
    """Address of a service; port 0 is any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: object) -> ListenAddress:
    """Return an address of the form HOST:PORT."""
    found = _ADDRESS.fullmatch(str(text))
    try:
        if found is not None and found["six"]:
            ipaddress.IPv6Address(found["six"])
    except ValueError:
        found = None
    if found is None or int(found["port"]) > 65_535:
        raise invalid("service.listen", "HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080", text, "Correct it.")
    return ListenAddress(found["six"] or found["four"], int(found["port"]))


def parse_url(text: object, key: str = "service.url") -> str:
    """Return the address that links begin with, without a slash at its end."""
    good = isinstance(text, str) and text.isprintable() and " " not in text
    try:
        parts = urlsplit(str(text))
        good = good and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or parts.username is not None:
        raise invalid(key, "an address such as https://stats.example", text, "Write it without ? and #.")
    return str(text).rstrip("/")
