"""The paper's claims with our measurements. Tested, not copied (specification 13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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


def judge(results: Results) -> list[Judged]:
    """Judge every claim; those about BD or BA once at their threshold 1/ε and once at √2/ε, which PBD and PBA use."""
    judged = []
    for claim in _CLAIMS:
        variants = [("1/ε", "bd", "ba"), ("√2/ε", "bd:std", "ba:std")] if claim.baselines else [("-", "bd", "ba")]
        for baseline, bd, ba in variants:
            checks = claim.evaluate(results, bd, ba)
            decided = [check for check in checks if check.holds is not None]
            agreeing = sum(bool(check.holds) for check in decided)
            measured = "; ".join(check.text for check in decided or checks)
            verdict: Verdict = "partly" if agreeing else "does not hold"
            if agreeing == len(decided):
                verdict = "holds" if decided else "not tested"
            if decided:
                measured = f"{agreeing} of {len(decided)}: {measured}"
            judged.append(Judged(claim.text, claim.paper, baseline, measured, verdict))
    return judged


def _compare(
    results: Results,
    streams: Iterable[str],
    left: str,
    others: Sequence[str],
    *,
    measure: str = "amre",
    above: bool = False,
) -> list[Check]:
    """Check per stream and axis that `left` is below (or above) all others beyond noise, averaged over the settings.

    The text names the comparison that agrees least: the typical ratio, and the ratio of means, by which the paper averages.
    """
    checks = []
    for stream in streams:
        for axis in _MAIN:
            found = [_log_ratios(results, stream, axis, left, other, measure) for other in others]
            if not all(found):
                checks.append(Check(f"{stream}, {axis}: not run", None))
                continue
            ratios = [(mean_interval(typical), of_means) for pair in found if pair for typical, of_means in [pair]]
            sign = -1.0 if above else 1.0
            place = max(range(len(ratios)), key=lambda number: sign * ratios[number][0].mean)
            interval, of_means = ratios[place]
            against = f"against {others[place]} " if len(others) > 1 else ""
            text = f"{stream}, {axis}: {against}{_change(interval)}, ratio of means {change(of_means)}"
            decidable = not any(math.isnan(one.low) for one, _ in ratios)
            holds = all(one.low > 0.0 if above else one.high < 0.0 for one, _ in ratios)
            checks.append(Check(text, holds if decidable else None))
    return checks


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


def _follow(
    results: Results,
    mechanisms: Iterable[str],
    ends: tuple[str, str],
    holds: Callable[[Interval], bool],
    *,
    measure: str = "amre",
) -> list[Check]:
    """Check the change from one setting to another per synthetic stream and mechanism, as the mean of its logarithm."""
    checks = []
    for stream in _SYNTHETIC:
        for mechanism in mechanisms:
            before, after = (results.values(stream, key, mechanism, measure) for key in ends)
            if before is None or after is None:
                checks.append(Check(f"{stream}, {mechanism}: not run", None))
                continue
            interval = mean_interval((np.log(after) - np.log(before)).tolist())
            decided = None if math.isnan(interval.low) else holds(interval)
            checks.append(Check(f"{stream}, {mechanism}: {_change(interval)}", decided))
    return checks


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


Evaluate = Callable[[Results, str, str], Sequence[Check]]


def _along(axis: Axis, holds: Callable[[Interval], bool], measure: str = "amre") -> Evaluate:
    ends = keys_on(axis)[0], keys_on(axis)[-1]
    return lambda results, bd, ba: _follow(results, (bd, ba, "plbu", "pbd", "pba"), ends, holds, measure=measure)


def _between_ratios(first: int, last: int, holds: Callable[[Interval], bool]) -> Evaluate:
    def evaluate(results: Results, bd: str, ba: str) -> list[Check]:
        axes: tuple[Axis, ...] = ("ratio-epsilon", "ratio-window")
        return [
            Check(f"{axis} {check.text}", check.holds)
            for axis in axes
            for check in _follow(results, ("pbd", "pba"), (keys_on(axis)[first], keys_on(axis)[last]), holds)
        ]

    return evaluate


def _plbu_is_largest_but_on_tlns(results: Results, bd: str, ba: str) -> list[Check]:
    others = (bd, ba, "pbd", "pba")
    on_tlns = _compare(results, ("tlns",), "plbu", others, above=True)
    return [
        *_compare(results, ("sin", "log"), "plbu", others, above=True),
        *(Check(check.text, None if check.holds is None else not check.holds) for check in on_tlns),
    ]


def _slowest_and_quickest(results: Results, bd: str, ba: str) -> list[Check]:
    checks = []
    for stream in ("tlns", "sin"):
        means = {name: _mean_time(results, stream, keys_on("epsilon"), name) for name in (bd, ba, "pbd", "pba")}
        if any(math.isnan(mean) for mean in means.values()):
            checks.append(Check(f"{stream}: not run", None))
            continue
        shown = ", ".join(f"{name} {mean:.2f} ms" for name, mean in means.items())
        holds = means["pbd"] == max(means.values()) and means[bd] == min(means.values())
        checks.append(Check(f"{stream}: {shown} (single runs, no interval)", holds))
    return checks


def _time_grows_with_window(results: Results, bd: str, ba: str) -> list[Check]:
    checks = []
    for stream in _SYNTHETIC:
        first, last = (
            _mean_time(results, stream, [key], "pbd") for key in (keys_on("window")[0], keys_on("window")[-1])
        )
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


@dataclass(frozen=True)
class _Claim:
    """`evaluate` takes the names of BD and BA: at the threshold 1/ε, and at √2/ε unless `baselines` is off."""

    text: str
    paper: str
    evaluate: Evaluate
    baselines: bool = True


_CLAIMS = (
    _Claim(
        "PBD has a smaller error than BD on the real streams",
        "68 % smaller (Taxi 70.8 % and 63.1 %, Foursquare 69.6 % and 68.4 %)",
        lambda results, bd, ba: _compare(results, _REAL, "pbd", [bd]),
    ),
    _Claim(
        "PBA has a smaller error than BA on the synthetic streams",
        "24.9 % smaller (ε: TLNS 36.9, Sin 27.7, Log 28.9 %; w: 35.1, 4.2, 16.6 %)",
        lambda results, bd, ba: _compare(results, _SYNTHETIC, "pba", [ba]),
    ),
    _Claim(
        "PBD has a smaller error than BD on the synthetic streams",
        "consistently",
        lambda results, bd, ba: _compare(results, _SYNTHETIC, "pbd", [bd]),
    ),
    _Claim(
        "PBA has the smallest error of BD, BA, PLBU, PBD, PBA on the synthetic streams",
        "consistently",
        lambda results, bd, ba: _compare(results, _SYNTHETIC, "pba", (bd, ba, "plbu", "pbd")),
    ),
    _Claim(
        "PBD has the smallest error of the five on the real streams",
        "consistently",
        lambda results, bd, ba: _compare(results, _REAL, "pbd", (bd, ba, "plbu", "pba")),
    ),
    _Claim(
        "PBA is slightly worse than BA on the real streams",
        "slightly",
        lambda results, bd, ba: _compare(results, _REAL, ba, ["pba"]),
    ),
    _Claim(
        "PBA is better than PBD on slow (synthetic) streams",
        "significantly",
        lambda results, bd, ba: _compare(results, _SYNTHETIC, "pba", ["pbd"]),
        baselines=False,
    ),
    _Claim(
        "PBD is better than PBA on fast (real) streams",
        "yes",
        lambda results, bd, ba: _compare(results, _REAL, "pbd", ["pba"]),
        baselines=False,
    ),
    _Claim("PLBU has the largest error, except on TLNS", "yes", _plbu_is_largest_but_on_tlns),
    _Claim("The error falls as epsilon grows from 0.2 to 1.0", "on all streams", _along("epsilon", _falls)),
    _Claim("The error rises as the window grows from 40 to 200", "yes", _along("window", _rises)),
    _Claim(
        "That rise is gentle: at most in proportion to the window, 5 times", "gently", _along("window", _rises_gently)
    ),
    _Claim(
        "The errors of PBD and PBA are stable while the ratio is below 0.8 (0.1 against 0.7, within 25 %)",
        "relatively stable",
        _between_ratios(0, 3, _is_stable),
        baselines=False,
    ),
    _Claim(
        "The errors of PBD and PBA drop when the ratio passes 0.8 (0.7 against 0.9)",
        "significantly",
        _between_ratios(3, 4, _falls),
        baselines=False,
    ),
    _Claim("AJSD falls as epsilon grows", "for all methods", _along("epsilon", _falls, "ajsd")),
    _Claim("AJSD rises as the window grows", "for all methods", _along("window", _rises, "ajsd")),
    _Claim(
        "PBD and PBA have a smaller AJSD than BD on the synthetic streams",
        "consistently",
        lambda results, bd, ba: [
            *_compare(results, _SYNTHETIC, "pbd", [bd], measure="ajsd"),
            *_compare(results, _SYNTHETIC, "pba", [bd], measure="ajsd"),
        ],
    ),
    _Claim(
        "PBA has the smallest AJSD of the five on the synthetic streams",
        "yes",
        lambda results, bd, ba: _compare(results, _SYNTHETIC, "pba", (bd, ba, "plbu", "pbd"), measure="ajsd"),
    ),
    _Claim("PBD takes the longest and BD the shortest time (TLNS, Sin)", "yes", _slowest_and_quickest),
    _Claim("The time of PBD grows with the window", "yes", _time_grows_with_window, baselines=False),
)
