"""What may tell two neighbouring streams apart: numbers and words, each made of a run's outputs alone.

The attacker of spec 1 knows everything but the victim: both streams, the mechanism and its settings. A tell may use all that;
it sees nothing of permits, ledger or randomness.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from wevent.auditing.black_box.observations import Observations
from wevent.auditing.black_box.stream_pairs import Pair
from wevent.core.arrays import BoolArray, FloatArray

Words = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Features:
    """Features of runs, by name.

    Attributes:
        numbers: whose size may tell.
        words: of which one may tell that the other stream never or seldom shows; made when they are asked for.
    """

    numbers: Mapping[str, FloatArray]
    words: Mapping[str, Callable[[], Words]]


def find_features(pair: Pair, seen: Observations) -> Features:
    """Return all features of runs on one of two streams; the same for both."""
    values = np.nan_to_num(seen.values, nan=0.0, posinf=1e300, neginf=-1e300)
    numbers = {
        **_of_values(pair, values, seen.fresh()),
        **_of_dissimilarity(pair, values, seen),
        **_of_low_bits(pair, values),
    }
    return Features(numbers, _words(pair, values, seen))


def score_features(tells: Features) -> FloatArray:
    """Return the features that a score is learnt from, those of a likelihood ratio; runs × features."""
    chosen = [name for name in tells.numbers if not name.startswith(_BITS)]
    columns = np.stack([tells.numbers[name] for name in chosen], axis=1)
    result: FloatArray = np.clip(columns, -1e6, 1e6)
    return result


_BITS = "low bits"
_ENDS = tuple(sign * 2.0**bits - (sign > 0) for bits in (15, 31, 53, 63) for sign in (-1, 1))
_BESIDE = 8.0


def _of_values(pair: Pair, values: FloatArray, fresh: BoolArray) -> dict[str, FloatArray]:
    """Add up values over the span that the victim changed, and count measurements.

    The log-likelihood ratio of integer Laplace noise around two counts is the value cut off at them, times 1/scale: linear
    between, constant outside. A sum of these over the slots is the best test there is of several releases with one scale.
    """
    first, last = pair.span
    here, there = pair.totals()
    changed = _changed(pair)
    low, high = np.minimum(here, there), np.maximum(here, there)
    towards = np.sign(here - there) if (here != there).any() else np.ones_like(here)
    cut = (np.clip(values, low, high) - low) * towards
    cut[:, :, ~changed] = 0.0
    in_span = cut[:, first:last].sum(axis=2)
    measured = in_span * fresh[:, first:last]
    raw = (values * towards)[:, first:last].sum(axis=(1, 2))
    others = values[:, :, ~changed].sum(axis=2) if (~changed).any() else np.zeros(values.shape[:2])
    apart = values[:, first:last, int(np.argmax(changed))] - values[:, first:last, -1]
    numbers = {
        "values cut off at the two counts, added up": in_span.sum(axis=1),
        "measured values cut off at the two counts, added up": measured.sum(axis=1),
        "values added up": raw,
        "largest value": (values * towards)[:, first:last].max(axis=(1, 2)),
        "smallest value": (values * towards)[:, first:last].min(axis=(1, 2)),
        "values of cells that do not change": others[:, first:last].sum(axis=1),
        "difference between two cells": apart.sum(axis=1),
        "slots measured": fresh.sum(axis=1).astype(np.float64),
        "slots measured in the span": fresh[:, first:last].sum(axis=1).astype(np.float64),
        "values that repeat": (np.diff(values, axis=1) == 0.0).sum(axis=(1, 2)).astype(np.float64),
        "values after the span": (values * np.where(changed, 1.0, 0.0))[:, last:].sum(axis=(1, 2)),
    }
    if last - first > 1:  # each release may have a scale of its own
        numbers.update({f"value of slot {slot + 1}, cut off": in_span[:, slot - first] for slot in range(first, last)})
    return numbers


def _changed(pair: Pair) -> BoolArray:
    """Return the cells that the victim is in; all of them if no count should change at all."""
    here, there = pair.totals()
    changed: BoolArray = (here != there).any(axis=0)
    return changed if changed.any() else np.ones_like(changed)


def _of_dissimilarity(pair: Pair, values: FloatArray, seen: Observations) -> dict[str, FloatArray]:
    """Return the noisy distance to the last measurement, cut off at its values in either stream (spec 7)."""
    told = ~np.isnan(seen.dissimilarity)
    here, there = (np.abs(truth - _last_measured(values, seen.fresh())).sum(axis=2) for truth in pair.totals())
    total = np.nan_to_num(seen.dissimilarity) * pair.cells
    low, high = np.minimum(here, there), np.maximum(here, there)
    cut = np.where(told, (np.clip(total, low, high) - (low + high) / 2) * np.sign(here - there), 0.0)
    first, last = pair.span
    return {
        "distances cut off at the two that are possible, added up": cut[:, first:last].sum(axis=1),
        "distances added up": np.where(told, total, 0.0)[:, first:last].sum(axis=1),
    }


def _last_measured(values: FloatArray, fresh: BoolArray) -> FloatArray:
    """Return the last measured values before each slot; zeros before the first."""
    before = np.zeros_like(values)
    for slot in range(1, values.shape[1]):
        before[:, slot] = np.where(fresh[:, slot - 1, None], values[:, slot - 1], before[:, slot - 1])
    return before


def _of_low_bits(pair: Pair, values: FloatArray) -> dict[str, FloatArray]:
    """Return the fineness of values: float noise leaves the low bits of the value that it is added to (Mironov 2012)."""
    first, last = pair.span
    shown = values[:, first:last][:, :, _changed(pair)]
    mantissas, exponents = np.frexp(shown)
    whole = np.abs(mantissas * 2.0**53).astype(np.int64)
    trailing = np.where(whole > 0, np.log2(np.maximum(whole & -whole, 1)), 53.0)
    fineness = np.where(whole > 0, 53.0 - trailing - exponents, 0.0)
    return {
        f"{_BITS}: bits after the point, the most": fineness.max(axis=(1, 2)),
        f"{_BITS}: part after the point": (shown - np.floor(shown)).sum(axis=(1, 2)),
    }


def _words(pair: Pair, values: FloatArray, seen: Observations) -> dict[str, Callable[[], Words]]:
    span = values[:, slice(*pair.span)]
    parts = {
        "the whole transcript": values,
        "values of the span": span,
        "values of the first slot of the span": span[:, 0],
        "difference between two cells, exactly": span[:, :, 0] - span[:, :, -1],
    }
    for lag in (2**power for power in range(1, (pair.cells - 1).bit_length())):  # noise that repeats in blocks
        parts[f"difference between cells {lag} apart, exactly"] = span[:, :, 0] - span[:, :, lag]
    words: dict[str, Callable[[], Words]] = {
        "pattern of outcomes": lambda: np.array([" ".join(run) for run in seen.outcomes]),
        "value beside the end of a number type": lambda: _beside_ends(span[:, :, _changed(pair)]),
        **{name: partial(_digests, part) for name, part in parts.items()},
    }
    return {**words, "thresholds": partial(np.array, list(seen.thresholds))}


def _beside_ends(values: FloatArray) -> Words:
    """Return the distance to the ends of 16, 32 and 64 bits if it is small: noise that is cut off shows the true value."""
    told = np.full(len(values), "none", dtype="<U24")
    for end in _ENDS:
        away = (values - end).reshape(len(values), -1)
        nearest = np.take_along_axis(away, np.abs(away).argmin(axis=1)[:, None], axis=1)[:, 0]
        there = np.abs(nearest) <= _BESIDE
        told[there] = [f"{distance:+g}" for distance in nearest[there]]
    return told


def _digests(runs: FloatArray) -> Words:
    return np.array([_digest(run) for run in runs])


def _digest(numbers: FloatArray) -> str:
    """Return few short numbers as they are, others as a hash."""
    if numbers.size <= 4 and bool((numbers == np.rint(numbers)).all()) and bool((np.abs(numbers) < 1e5).all()):
        return " ".join(f"{number:g}" for number in numbers.ravel().tolist())
    return hashlib.blake2b(numbers.tobytes(), digest_size=8).hexdigest()
