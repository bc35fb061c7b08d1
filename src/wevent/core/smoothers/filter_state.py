"""What a filter knows between two slots, and how it is copied and taken apart."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.smoothers.season_state import SeasonState

SMALLEST = 0.05  # no scale below this: a cell is never known to be still
_BLOCK = 512  # cells that are corrected together


@dataclass(slots=True)
class FilterState:
    """What the filter knows; models × cells unless said otherwise, the null model last.

    Attributes:
        level, slope: means (slope: trend models only).
        level_variance, cross_variance, slope_variance: their covariances (the latter two: trend models only).
        weights: model probabilities per cell.
        pooled: model probabilities over all cells.
        scale: s per cell.
        slow: slowly following level per cell.
        composition: variance per cell from the mix of classes.
        path: per cell the coefficients of estimate and variance as polynomials of the slots since the release.
        null_sums: discounted sums behind `null_mean` and `null_variance`.
        calibration: discounted squared residuals, predicted variances, and the variance of the former.
        jumps: discounted squared surprise per cell, slots.
        null_mean, null_variance: what a cell of the null holds.
        inflation: factor on stated variances, from `calibration`.
        gain: average Kalman gain.
        users: n.
        releases: measurements so far.
        gap: slots since the last one.
        season: of the seasonal models, if there are any.
    """

    level: FloatArray
    slope: FloatArray
    level_variance: FloatArray
    cross_variance: FloatArray
    slope_variance: FloatArray
    weights: FloatArray
    pooled: FloatArray
    scale: FloatArray
    slow: FloatArray
    composition: FloatArray
    path: FloatArray
    null_sums: FloatArray
    calibration: FloatArray
    jumps: FloatArray
    null_mean: float = 0.0
    null_variance: float = SMALLEST
    inflation: float = 1.0
    gain: float = 1.0
    users: int = 0
    releases: int = 0
    gap: int = 0
    season: SeasonState | None = None


_NAMES = tuple(field.name for field in fields(FilterState))
_POOLED = frozenset(("pooled", "null_sums", "calibration", "jumps"))  # arrays that have no cells
_values = attrgetter(*_NAMES)


def scale_of(level: FloatArray, users: int) -> FloatArray:
    """s = x(1 − x/n): the variance of a count of independent users."""
    inside = np.minimum(np.maximum(level, 0.0), float(users))
    return np.maximum(inside * (1.0 - inside / max(users, 1)), SMALLEST)


def copied(state: FilterState, *, deep: bool = True) -> FilterState:
    """A state of its own; arrays are copied only where they will change."""
    values: tuple[Any, ...] = _values(state)
    if deep:
        values = tuple([value.copy() if isinstance(value, (np.ndarray, SeasonState)) else value for value in values])
    return FilterState(*values)


def blocks(cells: int) -> list[slice]:
    """Few enough cells at a time that what is computed for all their models stays in the processor's cache."""
    return [slice(first, min(first + _BLOCK, cells)) for first in range(0, cells, _BLOCK)]


def part_of(state: FilterState, block: slice) -> FilterState:
    """The state of a block of cells, to be changed in place: it shares its arrays with the whole."""
    if block.stop - block.start == len(state.slow):
        return state
    values: list[Any] = [
        value[..., block] if isinstance(value, (np.ndarray, SeasonState)) and name not in _POOLED else value
        for name, value in zip(_NAMES, _values(state), strict=True)
    ]
    return FilterState(*values)
