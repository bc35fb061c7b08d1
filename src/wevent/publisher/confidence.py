"""What published numbers say about the truth: what a slot came to, in words, and a 95 % interval where one is honest.

An interval is honest if it holds the true count with its probability. The noise of one measurement is the whole error only
in the slot that was measured, and only if every class was counted in full: sampling leaves people out, weights mix the
classes, and the age of a repeat has no bound. A filter's error is meant to be the whole error; it is trusted where nothing
else is at work: no look before a release, nobody left out, no local reports.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.estimators import Weighting
from wevent.core.mechanism import ErrorModel
from wevent.core.options import Options
from wevent.core.pft.filter import Filter
from wevent.core.step import OutcomeKind

OutcomeWord = Literal["fresh", "repeated", "estimated", "nullified"]

OUTCOMES: tuple[OutcomeWord, ...] = ("fresh", "repeated", "estimated", "nullified")
"""Measured in its slot; the numbers of an earlier slot; a filter's prediction for this slot; a slot that pays back."""

LEVEL = 0.95
"""The probability of the intervals that are published."""


class Traits(NamedTuple):
    """What a built-in mechanism's options make of it.

    Attributes:
        filtered: whether it publishes a filter's estimates.
        trusted: whether the error of these is known to be the whole error.
    """

    filtered: bool
    trusted: bool


def traits_of(options: Options) -> Traits | None:
    """Return the traits under these options; None if the mechanism is not built in: a reader may not have it."""
    return _traits(options.mechanism, options.smoothing, options.estimator)


@lru_cache(maxsize=256)
def _traits(name: str, smoothing: Any, estimator: Any) -> Traits | None:
    row = BUILT_IN.get(name)
    if row is None:
        return None
    options = Options(mechanism=name, smoothing=smoothing, estimator=estimator)
    whole = row.shared_budget or isinstance(row.estimator(options), Weighting)
    return Traits(isinstance(row.smoother(options), Filter), whole and not row.probes and not row.local)


def outcome_word(kind: OutcomeKind, *, estimate: bool) -> OutcomeWord:
    """Return what a slot came to, in words.

    Args:
        kind: what the step came to, as the core and journals know it.
        estimate: whether the numbers are a filter's.
    """
    if kind == "published":
        return "fresh"
    return "estimated" if kind == "repeated" and estimate else kind


def counts_everyone(publication: IntArray, sizes: IntArray, threshold: int | None) -> bool:
    """Return whether a measurement counted every class in full: none with members was charged less than the threshold.

    A class below it was sampled, or weighed less than others; refunded or not, it was charged less.
    """
    return threshold is not None and bool((publication[sizes > 0] >= threshold).all())


def is_whole_error(
    law: ErrorModel | None, traits: Traits | None, options: Options, *, fresh: bool, everyone: bool
) -> bool:
    """Return whether a stated error is all there is between a release and the truth.

    Args:
        law: of the stated error.
        traits: of the mechanism; of one that is not built in nothing is known.
        options: what it runs with; a declared total moves every value onto it, by amounts that no error states.
        fresh: whether the slot was measured.
        everyone: see `counts_everyone`.
    """
    if law is None or traits is None or options.known_total is not None:
        return False
    if law.law == "estimate":
        return traits.trusted
    return law.law == "laplace" and fresh and everyone  # of local reports only a part of the error is stated


def interval_of(
    values: FloatArray, std_error: FloatArray, error: ErrorModel, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds per cell under the law of the error."""
    if error.law == "laplace":
        reach: Any = laplace_quantile(error.scale, level)
    else:
        reach = _normal_quantile(level) * std_error
    if error.law == "estimate":  # counts are whole and not negative
        return np.floor(np.maximum(values - reach, 0.0)), np.ceil(values + reach)
    return values - reach, values + reach


@lru_cache(maxsize=16)
def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2.0)


def laplace_quantile(scale: float, level: float) -> int:
    """Return the smallest m with P(|X| ≤ m) ≥ level: P(|X| > m) = 2·q^(m+1)/(1 + q), q = exp(−1/scale)."""
    q = math.exp(-1.0 / scale)
    return max(0, math.ceil(-scale * math.log((1.0 - level) * (1.0 + q) / 2.0)) - 1)
