"""The bank of models a filter averages over: how fast may a cell change? (spec 11.2 and 11.6)

Everything is relative to a cell's scale s = x(1 − x/n), the variance of a count of independent users: a model is the same
for a cell of ten users and one of ten thousand. Level models walk with variance q·s per slot; trend models have a slope
that walks; v·s is an extra variance that is new in every slot (users who come and go). One more model, the null, says that
the cell holds nothing the noise would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.seasons import Seasons, seasons_of

_MEMORYLESS = 0.025  # prior weight beside others' 1
_SEASONAL = 0.1  # what seasonal models have of the prior that is not the null's


@dataclass(frozen=True)
class Bank:
    """Model grid: level models first, then trend models, then seasonal ones.

    Attributes:
        walk: q per model.
        flicker: v per model.
        levels: how many of them are level models.
        prior: prior weight per model, the null's last.
        seasons: how the last models swing with a public cycle; None: there are no such.
    """

    walk: FloatArray
    flicker: FloatArray
    levels: int
    prior: FloatArray
    seasons: Seasons | None = None

    @property
    def trends(self) -> slice:
        """Where the trend models are."""
        return slice(self.levels, self.seasonal.start)

    @property
    def seasonal(self) -> slice:
        """Where the seasonal models are."""
        models = len(self.walk)
        return slice(models if self.seasons is None else models - len(self.seasons.drift), models)


def default_bank() -> Bank:
    """Walks from 1e-7 to 1e3 of the scale; the faster beyond 1, the rarer; trends at a half."""
    level = [
        (10.0**exponent, flicker, min(1.0, 10.0**-exponent) * (2.0 / flicker if flicker else 1.0))
        for exponent in range(-4, 4)
        for flicker in (0.0, 1.0, 8.0)
        if exponent < 1 or flicker == 1.0
    ]
    level += [(1e-7, flicker, 1.0 + flicker) for flicker in (0.0, 1.0)]
    # A stream without memory tells soon; believed any earlier, these would shorten others' periods.
    level += [(walk, flicker, _MEMORYLESS) for walk in (1e-7, 1e-3) for flicker in (64.0, 512.0)]
    trend = [
        (10.0**exponent, flicker, 0.5 if exponent < -2 else 0.1) for exponent in range(-6, -1) for flicker in (0.0, 1.0)
    ]
    walk, flicker, weight = np.array(level + trend).T
    prior = np.append(0.7 * weight / weight.sum(), 0.3)
    return Bank(walk, flicker, len(level), prior)


def bank_with_cycles(cycles: Sequence[float], calendar: Sequence[int] = ()) -> Bank:
    """The default bank, and seasonal models that have a tenth of what is not the null's; without cycles the default one.

    Args:
        cycles, calendar: as of `seasons_of`.
    """
    bank = default_bank()
    if not cycles:
        return bank
    seasons = seasons_of(cycles, calendar)
    models = len(seasons.drift)
    held = bank.prior[:-1]
    prior = np.concatenate(
        [(1.0 - _SEASONAL) * held, np.full(models, _SEASONAL * held.sum() / models), bank.prior[-1:]]
    )
    walk, flicker = np.append(bank.walk, seasons.walk), np.append(bank.flicker, seasons.flicker)
    return Bank(walk, flicker, bank.levels, prior, seasons)


def period_errors(
    bank: Bank,
    periods: IntArray,
    noise: FloatArray,
    composition: FloatArray,
    scale: FloatArray,
    squared_reach: FloatArray | None = None,
) -> FloatArray:
    """The mean squared error over a period of k slots, of each model in steady state; periods × models × scales.

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
