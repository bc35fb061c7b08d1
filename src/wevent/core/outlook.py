"""What a filter expects of the slots to come: all that a planning policy may ask of it (spec 11.6 and 11.8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.bank import Bank, period_errors

_IGNORANCE = 50.0  # releases over which the models' spread turns from ignorance into difference between cells
_JUMP_RATE = 5e-5  # jumps of half the scale per slot, believed before anything was seen …
_JUMP_SLOTS = 500.0  # … for this many slots
HORIZON = 500.0
"""Slots over which learning must pay."""


@dataclass(frozen=True, slots=True)
class FilterOutlook:
    """An `Outlook` from what a filter has learnt.

    Attributes:
        releases: measurements so far.
        gain: the average Kalman gain: how much of a measurement's noise stays in the estimate.
        scale: the average s over cells.
        scales: s per cell.
        weights: model probabilities per cell; models × cells, without the null.
        jumps: discounted squared surprise per cell, and the slots it was seen in.
        bank: the models.
        reach: r per cell, with seasonal models.
    """

    releases: int
    gain: float
    scale: float
    scales: FloatArray
    weights: FloatArray
    jumps: FloatArray
    bank: Bank
    reach: FloatArray | None = None

    @property
    def cycles(self) -> tuple[float, ...]:
        """The cycles that are learnt, slots each."""
        return () if self.bank.seasons is None else self.bank.seasons.cycles

    @property
    def jump(self) -> float:
        """The square of a jump of half the scale, averaged over cells."""
        return float(((0.5 * self.scales) ** 2).sum()) / len(self.scales)

    def expected_errors(self, periods: IntArray, noise: FloatArray, composition: FloatArray) -> FloatArray:
        """For each period, the error over models and cells.

        Early the spread over models is ignorance, so root errors are averaged and no model dominates by its size; later it
        is what cells differ by, and errors are averaged.
        """
        weights, scales, reach = self._binned()
        errors = period_errors(self.bank, periods, noise, composition, scales, reach)
        mass = weights.sum(axis=1) / len(self.scales)
        by_model = (errors * weights).sum(axis=2) / np.maximum(weights.sum(axis=1), 1e-300)
        squared, slots = self.jumps.tolist()
        believed = _JUMP_RATE * _JUMP_SLOTS * self.jump
        rate = (believed + squared) / (_JUMP_SLOTS + slots)
        by_model = by_model + (rate * (periods - 1) / 2.0)[:, None]  # a jump waits half a period to be seen
        power = 1.0 - 0.5 * float(np.exp(-self.releases / _IGNORANCE))
        average: FloatArray = (mass * by_model**power).sum(axis=1) ** (1.0 / power)
        return average

    def _binned(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Model weights summed over cells of about the same scale, these scales, and r²: evidence pooled, cost bounded."""
        bins = np.floor(2.0 * np.log2(self.scales)).astype(np.int64)
        bins -= bins.min()
        sizes = np.bincount(bins)
        held = sizes > 0
        models = np.arange(len(self.weights))[:, None]
        places = models * len(sizes) + bins  # model after model, in one call: it counts where cells are few
        weights: FloatArray = np.bincount(places.ravel(), self.weights.ravel(), models.size * len(sizes)).astype(
            np.float64
        )
        reach = None if self.reach is None else np.bincount(bins, self.reach**2)[held] / sizes[held]
        return weights.reshape(models.size, -1)[:, held], np.bincount(bins, self.scales)[held] / sizes[held], reach


@dataclass(frozen=True, slots=True)
class AnchorOutlook:
    """What is expected with main sums and anchors.

    Attributes:
        counts: of the counts themselves.
        since: slots since the last anchor.
        alarm: what jumps since the last anchor may have added to squared offsets, average over cells.
        direct: the variance per cell of what is known from anchors alone, average over cells.
        offset_errors: what offsets cost per cell for designs: CV² of weights, slots between anchors, noise of an anchor.
    """

    counts: FilterOutlook
    since: int
    alarm: float
    direct: float
    offset_errors: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

    def learning(self, every: FloatArray, noise: FloatArray) -> FloatArray:
        """What it costs per cell, on average over the horizon, until anchors alone are known as well as they can be.

        After m anchors the variance is at most noise/m, whatever it was.
        """
        step = every * noise / HORIZON
        cost: FloatArray = step * np.log1p(self.direct / step)
        return cost
