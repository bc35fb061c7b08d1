"""The format of numbers in tables, sentences and pictures: one, so that no two of them can contradict each other."""

from __future__ import annotations

import math

from wevent.experiments.intervals import Interval

_UNCHANGED = 5e-4  # below this a change is written as none
_MANY = 10.0  # from this on a ratio is easier to read than percent


def short(value: float, *, digits: int = 3) -> str:
    """Format a number with a few significant digits: 37,100 or 2.54e+08 or 0.0123."""
    if value != value:
        return "-"
    rounded = float(f"{value:.{digits - 1}e}")
    if 1e-3 <= abs(rounded) < 1e6:
        return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"
    return f"{value:.{digits - 1}e}" if rounded else "0"


def spoken(value: float) -> str:
    """Format as `short`, with words for millions.

    >>> spoken(37_100), spoken(2.54e8)
    ('37,100', '254 million')
    """
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if 1.0 <= abs(float(f"{value:.2e}")) / size < 1e3:
            return f"{short(value / size)} {word}"
    return short(value)


def change(ratio: float) -> str:
    """Format a ratio as a change: percent, and `211 times` where percent would be hard to read.

    >>> [change(ratio) for ratio in (0.92, 0.997, 1.0, 1.98, 210.95)]
    ['-8%', '-0.3%', '±0%', '+98%', '211 times']
    """
    if math.isnan(ratio):
        return "-"
    if is_unchanged(ratio):
        return "±0%"
    if ratio >= _MANY:
        return f"{short(ratio)} times"
    percent = 100.0 * (ratio - 1.0)
    return f"{percent:+.0f}%" if abs(percent) >= 0.95 else f"{percent:+.1f}%"


def change_and_interval(ratio: Interval) -> tuple[str, str]:
    """Format a ratio and the ends of its interval as changes, both in percent or both in times; `-` without an interval.

    >>> change_and_interval(Interval(1.98, 1.59, 2.49)), change_and_interval(Interval(11.1, 9.47, 13.1))
    (('+98%', '+59% to +149%'), ('11.1 times', '9.47 to 13.1 times'))
    """
    if math.isnan(ratio.low):
        return change(ratio.mean), "-"
    if ratio.high >= _MANY:
        return f"{short(ratio.mean)} times", f"{short(ratio.low)} to {short(ratio.high)} times"
    return change(ratio.mean), f"{change(ratio.low)} to {change(ratio.high)}"


def is_unchanged(ratio: float) -> bool:
    """Return whether `change` writes this ratio as no change."""
    return abs(ratio - 1.0) < _UNCHANGED


def is_lower(ratio: Interval) -> bool:
    """Return whether a ratio is below 1 beyond noise, and so far that it is written as a change."""
    return ratio.high < 1.0 and not is_unchanged(ratio.mean)


def is_higher(ratio: Interval) -> bool:
    """Return whether a ratio is above 1 beyond noise, and so far that it is written as a change."""
    return ratio.low > 1.0 and not is_unchanged(ratio.mean)
