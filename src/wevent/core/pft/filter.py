"""A filter's estimate from measurements: Kalman filters per cell, averaged by how well they predict (spec 11.3 to 11.5).

Pure post-processing: the state is a function of past measurements and public settings. Evidence is pooled over cells where
single cells say too little: which models fit, what empty cells hold, how far the stated errors are off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray, any_true, frozen_view, packed, unpacked
from wevent.core.mechanism import ErrorModel, Estimate, Measurement
from wevent.core.pft.constants import (
    CELL_RESTART,
    CELLS_AT_ONCE,
    EM_ROUNDS,
    MODEL_SWITCH,
    POOL_PACE,
    PRIOR_CELLS,
    SMALLEST_SCALE,
    SURPRISE,
    SURPRISE_MEMORY,
)
from wevent.core.pft.expected_errors import FilterForecast
from wevent.core.pft.likelihood import corrected_variance, laplace_on_gaussian
from wevent.core.pft.models import ModelGrid, SeasonalState, default_models


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
    null_variance: float = SMALLEST_SCALE
    inflation: float = 1.0
    gain: float = 1.0
    users: int = 0
    releases: int = 0
    gap: int = 0
    season: SeasonalState | None = None


_NAMES = tuple(field.name for field in fields(FilterState))
_POOLED = frozenset(("pooled", "null_sums", "calibration", "jumps"))  # arrays that have no cells
_values = attrgetter(*_NAMES)


def scale_of(level: FloatArray, users: int) -> FloatArray:
    """Return s = x(1 − x/n): the variance of a count of independent users."""
    inside = np.minimum(np.maximum(level, 0.0), float(users))
    return np.maximum(inside * (1.0 - inside / max(users, 1)), SMALLEST_SCALE)


def copied(state: FilterState, *, deep: bool = True) -> FilterState:
    """Return a state of its own; arrays are copied only where they will change."""
    values: tuple[Any, ...] = _values(state)
    if deep:
        values = tuple([value.copy() if isinstance(value, (np.ndarray, SeasonalState)) else value for value in values])
    return FilterState(*values)


def blocks(cells: int) -> list[slice]:
    """Split cells so that what is computed for all their models stays in the processor's cache."""
    return [slice(first, min(first + CELLS_AT_ONCE, cells)) for first in range(0, cells, CELLS_AT_ONCE)]


def part_of(state: FilterState, block: slice) -> FilterState:
    """Return the state of a block of cells, to be changed in place: it shares its arrays with the whole."""
    if block.stop - block.start == len(state.slow):
        return state
    values: list[Any] = [
        value[..., block] if isinstance(value, (np.ndarray, SeasonalState)) and name not in _POOLED else value
        for name, value in zip(_NAMES, _values(state), strict=True)
    ]
    return FilterState(*values)


class InitialEstimate(NamedTuple):
    """Level, its variance, and the probability that the cell is empty, per cell."""

    level: FloatArray
    variance: FloatArray
    null: FloatArray


def initial_estimate(measurement: Measurement) -> InitialEstimate:
    """Fit levels from a mixture of zero and half-normals of doubling widths, whose weights are fitted by EM."""
    values, noise = measurement.values, measurement.error.variance
    deviation, scale = noise**0.5, (noise / 2.0) ** 0.5
    top = max(2.0, float(np.abs(values).max()))
    doublings = np.arange(-2, max(1, math.ceil(math.log2(top / deviation))) + 2)
    widths = np.concatenate([[0.0], deviation * 2.0**doublings])
    prior_variance = np.repeat(widths[:, None] ** 2 + 1e-6 * noise, len(values), axis=1)
    log_density, score, information = laplace_on_gaussian(np.tile(values, (len(widths), 1)), prior_variance, scale)
    log_density[1:] += np.where(values > 0.0, 0.5, -0.5)  # levels are not negative: the mass is on the right side
    density = np.exp(log_density - log_density.max(axis=0))

    start = np.ones(len(widths))
    start[0] = 2.0
    start /= start.sum()
    weights = start
    for _ in range(EM_ROUNDS):
        membership = weights[:, None] * density
        membership /= membership.sum(axis=0)
        weights = (membership.sum(axis=1) + start) / (len(values) + 1)

    present = membership[1:] / np.maximum(membership[1:].sum(axis=0), 1e-300)
    mean = (prior_variance * score)[1:]
    spread = corrected_variance(prior_variance, information, 0.0, scale)[1:]
    level = (present * mean).sum(axis=0)
    variance = (present * (spread + (mean - level) ** 2)).sum(axis=0)  # around the level: nothing cancels
    return InitialEstimate(np.maximum(level, 0.0), variance, np.clip(membership[0], 1e-6, 1.0 - 1e-6))


def learn_null(state: FilterState, measurement: Measurement, pace: float) -> None:
    """Learn what the cells of the null share although none of them shows it: pooled mean and variance, kept small.

    Args:
        state: changed in place.
        measurement: of all cells.
        pace: how quickly what was pooled is renewed, per release.
    """
    noise, empty = measurement.error.variance, state.weights[-1]
    precision = 1.0 / noise
    residual = measurement.values - state.null_mean
    held = float(empty.sum())
    sums = [
        precision * float((empty * measurement.values).sum()),
        precision * held,
        precision**2 * float((empty * (residual * residual - noise)).sum()),
        precision**2 * held,
    ]
    state.null_sums = state.null_sums * (1.0 - pace) + np.array(sums)
    total, weight, squares, square_weight = state.null_sums.tolist()
    mean = max(0.0, (total - weight**0.5) / max(weight, 1e-300))  # shrunk by one standard error
    state.null_mean = min(mean, 0.25 * noise**0.5)  # never more than the noise hides
    spread = max(SMALLEST_SCALE, mean, squares / max(square_weight, 1e-300))
    state.null_variance = max(SMALLEST_SCALE, min(spread, 25.0 * max(state.null_mean, SMALLEST_SCALE), 0.25 * noise))


class Filter:
    """Track every cell with the bank; publish the model average, clipped to [0, n], with an honest error."""

    def __init__(self, bank: ModelGrid | None = None) -> None:
        self.bank = bank or default_models()
        self._walk, self._flicker = self.bank.walk[:, None], self.bank.flicker[:, None]
        trend = np.zeros(len(self.bank.walk), dtype=np.bool_)
        trend[self.bank.trends] = True
        # times the weights: flicker, walk of the levels, walk of the slopes, and the part that has a slope
        self._coefficients = np.array([self.bank.flicker, self.bank.walk * ~trend, self.bank.walk * trend, trend])

    def start(self, cells: int, slot: int = 1) -> FilterState:
        models, trends = len(self.bank.walk), self.bank.trends.stop - self.bank.levels
        return FilterState(
            level=np.zeros((models, cells)),
            slope=np.zeros((trends, cells)),
            level_variance=np.zeros((models, cells)),
            cross_variance=np.zeros((trends, cells)),
            slope_variance=np.zeros((trends, cells)),
            weights=np.repeat(self.bank.prior[:, None], cells, axis=1),
            pooled=self.bank.prior.copy(),
            scale=np.full(cells, SMALLEST_SCALE),
            slow=np.zeros(cells),
            composition=np.zeros(cells),
            path=np.zeros((6, cells)),
            null_sums=np.zeros(4),
            calibration=np.zeros(3),
            jumps=np.zeros(2),
            season=None if self.bank.seasons is None else self.bank.seasons.start(cells, slot),
        )

    def advance(
        self, state: FilterState, measurement: Measurement | None, doubt: FloatArray | float = 0.0
    ) -> tuple[FilterState, Estimate]:
        """One slot on; the estimate between measurements is the models' prediction.

        Args:
            state: what is known.
            measurement: of this slot, if there is one.
            doubt: the variance of what else its values are off by, per cell: no noise, and not stated as an error.

        Raises:
            ArithmeticError: if the state would not be finite; then one starts anew from the measurement.
        """
        state = copied(state, deep=measurement is not None)
        state.gap += 1
        if measurement is None:
            if not state.releases:
                return state, Estimate(frozen_view(np.zeros_like(state.slow)), None, None)
            mean, variance = self.between(state)
            return state, _estimate(state, mean, variance)
        measurement = measurement._replace(values=measurement.values.astype(np.float64))  # −(−2^63) is no int64
        state.users = measurement.users or state.users
        if not state.releases:
            estimate = self._begin(state, measurement, doubt)
        else:
            self._surprise(state, measurement, doubt)
            estimate = self._update(state, measurement, doubt)
        _check_finite(state)
        return state, estimate

    def outlook(self, state: FilterState) -> FilterForecast:
        average = float(state.scale.sum()) / len(state.scale)
        reach = None if state.season is None else state.season.reach
        return FilterForecast(
            state.releases, state.gain, average, state.scale, state.weights[:-1], state.jumps, self.bank, reach
        )

    def dump(self, state: FilterState) -> Any:
        dumped: dict[str, Any] = {field.name: packed(getattr(state, field.name)) for field in fields(state)}
        season = dumped.pop("season")  # as states were before there were any
        return dumped if season is None else {**dumped, "season": season.dump()}

    def load(self, dumped: Any) -> FilterState:
        values: dict[str, Any] = {name: unpacked(value) for name, value in dumped.items()}
        season = values.pop("season", None)
        if (season is None) != (self.bank.seasons is None):
            raise ValueError("a state with seasonal models for a filter without, or the other way round")
        return FilterState(**values, season=None if season is None else SeasonalState.load(season))

    def between(self, state: FilterState) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the model average `gap` slots after the release."""
        level, slope, now, linear, square, cubic = state.path
        h = float(state.gap)
        mean = level + h * slope
        variance = now + h * linear + h * h * square + cubic * ((h - 1.0) * h * (2.0 * h - 1.0) / 6.0)
        if self.bank.seasons is not None and state.season is not None:
            step, doubt = self.bank.seasons.between(state.season, state.gap)
            mean, variance = mean + step, variance + doubt
        return mean, np.maximum(variance, 0.0)

    def _begin(self, state: FilterState, measurement: Measurement, doubt: FloatArray | float) -> Estimate:
        """The first release: levels by empirical Bayes over the cells."""
        look = initial_estimate(measurement)
        state.level[:], state.level_variance[:] = look.level, look.variance + doubt
        state.slope_variance[:] = (np.maximum(look.level, 1.0) / 100.0) ** 2  # a trend may double it in 100 slots
        if self.bank.seasons is not None and state.season is not None:
            self.bank.seasons.begin(state.season, look.level)
        prior = self.bank.prior[:-1, None]
        state.weights[:-1], state.weights[-1] = prior / prior.sum() * (1.0 - look.null), look.null
        state.pooled = 0.5 * state.weights.mean(axis=1) + 0.5 * self.bank.prior
        target, variance = (
            np.full_like(state.weights, state.null_mean),
            np.full_like(state.weights, state.null_variance),
        )
        target[:-1], variance[:-1] = look.level, look.variance + doubt
        return self._release(state, measurement, *self._average(state, target, variance))

    def _surprise(self, state: FilterState, measurement: Measurement, doubt: FloatArray | float) -> None:
        """Learn from the residual of the average: what jumps cost, and how far the stated variances are off."""
        mean, variance = self.between(state)
        cells = len(mean)
        noise, mixture = measurement.error.variance, state.composition + doubt
        squared = (measurement.values - _possible(mean, state.users)) ** 2
        beyond = np.maximum(squared - SURPRISE * (noise + mixture + variance), 0.0)
        past, slots = (math.exp(-state.gap / SURPRISE_MEMORY) * state.jumps).tolist()
        state.jumps = np.array([past + float(beyond.sum()) / cells, slots + state.gap])
        predicted = float(variance.sum())
        weight = 1.0 / (noise + predicted / cells) ** 2
        chance = weight * float((5.0 * noise**2 + 2.0 * variance**2).sum())  # a squared Laplace draw varies by 5·noise²
        seen = [float((squared - noise - mixture).sum()), predicted, chance]
        state.calibration = state.calibration * (1.0 - POOL_PACE) + weight * np.array(seen)
        observed, predicted, chance = state.calibration.tolist()
        likely = observed / max(predicted, 1e-300)
        cautious = (observed + chance**0.5) / max(predicted, 1e-300)
        # up at once; down only by what is certain to one standard error
        state.inflation = min(likely, 6.0) if likely > 1.0 else min(1.0, max(cautious, 0.5))

    def _update(self, state: FilterState, measurement: Measurement, doubt: FloatArray | float) -> Estimate:
        """Predict all models over the gap, weigh them by their likelihood, correct them; a block of cells at a time."""
        cells = len(state.slow)
        mixture = measurement.composition * state.scale + doubt
        common = (PRIOR_CELLS * self.bank.prior + cells * state.pooled) / (PRIOR_CELLS + cells)
        whole = float(state.scale.sum())
        mean, spread, gain = np.empty((3, cells))
        for block in blocks(cells):
            part = part_of(state, block)
            target, variance, gain[block] = self._correct(part, measurement, mixture[block], block, common)
            mean[block], spread[block] = self._average(part, target, variance)
        state.gain += 0.1 * (float(gain.sum()) / whole - state.gain)
        pace = max(POOL_PACE, 1.0 / (state.releases + 2))
        state.pooled += pace * (state.weights.sum(axis=1) / cells - state.pooled)
        return self._release(state, measurement, mean, spread)

    def _correct(
        self, state: FilterState, measurement: Measurement, mixture: FloatArray, block: slice, common: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the block's models after the measurement: mean and variance of the count itself in each, and gain · scale.

        Args:
            state: of the block's cells; changed in place.
            measurement: of all cells.
            mixture: the variance per cell from the mix of classes, and what else the values are off by.
            block: which cells.
            common: the model probabilities that fit all cells.
        """
        self._predict(state)
        trends, noise = self.bank.trends, measurement.error.variance
        values, scale = measurement.values[block], (noise / 2.0) ** 0.5
        flicker = self._flicker * state.scale
        # A model says: the count is its level plus flicker that is new in every slot, N(level, P + v·s); the measurement
        # adds the mix of classes, N(0, m), and Laplace noise. `score` and `information` are the first and (negative)
        # second derivative of the log density of y with respect to the level: a Kalman update for noise that is no
        # Gaussian. Far out the score of a Laplace law is constant, so one wild draw moves a level only so far.
        # The null, the last row, is a model of known mean and variance, without a mix of classes.
        target, spread = np.empty((2, *state.weights.shape))
        target[:-1], target[-1] = state.level, state.null_mean
        np.add(state.level_variance, flicker, out=spread[:-1])
        spread[-1] = state.null_variance
        observed = spread + mixture
        observed[-1] = state.null_variance
        log_density, score, information = laplace_on_gaussian(values - target, observed, scale)
        target += spread * score  # the count itself, flicker included: what is published now
        variance = corrected_variance(spread, information, mixture, scale)
        flicker += mixture
        corrected = corrected_variance(state.level_variance, information[:-1], flicker, scale)
        kept = corrected / state.level_variance  # 1 − gain: the part of the prediction that stays
        # trend models: level and slope are correlated, so what corrects the level corrects the slope by C/P of it
        state.slope += state.cross_variance * score[trends]
        slope_variance = state.slope_variance - state.cross_variance**2 * information[trends]
        np.maximum(slope_variance, state.slope_variance * kept[trends], out=state.slope_variance)
        state.cross_variance *= kept[trends]
        if self.bank.seasons is not None and state.season is not None:
            swings = self.bank.seasonal
            self.bank.seasons.correct(state.season, score[swings], information[swings], kept[swings])
        score[:-1] *= state.level_variance
        state.level += score[:-1]
        state.level_variance[:] = corrected
        self._jump(state, values, noise, mixture, (log_density[:-1], target[:-1], variance[:-1]))
        _weigh(state, log_density, common)
        gain = np.subtract(1.0, kept, out=kept)
        return target, variance, _mixed(state.weights[:-1], gain) * state.scale

    def _predict(self, state: FilterState) -> None:
        """All models over the slots since the last release."""
        # A level walks: P + h·q. A trend's slope walks, and the level is the sum of the slopes: with h steps
        # P + 2h·C + h²·S + q·Σ(j²), C + h·S + q·Σ(j), S + h·q, sums over j < h.
        trends, h = self.bank.trends, float(state.gap)
        steps = h * self._walk
        steps[trends] *= (h - 1.0) * (2.0 * h - 1.0) / 6.0
        if self.bank.seasons is not None and state.season is not None:
            swings = self.bank.seasonal
            self.bank.seasons.predict(state.season, state.gap, state.level[swings], state.level_variance[swings])
        state.level_variance += steps * state.scale
        slope_walk = self._walk[trends] * state.scale
        state.level[trends] += h * state.slope
        state.level_variance[trends] += 2.0 * h * state.cross_variance + h * h * state.slope_variance
        state.cross_variance += h * state.slope_variance + slope_walk * (h * (h - 1.0) / 2.0)
        state.slope_variance += h * slope_walk

    def _jump(
        self,
        state: FilterState,
        values: FloatArray,
        noise: float,
        mixture: FloatArray,
        models: tuple[FloatArray, FloatArray, FloatArray],
    ) -> None:
        """Where "it started anew, anywhere" explains a residual, mix a model with a fresh start at the measurement.

        A model's variances are relative to its cell's scale: without this a cell that appears from nothing would be
        followed only slowly.

        Args:
            state: of the block's cells.
            values: measured.
            noise: variance.
            mixture: variance per cell from the mix of classes.
            models: log density, and mean and variance of the count itself; changed in place, as the state is.
        """
        log_density, target, target_variance = models
        anywhere = max(state.users, 10.0) + 5.0 * (noise / 2.0) ** 0.5
        anew = math.log1p(-((1.0 - CELL_RESTART) ** state.gap)) - math.log(anywhere)
        likely = log_density < anew + 7.0  # elsewhere a jump has less than a thousandth of the weight
        if not any_true(likely):
            return
        model, cell = np.nonzero(likely)
        own = log_density[model, cell]
        chance = 1.0 / (1.0 + np.exp(np.clip(own - anew, -700.0, 700.0)))
        log_density[model, cell] = np.logaddexp(own, anew)
        fresh = noise + mixture[cell]
        flicker = self.bank.flicker[model] * state.scale[cell]
        for mean, spread, extra in ((state.level, state.level_variance, flicker), (target, target_variance, 0.0)):
            step = values[cell] - mean[model, cell]
            mean[model, cell] += chance * step
            mixed = (1.0 - chance) * spread[model, cell] + chance * (fresh + extra)
            spread[model, cell] = mixed + chance * (1.0 - chance) * step * step
        levels, swings = self.bank.levels, self.bank.seasonal.start
        trend = (model >= levels) & (model < swings)
        state.cross_variance[model[trend] - levels, cell[trend]] *= 1.0 - chance[trend]
        if state.season is not None:
            swinging = model >= swings
            cross = state.season.cross
            cross[model[swinging] - swings, :, cell[swinging]] *= (1.0 - chance[swinging])[:, None]

    def _average(self, state: FilterState, target: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the model average now; the state gets the path it predicts until the next release.

        Args:
            state: of the block's cells; scale and path are changed in place.
            target: the count itself in each model, the null's last.
            variance: its variance.
        """
        trends, empty = self.bank.trends, state.weights[-1]
        weights, trending = state.weights[:-1], state.weights[trends]
        # moments of a mixture: the mean of the means; the mean of the variances plus the variance of the means
        mean = _mixed(state.weights, target)
        spread = _mixed(state.weights, _around(mean, target, variance))
        level = _mixed(weights, state.level) + empty * state.null_mean
        slope = _mixed(trending, state.slope)
        state.slow += (POOL_PACE if state.releases else 1.0) * (level - state.slow)
        state.scale[:] = scale_of(np.maximum(level, state.slow), state.users)

        # Between releases the average is a line and its variance a cubic in the slots since (`between`): the same
        # moments of the predicted models, with the mixture's terms collected by powers of h.
        flicker, walk, slope_walk, sloping = self._coefficients @ weights
        drift = _mixed(trending, state.cross_variance + state.slope * (state.level[trends] - level))
        square = _mixed(trending, _around(slope, state.slope, state.slope_variance))
        state.path[0], state.path[1] = level, slope
        state.path[2] = _mixed(weights, _around(level, state.level, state.level_variance)) + flicker * state.scale
        state.path[3] = walk * state.scale + 2.0 * drift
        state.path[4] = square + (1.0 - sloping) * slope * slope  # the other models have no slope
        state.path[5] = slope_walk * state.scale
        if self.bank.seasons is not None and state.season is not None:
            swings = self.bank.seasonal
            self.bank.seasons.average(state.season, state.weights[swings], state.level[swings], level, slope)
        return mean, spread

    def _release(self, state: FilterState, measurement: Measurement, mean: FloatArray, spread: FloatArray) -> Estimate:
        """Learn from all cells about the null; return the estimate."""
        learn_null(state, measurement, POOL_PACE)
        empty = state.weights[-1]
        state.path[2] += empty * (state.null_variance + (state.null_mean - state.path[0]) ** 2)
        state.composition = (1.0 - empty) * measurement.composition * state.scale
        if state.season is not None:
            state.season.released += state.gap
        state.gap = 0
        state.releases += 1
        return _estimate(state, mean, spread)


def _weigh(state: FilterState, log_density: FloatArray, common: FloatArray) -> None:
    """Update model probabilities by Bayes' rule; a small part is drawn back to what fits all cells."""
    log_density -= log_density.max(axis=0)
    weights = state.weights
    weights *= 1.0 - MODEL_SWITCH
    weights += (MODEL_SWITCH * common)[:, None]
    weights *= np.exp(log_density, out=log_density)
    weights /= weights.sum(axis=0)


def _mixed(weights: FloatArray, values: FloatArray) -> FloatArray:
    mixed: FloatArray = np.add.reduce(weights * values)
    return mixed


def _around(center: FloatArray, means: FloatArray, variances: FloatArray) -> FloatArray:
    squares = means - center
    squares *= squares
    squares += variances
    return squares


def _check_finite(state: FilterState) -> None:
    """Raise if the state is not finite: the averages of all models show it, and stand for the whole state."""
    small = (*state.null_sums.tolist(), *state.calibration.tolist(), *state.jumps.tolist(), state.gain, state.inflation)
    large = float(state.path.sum() + state.pooled.sum())
    if state.season is not None:
        large += float(state.season.path.sum() + state.season.path_variance.sum())
    if not math.isfinite(sum(small, start=large)):
        raise ArithmeticError("the filter's state is not finite")


def _estimate(state: FilterState, mean: FloatArray, variance: FloatArray) -> Estimate:
    stated = state.inflation * variance + (state.composition + 1e-12)
    typical = float(np.add.reduce(stated)) / len(stated)
    law = ErrorModel("estimate", typical**0.5, typical)
    return Estimate(frozen_view(_possible(mean, state.users)), frozen_view(np.sqrt(stated)), law)


def _possible(mean: FloatArray, users: int) -> FloatArray:
    """Return what a count can be: a cell holds each of n users at most once, in however many cells they may be."""
    return np.minimum(np.maximum(mean, 0.0), float(users) if users else np.inf)
