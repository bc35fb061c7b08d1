"""What is published from a measurement: the last one, and free improvements of it (spec 11.10).

They look at public numbers only and cost nothing. They feed nothing back: what a probe compares with, and what a
filter learns from, are the measurements themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray, frozen_view
from wevent.core.mechanism import ErrorModel, Estimate, Measurement
from wevent.core.options import Options


class LastValue:
    """Repeat the last measurement until there is a new one; zeros before the first (paper, Algorithm 2, line 9)."""

    def start(self, cells: int, slot: int = 1) -> Estimate:
        return Estimate(frozen_view(np.zeros(cells)), None, None)

    def advance(self, state: Estimate, measurement: Measurement | None) -> tuple[Estimate, Estimate]:
        if measurement is None:
            return state, state
        error = measurement.error
        spread = frozen_view(np.full(len(measurement.values), error.variance**0.5))
        estimate = Estimate(frozen_view(measurement.values.astype(np.float64)), spread, error)
        return estimate, estimate

    def dump(self, state: Estimate) -> Any:
        return [state.values.tolist(), None if state.error is None else list(state.error)]

    def load(self, dumped: Any) -> Estimate:
        values, error = dumped
        if error is None:
            return self.start(len(values))
        return self.advance(self.start(len(values)), Measurement(np.array(values, dtype=float), ErrorModel(*error)))[1]


@dataclass(frozen=True, slots=True)
class PostProcessor:
    """What is done to every histogram before it goes out.

    Attributes:
        nonnegative: no value below 0.
        known_total: the values sum to this declared constant: every registered user is present in every slot. Never the
            number present, which is data; only under `replace`, where the number of users is no secret.
        whole: round to whole numbers, keeping a known total.
    """

    nonnegative: bool = False
    known_total: int | None = None
    whole: bool = False

    @classmethod
    def of(cls, options: Options) -> PostProcessor:
        return cls(options.nonnegative, options.known_total, options.round)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the polished histogram, read-only; finite for every finite one."""
        with np.errstate(all="ignore"):  # also where the caller's numpy raises
            if self.known_total is not None:
                values = _onto_total(values, float(self.known_total), nonnegative=self.nonnegative)
            elif self.nonnegative:
                values = np.maximum(values, 0.0)
            if self.whole:
                values = np.rint(values) if self.known_total is None else _round_to_total(values, self.known_total)
        values.setflags(write=False)
        return values


def _onto_total(values: FloatArray, total: float, *, nonnegative: bool) -> FloatArray:
    """Return the nearest histogram with this total: a shift; with no negative values, a shift of those that stay positive."""
    if not nonnegative:
        shifted: FloatArray = values + (total - values.sum()) / len(values)
        return shifted
    descending = np.sort(values)[::-1]
    shifts = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    positive = np.flatnonzero(descending - shifts > 0.0)
    if not len(positive):  # a total of 0, or values beside which it is lost
        alone = np.zeros_like(values)
        alone[values.argmax()] = total
        return alone
    projected: FloatArray = np.maximum(values - shifts[positive[-1]], 0.0)
    return projected


def _round_to_total(values: FloatArray, total: int) -> FloatArray:
    """Round down, then give what is missing to the largest fractions."""
    floors = np.floor(values)
    missing = min(max(round(total - float(floors.sum())), 0), len(floors))  # beyond 2^53 a sum of floats is not exact
    order = np.argsort(floors - values, kind="stable")
    floors[order[:missing]] += 1.0
    return floors
