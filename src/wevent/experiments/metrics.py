"""How far releases are from the truth, and what they cost. Simulation only: the truth is never published.

Arrays are slots × … × cells; every measure is per slot first, its mean over slots is the figure in a table.
"""

from __future__ import annotations

import math

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.requirements import Population

SANITY = 0.001  # of the slot total: the smallest count an error is divided by


def squared_errors(releases: FloatArray, truth: FloatArray) -> FloatArray:
    """(1/d)·‖r − c‖² per slot. Its mean is AMRE: the paper calls it relative, its formula is the mean squared error."""
    errors: FloatArray = ((releases - truth) ** 2).mean(axis=-1)
    return errors


def absolute_errors(releases: FloatArray, truth: FloatArray) -> FloatArray:
    """(1/d)·Σ|r − c| per slot."""
    errors: FloatArray = np.abs(releases - truth).mean(axis=-1)
    return errors


def relative_errors(releases: FloatArray, truth: FloatArray) -> FloatArray:
    """Mean over cells of |r − c| / max(c, 0.1 % of the slot total); NaN for an empty slot, which has no such error."""
    bound = SANITY * truth.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors: FloatArray = (np.abs(releases - truth) / np.maximum(truth, bound)).mean(axis=-1)
    return np.where(bound[..., 0] > 0.0, errors, np.nan)


def jensen_shannon(releases: FloatArray, truth: FloatArray, *, normalised: bool = False) -> FloatArray:
    """½Σ(r ln(r/v) + c ln(c/v)), v = (r + c)/2, per slot: on raw counts as in the authors' code, or on distributions.

    Estimates at or below 0 count as 0 and their terms are skipped. Normalised, a side without any mass is as far from
    one with mass as possible, ln 2.
    """
    estimate = np.maximum(releases, 0.0)
    actual = np.asarray(truth, dtype=np.float64)
    if not normalised:
        return _divergence(estimate, actual)
    sums = estimate.sum(axis=-1), actual.sum(axis=-1)
    shares = [
        values / np.where(total > 0.0, total, 1.0)[..., None]
        for values, total in zip((estimate, actual), sums, strict=True)
    ]
    empty = (sums[0] > 0.0).astype(int) + (sums[1] > 0.0)
    return np.where(empty == 2, _divergence(*shares), np.where(empty == 1, math.log(2.0), 0.0))


def _divergence(left: FloatArray, right: FloatArray) -> FloatArray:
    middle = (left + right) / 2.0
    total: FloatArray = 0.5 * (_terms(left, middle) + _terms(right, middle)).sum(axis=-1)
    return total


def _terms(values: FloatArray, middle: FloatArray) -> FloatArray:
    positive = values > 0.0
    ratio = np.divide(values, middle, out=np.ones_like(middle), where=positive)
    terms: FloatArray = values * np.log(ratio)
    return terms


def coverage(truth: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Return the share of (slot, cell) whose truth is within the stated interval; NaN ends: nothing is stated there.

    A release that is not filtered states an interval for its noise only: sampling and the age of a repeat are not in it.
    """
    stated = np.broadcast_to(np.isfinite(low), truth.shape)
    if not stated.any():
        return math.nan
    return float(((low <= truth) & (truth <= high))[stated].mean())


def worst_window_share(charges: IntArray, population: Population) -> float:
    """Return the largest part of its epsilon that any class spent within any of its windows.

    Computed from the charges of slots × classes alone, with sums of its own: not the ledger's.
    """
    totals = np.vstack([np.zeros((1, charges.shape[1]), dtype=np.int64), np.cumsum(charges, axis=0)])
    worst = 0.0
    for row, requirement in enumerate(population.classes):
        width = min(requirement.window, len(charges))
        spent = totals[width:, row] - totals[:-width, row]
        worst = max(worst, int(spent.max()) / requirement.nano)
    return worst
