"""The small questions that claims are made of: is this below that, beyond noise?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from wevent.core.arrays import FloatArray
from wevent.experiments.intervals import Interval, mean_interval
from wevent.experiments.reproduce.campaign import Axis
from wevent.experiments.reproduce.results import Results, keys_on
from wevent.experiments.wording import change, change_and_interval

Verdict = Literal["holds", "partly", "does not hold", "not tested"]


class Check(NamedTuple):
    """A comparison: what was measured, and whether it says what the claim says (None: not run or not decidable)."""

    text: str
    holds: bool | None


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """All hold, some do, none does; comparisons that were not run do not count."""
    decided = [check.holds for check in checks if check.holds is not None]
    if not decided:
        return "not tested"
    if all(decided):
        return "holds"
    return "partly" if any(decided) else "does not hold"


def summary_of(checks: Sequence[Check]) -> str:
    """The comparisons in one line each, those that disagree included."""
    decided = [check for check in checks if check.holds is not None]
    if not decided:
        return "; ".join(check.text for check in checks)
    return f"{sum(bool(check.holds) for check in decided)} of {len(decided)}: " + "; ".join(
        check.text for check in decided
    )


def percent(logs: FloatArray) -> tuple[str, Interval]:
    """A mean of log ratios as a change with its 95 % interval, in percent or times."""
    interval = mean_interval(logs.tolist())
    mean, ends = change_and_interval(Interval(*(math.exp(value) for value in interval)))
    return f"{mean} ({'one repeat' if ends == '-' else ends})", interval


def is_below(
    results: Results, streams: Iterable[str], axes: Iterable[Axis], left: str, right: str, measure: str = "amre"
) -> list[Check]:
    """Whether `left` is below `right`, per stream and axis, averaged over its settings."""
    checks = []
    for stream in streams:
        for axis in axes:
            settings = keys_on(axis)
            logs = results.log_ratio(stream, settings, left, right, measure)
            label = f"{stream}, {axis}"
            if logs is None:
                checks.append(Check(f"{label}: not run", None))
                continue
            text, interval = percent(logs)
            plain = results.reduction(stream, settings, left, right, measure)
            holds = None if math.isnan(interval.high) else interval.high < 0.0
            checks.append(Check(f"{label}: {text}, ratio of means {change(1.0 - plain)}", holds))
    return checks


def is_lowest(
    results: Results,
    streams: Iterable[str],
    axes: Iterable[Axis],
    best: str,
    others: Sequence[str],
    measure: str = "amre",
) -> list[Check]:
    """Whether `best` is below all others; names the one that comes closest or is ahead."""
    checks = []
    for stream in streams:
        for axis in axes:
            found = []
            for other in others:
                logs = results.log_ratio(stream, keys_on(axis), best, other, measure)
                if logs is not None:
                    text, interval = percent(logs)
                    found.append((interval.mean, interval.high, f"against {other} {text}"))
            label = f"{stream}, {axis}"
            if not found:
                checks.append(Check(f"{label}: not run", None))
                continue
            _, _, hardest = max(found)
            decidable = not any(math.isnan(high) for _, high, _ in found)
            holds = all(high < 0.0 for _, high, _ in found) if decidable else None
            checks.append(Check(f"{label}: {hardest}", holds))
    return checks


def is_highest(
    results: Results, streams: Iterable[str], axes: Iterable[Axis], worst: str, others: Sequence[str], measure: str
) -> list[Check]:
    """Whether `worst` is above all others, in times the largest of them."""
    checks = []
    for stream in streams:
        for axis in axes:
            logs = [results.log_ratio(stream, keys_on(axis), worst, other, measure) for other in others]
            found = [mean_interval(repeats.tolist()) for repeats in logs if repeats is not None]
            if len(found) < len(others):
                checks.append(Check(f"{stream}, {axis}: not run", None))
                continue
            nearest = min(found)
            shown = " to ".join(f"{math.exp(end):,.3g}" for end in nearest[1:] if not math.isnan(end))
            text = f"{stream}, {axis}: {math.exp(nearest.mean):,.3g} times the next ({shown or 'one repeat'})"
            decidable = not any(math.isnan(interval.low) for interval in found)
            checks.append(Check(text, all(interval.low > 0.0 for interval in found) if decidable else None))
    return checks


def changes(
    results: Results,
    streams: Iterable[str],
    mechanisms: Iterable[str],
    ends: tuple[str, str],
    *,
    falls: bool,
    measure: str = "amre",
    at_most: float = math.inf,
) -> list[Check]:
    """Whether the value falls (or rises) from the first setting to the last, per stream and mechanism.

    Args:
        results, streams, mechanisms, ends, measure: what is compared.
        falls: whether it should fall, beyond noise; else rise.
        at_most: how many times the first value the last one may typically be.
    """
    checks = []
    for stream in streams:
        for mechanism in mechanisms:
            logs = results.change(stream, mechanism, *ends, measure)
            if logs is None:
                checks.append(Check(f"{stream}, {mechanism}: not run", None))
                continue
            text, interval = percent(logs)
            beyond = interval.high < 0.0 if falls else interval.low > 0.0
            holds = beyond and interval.mean <= math.log(at_most)
            checks.append(Check(f"{stream}, {mechanism}: {text}", None if math.isnan(interval.low) else holds))
    return checks


def is_stable(
    results: Results, streams: Iterable[str], mechanisms: Iterable[str], ends: tuple[str, str], *, within: float
) -> list[Check]:
    """Whether the typical change between two settings stays within a share (0.25: between −20 % and +25 %)."""
    checks = []
    for stream in streams:
        for mechanism in mechanisms:
            logs = results.change(stream, mechanism, *ends)
            if logs is None:
                checks.append(Check(f"{stream}, {mechanism}: not run", None))
                continue
            text, interval = percent(logs)
            checks.append(Check(f"{stream}, {mechanism}: {text}", abs(interval.mean) <= math.log1p(within)))
    return checks


def times(results: Results, stream: str, axis: Axis, mechanism: str) -> list[float] | None:
    """Milliseconds per slot along an axis; one run each, so there is no interval."""
    found = [results.values(stream, key, mechanism, "ms_per_slot") for key in keys_on(axis)]
    return None if any(spent is None for spent in found) else [float(spent[0]) for spent in found if spent is not None]
