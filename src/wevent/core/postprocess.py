"""Free improvements of what is published: they look at public numbers only and cost nothing (spec 11.10).

They act after everything else and feed nothing back: what a probe compares with, and what a filter learns from, are the
measurements themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.settings import Options


@dataclass(frozen=True, slots=True)
class Polish:
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
    def of(cls, options: Options) -> Polish:
        """What the options ask for."""
        return cls(options.nonnegative, options.known_total, options.round)

    def __call__(self, values: FloatArray) -> FloatArray:
        """The polished histogram, read-only; finite for every finite one."""
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
    """The nearest histogram with this total: a shift; with no negative values, a shift of those that stay positive."""
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
