"""The slot clock, which is declared and never read from events (spec 1); durations and times as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from wevent.errors import InvalidSettings

SECOND_US = 1_000_000

_UNITS_US = {
    "ms": 1_000,
    "s": SECOND_US,
    "sec": SECOND_US,
    "m": 60 * SECOND_US,
    "min": 60 * SECOND_US,
    "h": 3_600 * SECOND_US,
    "d": 86_400 * SECOND_US,
    "w": 7 * 86_400 * SECOND_US,
}
_LENGTH = re.compile(r"\s*(\d{1,9})\s*([a-z]+)\s*")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SlotClock:
    """Slots of equal length; slot 1 starts at the origin. Times are whole microseconds since 1970, UTC.

    >>> clock = SlotClock(origin_us=0, length_us=60_000_000)
    >>> clock.slot_of(59_999_999), clock.slot_of(60_000_000), clock.start_of(2)
    (1, 2, 60000000)
    """

    origin_us: int
    length_us: int

    def slot_of(self, time_us: int) -> int:
        """Return the slot of a time; below 1 before the origin."""
        return (time_us - self.origin_us) // self.length_us + 1

    def start_of(self, slot: int) -> int:
        """Return the first microsecond of a slot; the end of slot n is the start of n + 1."""
        return self.origin_us + (slot - 1) * self.length_us


def parse_length(text: object, key: str = "slot") -> int:
    """Return a duration such as 500ms, 60s, 5m, 100min, 1h, 1d, 1w, or a timedelta, in microseconds.

    Raises:
        InvalidSettings: if it is none, or zero.
    """
    if isinstance(text, timedelta) and text > timedelta(0):
        return text // timedelta(microseconds=1)
    match = _LENGTH.fullmatch(str(text).lower())
    if match is None or match[2] not in _UNITS_US:
        raise InvalidSettings(
            f"{key} to be a whole number with a unit ({', '.join(_UNITS_US)})",
            f"{text!r}",
            "Write 60s, 5m, 100min, 1h or 1d.",
            key=key,
        )
    length_us = int(match[1]) * _UNITS_US[match[2]]
    if not length_us and key == "slot":
        raise InvalidSettings(
            "a slot length above zero", f"{text!r}", "Write how long one slot lasts, for example 60s.", key=key
        )
    return length_us


def parse_offset(text: str, key: str = "timezone") -> int:
    """Return a declared offset, UTC or such as +02:00, as microseconds to subtract.

    Raises:
        InvalidSettings: for a zone's name: in most zones an hour occurs twice every autumn.
    """
    if text.upper() in ("UTC", "Z"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None or int(match[2]) > 18 or int(match[3] or 0) > 59:
        raise InvalidSettings(
            f"{key} to be UTC or a fixed offset such as +02:00",
            f"{text!r}",
            "A zone with summer time has an hour twice every year: convert the times to UTC, or write their offset.",
            key=key,
        )
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return (-minutes if match[1] == "-" else minutes) * 60 * SECOND_US


def parse_time(value: object, key: str, timezone_us: int | None = None) -> int:
    """Return a declared time, ISO 8601 text or a datetime, in microseconds since 1970.

    Raises:
        InvalidSettings: if it is no time, or carries no offset and none is declared.
    """
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidSettings(
            f"{key} to be a time such as 2026-01-01T00:00:00Z", f"{value!r}", "Write it in ISO 8601.", key=key
        ) from None
    if time.tzinfo is None:
        if timezone_us is None:
            raise InvalidSettings(
                f"{key} to carry its offset, such as 2026-01-01T00:00:00Z",
                f"{str(value)!r}",
                "Add Z for UTC, or an offset such as +02:00: a local time without one can mean two moments.",
                key=key,
            )
        time = time.replace(tzinfo=timezone(timedelta(microseconds=timezone_us)))
    return (time - _EPOCH) // timedelta(microseconds=1)


def utc_time(time_us: int) -> datetime:
    """Return a time in UTC from microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time_us)


def format_time(time_us: int) -> str:
    """Return a time as ISO 8601 in UTC."""
    return utc_time(time_us).isoformat().replace("+00:00", "Z")
