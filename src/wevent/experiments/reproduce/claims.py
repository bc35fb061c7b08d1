"""The paper's claims, each with what we measured. Tested, not copied (spec 13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wevent.experiments.reproduce.campaign import WINDOWS, Axis
from wevent.experiments.reproduce.questions import (
    Check,
    Verdict,
    changes,
    is_below,
    is_highest,
    is_lowest,
    is_stable,
    summary_of,
    times,
    verdict_of,
)
from wevent.experiments.reproduce.results import Results, keys_on

_REAL = ("taxi", "foursquare")
_SYNTHETIC = ("tlns", "sin", "log")
_MAIN: tuple[Axis, ...] = ("epsilon", "window")
_GENTLY = (
    WINDOWS[-1] / WINDOWS[0]
)  # the paper gives the word no number: five times the window, at most five times the error


@dataclass(frozen=True)
class Judged:
    """One claim and what became of it."""

    claim: str
    paper: str
    baseline: str
    measured: str
    verdict: Verdict


Evaluate = Callable[[Results, str, str], Sequence[Check]]


@dataclass(frozen=True)
class _Claim:
    """`evaluate` gets the names of BD and BA: once at the threshold 1/ε, once at √2/ε if they matter."""

    text: str
    paper: str
    evaluate: Evaluate
    baselines: bool = True


def _worst_but_on_tlns(results: Results, bd: str, ba: str) -> list[Check]:
    """PLBU above the others on Sin and Log, not above all on TLNS."""
    others = (bd, ba, "pbd", "pba")
    on_tlns = is_highest(results, ("tlns",), _MAIN, "plbu", others, "amre")
    return [
        *is_highest(results, ("sin", "log"), _MAIN, "plbu", others, "amre"),
        *(Check(check.text, None if check.holds is None else not check.holds) for check in on_tlns),
    ]


def _both_below_bd(results: Results, bd: str, ba: str) -> list[Check]:
    return [
        *is_below(results, _SYNTHETIC, _MAIN, "pbd", bd, "ajsd"),
        *is_below(results, _SYNTHETIC, _MAIN, "pba", bd, "ajsd"),
    ]


def _ratios(results: Results, bd: str, ba: str, *, ends: tuple[int, int], drop: bool) -> list[Check]:
    checks: list[Check] = []
    axes: tuple[Axis, ...] = ("ratio-epsilon", "ratio-window")
    for axis in axes:
        keys = keys_on(axis)
        between = keys[ends[0]], keys[ends[1]]
        found = (
            changes(results, _SYNTHETIC, ("pbd", "pba"), between, falls=True)
            if drop
            else is_stable(results, _SYNTHETIC, ("pbd", "pba"), between, within=0.25)
        )
        checks += [Check(f"{axis} {check.text}", check.holds) for check in found]
    return checks


def _slowest_and_quickest(results: Results, bd: str, ba: str) -> list[Check]:
    checks = []
    for stream in ("tlns", "sin"):
        spent = {name: times(results, stream, "epsilon", name) for name in (bd, ba, "pbd", "pba")}
        if any(along is None for along in spent.values()):
            checks.append(Check(f"{stream}: not run", None))
            continue
        means = {name: sum(along) / len(along) for name, along in spent.items() if along is not None}
        shown = ", ".join(f"{name} {mean:.2f} ms" for name, mean in means.items())
        holds = means["pbd"] == max(means.values()) and means[bd] == min(means.values())
        checks.append(Check(f"{stream}: {shown} (single runs, no interval)", holds))
    return checks


def _time_of_pbd(results: Results, bd: str, ba: str) -> list[Check]:
    checks = []
    for stream in _SYNTHETIC:
        spent = times(results, stream, "window", "pbd")
        if spent is None:
            checks.append(Check(f"{stream}: not run", None))
        else:
            text = f"{stream}: {spent[0]:.2f} ms at w = 40, {spent[-1]:.2f} ms at w = 200 (single runs, no interval)"
            checks.append(Check(text, spent[-1] > 1.1 * spent[0]))
    return checks


def _trend(axis: Axis, *, falls: bool, measure: str = "amre", at_most: float = math.inf) -> Evaluate:
    ends = keys_on(axis)[0], keys_on(axis)[-1]
    return lambda results, bd, ba: changes(
        results, _SYNTHETIC, (bd, ba, "plbu", "pbd", "pba"), ends, falls=falls, measure=measure, at_most=at_most
    )


_CLAIMS = (
    _Claim(
        "PBD has a smaller error than BD on the real streams",
        "68 % smaller (Taxi 70.8 % and 63.1 %, Foursquare 69.6 % and 68.4 %)",
        lambda results, bd, ba: is_below(results, _REAL, _MAIN, "pbd", bd),
    ),
    _Claim(
        "PBA has a smaller error than BA on the synthetic streams",
        "24.9 % smaller (ε: TLNS 36.9, Sin 27.7, Log 28.9 %; w: 35.1, 4.2, 16.6 %)",
        lambda results, bd, ba: is_below(results, _SYNTHETIC, _MAIN, "pba", ba),
    ),
    _Claim(
        "PBD has a smaller error than BD on the synthetic streams",
        "consistently",
        lambda results, bd, ba: is_below(results, _SYNTHETIC, _MAIN, "pbd", bd),
    ),
    _Claim(
        "PBA has the smallest error of BD, BA, PLBU, PBD, PBA on the synthetic streams",
        "consistently",
        lambda results, bd, ba: is_lowest(results, _SYNTHETIC, _MAIN, "pba", (bd, ba, "plbu", "pbd")),
    ),
    _Claim(
        "PBD has the smallest error of the five on the real streams",
        "consistently",
        lambda results, bd, ba: is_lowest(results, _REAL, _MAIN, "pbd", (bd, ba, "plbu", "pba")),
    ),
    _Claim(
        "PBA is slightly worse than BA on the real streams",
        "slightly",
        lambda results, bd, ba: is_below(results, _REAL, _MAIN, ba, "pba"),
    ),
    _Claim(
        "PBA is better than PBD on slow (synthetic) streams",
        "significantly",
        lambda results, bd, ba: is_below(results, _SYNTHETIC, _MAIN, "pba", "pbd"),
        baselines=False,
    ),
    _Claim(
        "PBD is better than PBA on fast (real) streams",
        "yes",
        lambda results, bd, ba: is_below(results, _REAL, _MAIN, "pbd", "pba"),
        baselines=False,
    ),
    _Claim("PLBU has the largest error, except on TLNS", "yes", _worst_but_on_tlns),
    _Claim("The error falls as epsilon grows from 0.2 to 1.0", "on all streams", _trend("epsilon", falls=True)),
    _Claim("The error rises as the window grows from 40 to 200", "yes", _trend("window", falls=False)),
    _Claim(
        "That rise is gentle: at most in proportion to the window, 5 times",
        "gently",
        _trend("window", falls=False, at_most=_GENTLY),
    ),
    _Claim(
        "The errors of PBD and PBA are stable while the ratio is below 0.8 (0.1 against 0.7, within 25 %)",
        "relatively stable",
        lambda results, bd, ba: _ratios(results, bd, ba, ends=(0, 3), drop=False),
        baselines=False,
    ),
    _Claim(
        "The errors of PBD and PBA drop when the ratio passes 0.8 (0.7 against 0.9)",
        "significantly",
        lambda results, bd, ba: _ratios(results, bd, ba, ends=(3, 4), drop=True),
        baselines=False,
    ),
    _Claim("AJSD falls as epsilon grows", "for all methods", _trend("epsilon", falls=True, measure="ajsd")),
    _Claim("AJSD rises as the window grows", "for all methods", _trend("window", falls=False, measure="ajsd")),
    _Claim("PBD and PBA have a smaller AJSD than BD on the synthetic streams", "consistently", _both_below_bd),
    _Claim(
        "PBA has the smallest AJSD of the five on the synthetic streams",
        "yes",
        lambda results, bd, ba: is_lowest(results, _SYNTHETIC, _MAIN, "pba", (bd, ba, "plbu", "pbd"), "ajsd"),
    ),
    _Claim("PBD takes the longest and BD the shortest time (TLNS, Sin)", "yes", _slowest_and_quickest),
    _Claim("The time of PBD grows with the window", "yes", _time_of_pbd, baselines=False),
)


def judge(results: Results) -> list[Judged]:
    """Every claim; those that involve BD or BA once at their threshold 1/ε and once at √2/ε, as PBD and PBA use."""
    judged = []
    for claim in _CLAIMS:
        variants = [("1/ε", "bd", "ba"), ("√2/ε", "bd:std", "ba:std")] if claim.baselines else [("-", "bd", "ba")]
        for baseline, bd, ba in variants:
            checks = claim.evaluate(results, bd, ba)
            judged.append(Judged(claim.text, claim.paper, baseline, summary_of(checks), verdict_of(checks)))
    return judged
