"""Where round numbers and times lie on an axis, for pictures that are made without matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_STEPS = (
    *(timedelta(seconds=seconds) for seconds in (1, 5, 15, 30)),
    *(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30)),
    *(hours * _HOUR for hours in (1, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


def round_numbers(low: float, high: float, most: int = 5) -> list[float]:
    """At most so many numbers within the limits, at steps of 1, 2 or 5 times a power of ten.

    >>> round_numbers(0, 1180)
    [0.0, 500.0, 1000.0]
    """
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(lead * power for lead in (1, 2, 5, 10, 20, 50) if (high - low) / (lead * power) <= most - 1)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def round_times(first: datetime, last: datetime, most: int = 8) -> list[tuple[datetime, str]]:
    """At most so many times within the limits with what to write there: dates at midnight, else the time of day (UTC).

    >>> [text for _, text in round_times(datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))]
    ['2 Mar', '06:00', '12:00', '18:00', '3 Mar']
    """
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    span = last - first
    step = next((step for step in _STEPS if span / step <= most - 1), None) or _STEPS[-1] * math.ceil(
        span / _STEPS[-1] / most
    )
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + math.ceil((first - midnight) / step) * step
    found = []
    while at <= last:
        found.append((at, _written(at, step)))
        at += step
    return found


def _written(time: datetime, step: timedelta) -> str:
    if time.hour == time.minute == time.second == 0:
        month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[time.month - 1]
        return f"{time.day} {month}" + (f" {time.year}" if step > 28 * _DAY else "")
    return f"{time:%H:%M:%S}" if step < timedelta(minutes=1) else f"{time:%H:%M}"


def stairs(across: Sequence[float], up: Sequence[float]) -> str:
    """The path of values that hold until the next one; NaN leaves a gap. `across` has one place more: the end.

    >>> stairs([0, 1, 2], [5, 6])
    'M0 5H1V6H2'
    """
    parts, before = [], math.nan
    for place, value in enumerate(up):
        if math.isnan(value):
            before = math.nan
            continue
        start = f"M{_short(across[place])} {_short(value)}" if math.isnan(before) else ""
        rise = f"V{_short(value)}" if not math.isnan(before) and value != before else ""
        parts.append(f"{start}{rise}H{_short(across[place + 1])}")
        before = value
    return "".join(parts)


def ribbon(across: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    """The path of a band between two stairs, along the upper one and back along the lower one; NaN leaves a gap.

    >>> ribbon([0, 1, 2], [5, 6], [8, 9])
    'M0 5V8H1V9H2V6H1V5Z'
    """
    parts, run = [], list[int]()
    for place in range(len(low) + 1):
        if place < len(low) and not (math.isnan(low[place]) or math.isnan(high[place])):
            run.append(place)
        elif run:
            forth = "".join(f"V{_short(high[at])}H{_short(across[at + 1])}" for at in run)
            back = "".join(f"V{_short(low[at])}H{_short(across[at])}" for at in reversed(run[1:]))
            parts.append(f"M{_short(across[run[0]])} {_short(low[run[0]])}{forth}{back}V{_short(low[run[0]])}Z")
            run = []
    return "".join(parts)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
