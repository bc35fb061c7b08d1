"""The paper's claims with our measurements. Tested, not copied (specification 13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.experiments.formatting import change, change_and_interval
from wevent.experiments.intervals import Interval, mean_interval
from wevent.experiments.reproduce.campaign import WINDOWS, Axis, keys_on
from wevent.experiments.reproduce.results import Results

Verdict = Literal["holds", "partly", "does not hold", "not tested"]

_REAL = ("taxi", "foursquare")
_SYNTHETIC = ("tlns", "sin", "log")
_MAIN: tuple[Axis, ...] = ("epsilon", "window")
_GENTLY = WINDOWS[-1] / WINDOWS[0]  # the paper gives no number: five times the window, at most five times the error


class Check(NamedTuple):
    """A comparison: the measurement, and whether it agrees with the claim (None: not run or not decidable)."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Judged:
    """A claim, the paper's figure, the threshold of BD and BA, our measurement and the verdict."""

    claim: str
    paper: str
    baseline: str
    measured: str
    verdict: Verdict


Evaluate = Callable[[Results, str], list[Check]]
"""Checks of a claim; BD and BA have this suffix: "" for the threshold 1/ε, ":std" for √2/ε."""


def judge(results: Results) -> list[Judged]:
    """Judge every claim; those about BD or BA once at their threshold 1/ε and once at √2/ε, which PBD and PBA use."""
    judged = []
    for text, paper, evaluate, has_baselines in _CLAIMS:
        for threshold, suffix in [("1/ε", ""), ("√2/ε", ":std")] if has_baselines else [("-", "")]:
            checks = evaluate(results, suffix)
            decided = [check for check in checks if check.holds is not None]
            agreeing = sum(bool(check.holds) for check in decided)
            measured = "; ".join(check.text for check in decided or checks)
            verdict: Verdict = "partly" if agreeing else "does not hold"
            if agreeing == len(decided):
                verdict = "holds" if decided else "not tested"
            if decided:
                measured = f"{agreeing} of {len(decided)}: {measured}"
            judged.append(Judged(text, paper, threshold, measured, verdict))
    return judged


def _below(streams: Sequence[str], left: str, *others: str, measure: str = "amre", above: bool = False) -> Evaluate:
    """Check per stream and axis that `left` is below (or above) all others beyond noise, averaged over the settings.

    The text names the comparison that agrees least: the typical ratio, and the ratio of means, by which the paper averages.
    """

    def check(results: Results, suffix: str, stream: str, axis: Axis) -> Check:
        found = []
        for other in others:
            ratios = _log_ratios(results, stream, axis, _named(left, suffix), _named(other, suffix), measure)
            if ratios is None:
                return Check(f"{stream}, {axis}: not run", None)
            found.append((_named(other, suffix), mean_interval(ratios[0]), ratios[1]))
        sign = -1.0 if above else 1.0
        name, interval, of_means = max(found, key=lambda row: sign * row[1].mean)
        against = f"against {name} " if len(others) > 1 else ""
        text = f"{stream}, {axis}: {against}{_change(interval)}, ratio of means {change(of_means)}"
        if any(math.isnan(one.low) for _, one, _ in found):
            return Check(text, None)
        return Check(text, all(one.low > 0.0 if above else one.high < 0.0 for _, one, _ in found))

    return lambda results, suffix: [check(results, suffix, stream, axis) for stream in streams for axis in _MAIN]


def _log_ratios(
    results: Results, stream: str, axis: Axis, left: str, right: str, measure: str
) -> tuple[list[float], float] | None:
    """Return ln(left/right) per repeat and the ratio of the means over repeats, both averaged over the axis."""
    logs: list[FloatArray] = []
    of_means = []
    for key in keys_on(axis):
        above, below = (results.values(stream, key, mechanism, measure) for mechanism in (left, right))
        if above is None or below is None:
            return None
        logs.append(np.log(above) - np.log(below))
        of_means.append(float(above.mean() / below.mean()))
    return np.mean(logs, axis=0).tolist(), float(np.mean(of_means))


def _along(
    axis: Axis,
    holds: Callable[[Interval], bool],
    *mechanisms: str,
    places: tuple[int, int] = (0, -1),
    measure: str = "amre",
) -> Evaluate:
    """Check the change between two places of an axis per synthetic stream and mechanism, in the mean of logarithms."""

    def evaluate(results: Results, suffix: str) -> list[Check]:
        checks = []
        for stream in _SYNTHETIC:
            for mechanism in (_named(name, suffix) for name in mechanisms):
                keys = [keys_on(axis)[place] for place in places]
                before, after = (results.values(stream, key, mechanism, measure) for key in keys)
                label = f"{'' if axis in _MAIN else f'{axis} '}{stream}, {mechanism}"
                if before is None or after is None:
                    checks.append(Check(f"{label}: not run", None))
                    continue
                interval = mean_interval((np.log(after) - np.log(before)).tolist())
                decided = None if math.isnan(interval.low) else holds(interval)
                checks.append(Check(f"{label}: {_change(interval)}", decided))
        return checks

    return evaluate


def _together(*parts: Evaluate) -> Evaluate:
    return lambda results, suffix: [check for part in parts for check in part(results, suffix)]


def _not(evaluate: Evaluate) -> Evaluate:
    return lambda results, suffix: [
        Check(check.text, None if check.holds is None else not check.holds) for check in evaluate(results, suffix)
    ]


def _named(mechanism: str, suffix: str) -> str:
    return mechanism + suffix if mechanism in ("bd", "ba") else mechanism


def _change(logs: Interval) -> str:
    mean, ends = change_and_interval(Interval(*(math.exp(value) for value in logs)))
    return f"{mean} ({'one repeat' if ends == '-' else ends})"


def _falls(logs: Interval) -> bool:
    return logs.high < 0.0


def _rises(logs: Interval) -> bool:
    return logs.low > 0.0


def _rises_gently(logs: Interval) -> bool:
    return logs.low > 0.0 and logs.mean <= math.log(_GENTLY)


def _is_stable(logs: Interval) -> bool:
    """Allow −20 % to +25 %."""
    return abs(logs.mean) <= math.log(1.25)


def _slowest_and_quickest(results: Results, suffix: str) -> list[Check]:
    checks = []
    for stream in ("tlns", "sin"):
        names = [_named(name, suffix) for name in ("bd", "ba", "pbd", "pba")]
        means = {name: _mean_time(results, stream, keys_on("epsilon"), name) for name in names}
        if any(math.isnan(mean) for mean in means.values()):
            checks.append(Check(f"{stream}: not run", None))
            continue
        shown = ", ".join(f"{name} {mean:.2f} ms" for name, mean in means.items())
        holds = means["pbd"] == max(means.values()) and means[names[0]] == min(means.values())
        checks.append(Check(f"{stream}: {shown} (single runs, no interval)", holds))
    return checks


def _time_grows_with_window(results: Results, suffix: str) -> list[Check]:
    checks = []
    for stream in _SYNTHETIC:
        first, last = (_mean_time(results, stream, [keys_on("window")[place]], "pbd") for place in (0, -1))
        if math.isnan(first) or math.isnan(last):
            checks.append(Check(f"{stream}: not run", None))
        else:
            text = f"{stream}: {first:.2f} ms at w = 40, {last:.2f} ms at w = 200 (single runs, no interval)"
            checks.append(Check(text, last > 1.1 * first))
    return checks


def _mean_time(results: Results, stream: str, settings: Sequence[str], mechanism: str) -> float:
    """Return milliseconds per slot; NaN if one of the settings was not run."""
    found = [results.values(stream, key, mechanism, "ms_per_slot") for key in settings]
    return float(np.mean([math.nan if spent is None else spent[0] for spent in found]))


_FIVE = ("bd", "ba", "plbu", "pbd", "pba")
_CLAIMS: tuple[
    tuple[str, str, Evaluate, bool], ...
] = (  # text, the paper's figure, checks, and whether BD or BA is in them
    (
        "PBD has a smaller error than BD on the real streams",
        "68 % smaller (Taxi 70.8 % and 63.1 %, Foursquare 69.6 % and 68.4 %)",
        _below(_REAL, "pbd", "bd"),
        True,
    ),
    (
        "PBA has a smaller error than BA on the synthetic streams",
        "24.9 % smaller (ε: TLNS 36.9, Sin 27.7, Log 28.9 %; w: 35.1, 4.2, 16.6 %)",
        _below(_SYNTHETIC, "pba", "ba"),
        True,
    ),
    ("PBD has a smaller error than BD on the synthetic streams", "consistently", _below(_SYNTHETIC, "pbd", "bd"), True),
    (
        "PBA has the smallest error of BD, BA, PLBU, PBD, PBA on the synthetic streams",
        "consistently",
        _below(_SYNTHETIC, "pba", "bd", "ba", "plbu", "pbd"),
        True,
    ),
    (
        "PBD has the smallest error of the five on the real streams",
        "consistently",
        _below(_REAL, "pbd", "bd", "ba", "plbu", "pba"),
        True,
    ),
    ("PBA is slightly worse than BA on the real streams", "slightly", _below(_REAL, "ba", "pba"), True),
    ("PBA is better than PBD on slow (synthetic) streams", "significantly", _below(_SYNTHETIC, "pba", "pbd"), False),
    ("PBD is better than PBA on fast (real) streams", "yes", _below(_REAL, "pbd", "pba"), False),
    (
        "PLBU has the largest error, except on TLNS",
        "yes",
        _together(
            _below(("sin", "log"), "plbu", "bd", "ba", "pbd", "pba", above=True),
            _not(_below(("tlns",), "plbu", "bd", "ba", "pbd", "pba", above=True)),
        ),
        True,
    ),
    ("The error falls as epsilon grows from 0.2 to 1.0", "on all streams", _along("epsilon", _falls, *_FIVE), True),
    ("The error rises as the window grows from 40 to 200", "yes", _along("window", _rises, *_FIVE), True),
    (
        "That rise is gentle: at most in proportion to the window, 5 times",
        "gently",
        _along("window", _rises_gently, *_FIVE),
        True,
    ),
    (
        "The errors of PBD and PBA are stable while the ratio is below 0.8 (0.1 against 0.7, within 25 %)",
        "relatively stable",
        _together(
            _along("ratio-epsilon", _is_stable, "pbd", "pba", places=(0, 3)),
            _along("ratio-window", _is_stable, "pbd", "pba", places=(0, 3)),
        ),
        False,
    ),
    (
        "The errors of PBD and PBA drop when the ratio passes 0.8 (0.7 against 0.9)",
        "significantly",
        _together(
            _along("ratio-epsilon", _falls, "pbd", "pba", places=(3, 4)),
            _along("ratio-window", _falls, "pbd", "pba", places=(3, 4)),
        ),
        False,
    ),
    ("AJSD falls as epsilon grows", "for all methods", _along("epsilon", _falls, *_FIVE, measure="ajsd"), True),
    ("AJSD rises as the window grows", "for all methods", _along("window", _rises, *_FIVE, measure="ajsd"), True),
    (
        "PBD and PBA have a smaller AJSD than BD on the synthetic streams",
        "consistently",
        _together(_below(_SYNTHETIC, "pbd", "bd", measure="ajsd"), _below(_SYNTHETIC, "pba", "bd", measure="ajsd")),
        True,
    ),
    (
        "PBA has the smallest AJSD of the five on the synthetic streams",
        "yes",
        _below(_SYNTHETIC, "pba", "bd", "ba", "plbu", "pbd", measure="ajsd"),
        True,
    ),
    ("PBD takes the longest and BD the shortest time (TLNS, Sin)", "yes", _slowest_and_quickest, True),
    ("The time of PBD grows with the window", "yes", _time_grows_with_window, False),
)
