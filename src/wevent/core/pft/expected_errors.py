"""What a filter expects of the slots to come: all that a planning policy may ask of it (spec 11.6 and 11.8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.pft.constants import HORIZON, IGNORANCE_RELEASES, JUMP_RATE, JUMP_RATE_SLOTS
from wevent.core.pft.models import ModelGrid


@dataclass(frozen=True, slots=True)
class FilterForecast:
    """Errors that are expected of the slots to come, from what a filter has learnt: public numbers only.

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
    bank: ModelGrid
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
        believed = JUMP_RATE * JUMP_RATE_SLOTS * self.jump
        rate = (believed + squared) / (JUMP_RATE_SLOTS + slots)
        by_model = by_model + (rate * (periods - 1) / 2.0)[:, None]  # a jump waits half a period to be seen
        power = 1.0 - 0.5 * float(np.exp(-self.releases / IGNORANCE_RELEASES))
        average: FloatArray = (mass * by_model**power).sum(axis=1) ** (1.0 / power)
        return average

    def _binned(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return model weights summed over cells of about the same scale, these scales, and r²: evidence pooled."""
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
class CalibrationForecast:
    """What is expected with main sums and anchors.

    Attributes:
        counts: of the counts themselves.
        since: slots since the last anchor.
        alarm: what jumps since the last anchor may have added to squared offsets, average over cells.
        direct: the variance per cell of what is known from anchors alone, average over cells.
        offset_errors: what offsets cost per cell for designs: CV² of weights, slots between anchors, noise of an anchor.
    """

    counts: FilterForecast
    since: int
    alarm: float
    direct: float
    offset_errors: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

    def learning(self, every: FloatArray, noise: FloatArray) -> FloatArray:
        """Return what it costs per cell, on average over the horizon, until anchors alone are known as well as they can be.

        After m anchors the variance is at most noise/m, whatever it was.
        """
        step = every * noise / HORIZON
        cost: FloatArray = step * np.log1p(self.direct / step)
        return cost


def period_errors(
    bank: ModelGrid,
    periods: IntArray,
    noise: FloatArray,
    composition: FloatArray,
    scale: FloatArray,
    squared_reach: FloatArray | None = None,
) -> FloatArray:
    """Return the mean squared error over a period of k slots, of each model in steady state; periods × models × scales.

    Level models: the Riccati equation of a random walk observed every k slots. Trend models: Kalata's tracking index. To
    the error right after a release the k − 1 slots of growing ignorance are added. Seasonal models: the level's formula,
    with what is not known of the swing as one more step.

    Args:
        bank: the models.
        periods: k candidates.
        noise: noise variance of one release for each k.
        composition: CV² of the weights for each k.
        scale: cell scales s.
        squared_reach: the mean of r² for cells of each scale, for seasonal models.
    """
    k = periods[:, None, None].astype(np.float64)
    fresh = noise[:, None, None]
    mixture = composition[:, None, None] * scale
    walk, flicker = bank.walk[None, :, None] * scale, bank.flicker[None, :, None] * scale
    level, trend = slice(0, bank.levels), bank.trends
    levels = _level_errors(k, fresh, walk[:, level], flicker[:, level])
    errors = [levels, _trend_errors(k, fresh, walk[:, trend], flicker[:, trend])]
    if bank.seasons is not None and squared_reach is not None:
        q, v = walk[:, bank.seasonal], flicker[:, bank.seasonal]
        at_end, on_average = bank.seasons.unknown_swings(periods, fresh + v, squared_reach)
        errors.append(_level_errors(k, fresh, q, v, at_end) + on_average)
    return np.concatenate(errors, axis=1) + mixture


def _level_errors(
    k: Any, fresh: FloatArray, q: FloatArray, v: FloatArray, swing: FloatArray | float = 0.0
) -> FloatArray:
    """Of a level that walks and flickers; over a period it moves by a `swing` of this variance too."""
    observed = fresh + v
    step = k * q + swing
    before = (step + np.sqrt(step * step + 4.0 * step * observed)) / 2.0
    after = before * observed / (before + observed)
    at_release = (before + v) * fresh / (before + v + fresh)
    errors: FloatArray = (at_release + (k - 1.0) * (after + v) + q * k * (k - 1.0) / 2.0) / k
    return errors


def _trend_errors(k: Any, fresh: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Of a level whose slope walks, by Kalata's tracking index λ = √(k³Q/O)."""
    observed = fresh + v
    index = np.sqrt(k**3 * q / observed)
    reach = index + np.sqrt(8.0 * index + index * index)
    # r = √(1 − α) and 1 − r, neither by a difference, which would cancel; then α = 1 − r² and β = 2(1 − r)²
    root, rest = 4.0 / (4.0 + reach), reach / (4.0 + reach)
    level_variance, cross = rest * (1.0 + root) * observed, 2.0 * rest * rest * observed / k
    slope_variance = 4.0 * rest**3 / (k**2 * root) * observed  # β(α − β/2)/(1 − α)/k²
    errors: FloatArray = (
        level_variance
        + v
        + (k - 1.0) * cross
        + (k - 1.0) * (2.0 * k - 1.0) / 6.0 * slope_variance
        + q * (k - 1.0) * k * (k - 1.0) / 12.0
    )
    return errors
