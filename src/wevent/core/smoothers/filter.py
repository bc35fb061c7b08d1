"""A filter instead of "repeat the last": a bank of Kalman filters per cell, averaged by how well they predict (spec 11).

Pure post-processing: the state is a function of past measurements and public settings. Evidence is pooled over cells where
single cells say too little: which models fit, what the cells of the null hold, how far the stated errors are off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.mechanism import Estimate, Measurement, NoiseError
from wevent.core.smoothers.bank import Bank, default_bank
from wevent.core.smoothers.first_look import first_look
from wevent.core.smoothers.likelihood import corrected_variance, laplace_on_gaussian
from wevent.core.smoothers.outlook import FilterOutlook

_SWITCH = 0.01  # chance per release that a cell follows another model from now on
_POOL = 0.03  # how quickly pooled evidence is renewed, per release
_PRIOR_CELLS = 2.0  # the bank's prior counts like this many cells
_JUMP = 1e-3  # chance per slot that a cell starts anew anywhere: how a cell that appears from nothing is seen
_SMALLEST = 0.05  # no scale below this: a cell is never known to be still
_MEMORY = 2000.0  # slots after which seen jumps are forgotten
_SURPRISE = 25.0  # squared standard deviations beyond which a residual counts as a jump


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
    null_variance: float = _SMALLEST
    inflation: float = 1.0
    gain: float = 1.0
    users: int = 0
    releases: int = 0
    gap: int = 0


class Filter:
    """Track every cell with the bank; publish the model average, clipped to [0, n], with an honest error."""

    def __init__(self, bank: Bank | None = None) -> None:
        self.bank = bank or default_bank()

    def start(self, cells: int) -> FilterState:
        """Nothing known."""
        models, trends = len(self.bank.walk), len(self.bank.walk) - self.bank.levels
        return FilterState(
            level=np.zeros((models, cells)),
            slope=np.zeros((trends, cells)),
            level_variance=np.zeros((models, cells)),
            cross_variance=np.zeros((trends, cells)),
            slope_variance=np.zeros((trends, cells)),
            weights=np.repeat(self.bank.prior[:, None], cells, axis=1),
            pooled=self.bank.prior.copy(),
            scale=np.full(cells, _SMALLEST),
            slow=np.zeros(cells),
            composition=np.zeros(cells),
            path=np.zeros((6, cells)),
            null_sums=np.zeros(4),
            calibration=np.zeros(3),
            jumps=np.zeros(2),
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
                return state, Estimate(_frozen(np.zeros_like(state.slow)), None, None)
            mean, variance = between(state)
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

    def outlook(self, state: FilterState) -> FilterOutlook:
        """What is expected of the slots to come."""
        average = float(state.scale.mean())
        return FilterOutlook(
            state.releases, state.gain, average, state.scale, state.weights[:-1], state.jumps, self.bank
        )

    def dump(self, state: FilterState) -> Any:
        """Arrays as shape and bytes, numbers as they are: bit for bit."""
        return {
            field.name: [list(value.shape), value.tobytes()] if isinstance(value, np.ndarray) else value
            for field in fields(state)
            for value in (getattr(state, field.name),)
        }

    def load(self, dumped: Any) -> FilterState:
        """The counterpart of `dump`."""
        values: dict[str, Any] = {
            name: np.frombuffer(value[1]).reshape(value[0]).copy() if isinstance(value, (list, tuple)) else value
            for name, value in dumped.items()
        }
        return FilterState(**values)

    def _begin(self, state: FilterState, measurement: Measurement, doubt: FloatArray | float) -> Estimate:
        """The first release: levels by empirical Bayes over the cells."""
        look = first_look(measurement)
        state.level[:], state.level_variance[:] = look.level, look.variance + doubt
        state.slope_variance[:] = (np.maximum(look.level, 1.0) / 100.0) ** 2  # a trend may double it in 100 slots
        prior = self.bank.prior[:-1, None]
        state.weights = np.vstack([prior / prior.sum() * (1.0 - look.null), look.null])
        state.pooled = 0.5 * state.weights.mean(axis=1) + 0.5 * self.bank.prior
        null = state.null_mean, state.null_variance
        models = (len(self.bank.walk), 1)
        target, variance = np.tile(look.level, models), np.tile(look.variance + doubt, models)
        return self._average(state, measurement, target, variance, null)

    def _surprise(self, state: FilterState, measurement: Measurement, doubt: FloatArray | float) -> None:
        """Learn from the residual of the average: what jumps cost, and how far the stated variances are off."""
        mean, variance = between(state)
        noise, mixture = measurement.error.variance, state.composition + doubt
        squared = (measurement.values - _possible(mean, state.users)) ** 2
        beyond = np.maximum(squared - _SURPRISE * (noise + mixture + variance), 0.0)
        state.jumps = state.jumps * np.exp(-state.gap / _MEMORY) + [float(beyond.mean()), state.gap]
        weight = 1.0 / (noise + variance.mean()) ** 2
        chance = weight * float((5.0 * noise**2 + 2.0 * variance**2).sum())  # a squared Laplace draw varies by 5·noise²
        seen = [float((squared - noise - mixture).sum()), float(variance.sum()), chance]
        state.calibration = state.calibration * (1.0 - _POOL) + weight * np.array(seen)
        observed, predicted, chance = state.calibration.tolist()
        likely = observed / max(predicted, 1e-300)
        cautious = (observed + chance**0.5) / max(predicted, 1e-300)
        # up at once; down only by what is certain to one standard error
        state.inflation = min(likely, 6.0) if likely > 1.0 else min(1.0, max(cautious, 0.5))

    def _update(self, state: FilterState, measurement: Measurement, doubt: FloatArray | float) -> Estimate:
        """Predict all models over the gap, weigh them by their likelihood, correct them."""
        self._predict(state)
        trends = self.bank.levels
        values, scale = measurement.values, (measurement.error.variance / 2.0) ** 0.5
        mixture = measurement.composition * state.scale + doubt
        flicker = self.bank.flicker[:, None] * state.scale
        # A model says: the count is its level plus flicker that is new in every slot, N(level, P + v·s); the measurement
        # adds the mix of classes, N(0, m), and Laplace noise. `score` and `information` are the first and (negative)
        # second derivative of the log density of y with respect to the level: a Kalman update for noise that is no
        # Gaussian. Far out the score of a Laplace law is constant, so one wild draw moves a level only so far.
        spread = state.level_variance + flicker
        log_density, score, information = laplace_on_gaussian(values - state.level, spread + mixture, scale)
        target = state.level + spread * score  # the count itself, flicker included: what is published now
        target_variance = corrected_variance(spread, information, mixture, scale)
        corrected = corrected_variance(state.level_variance, information, flicker + mixture, scale)
        kept = corrected / state.level_variance  # 1 − gain: the part of the prediction that stays
        gain = 1.0 - kept
        # trend models: level and slope are correlated, so what corrects the level corrects the slope by C/P of it
        state.slope += state.cross_variance * score[trends:]
        slope_variance = state.slope_variance - state.cross_variance**2 * information[trends:]
        state.slope_variance = np.maximum(slope_variance, state.slope_variance * kept[trends:])
        state.cross_variance *= kept[trends:]
        state.level += state.level_variance * score
        state.level_variance = corrected
        self._jump(state, measurement, mixture, log_density, target, target_variance)

        null_mean, null_variance = state.null_mean, state.null_variance
        unseen = np.full(len(values), null_variance)
        null = laplace_on_gaussian(values - null_mean, unseen, scale)
        self._weigh(state, np.vstack([log_density, null[0]]))
        share = float(((state.weights[:-1] * gain).sum(axis=0) * state.scale).sum() / state.scale.sum())
        state.gain += 0.1 * (share - state.gain)
        null_now = null_mean + null_variance * null[1], corrected_variance(unseen, null[2], 0.0, scale)
        return self._average(state, measurement, target, target_variance, null_now)

    def _predict(self, state: FilterState) -> None:
        """All models over the slots since the last release."""
        # A level walks: P + h·q. A trend's slope walks, and the level is the sum of the slopes: with h steps
        # P + 2h·C + h²·S + q·Σ(j²), C + h·S + q·Σ(j), S + h·q, sums over j < h.
        trends, h = self.bank.levels, float(state.gap)
        walk = self.bank.walk[:, None] * state.scale
        state.level[trends:] += h * state.slope
        state.level_variance[:trends] += h * walk[:trends]
        state.level_variance[trends:] += 2.0 * h * state.cross_variance + h * h * state.slope_variance
        state.level_variance[trends:] += walk[trends:] * ((h - 1.0) * h * (2.0 * h - 1.0) / 6.0)
        state.cross_variance += h * state.slope_variance + walk[trends:] * (h * (h - 1.0) / 2.0)
        state.slope_variance += h * walk[trends:]

    def _jump(
        self,
        state: FilterState,
        measurement: Measurement,
        mixture: FloatArray,
        log_density: FloatArray,
        target: FloatArray,
        target_variance: FloatArray,
    ) -> None:
        """Where "it started anew, anywhere" explains a residual, mix a model with a fresh start at the measurement.

        A model's variances are relative to its cell's scale: without this a cell that appears from nothing would be
        followed only slowly.
        """
        values, noise = measurement.values, measurement.error.variance
        anywhere = max(state.users, 10.0) + 5.0 * (noise / 2.0) ** 0.5
        anew = float(np.log1p(-((1.0 - _JUMP) ** state.gap)) - np.log(anywhere))
        model, cell = np.nonzero(log_density < anew + 7.0)  # elsewhere a jump has less than a thousandth of the weight
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
        trend = model >= self.bank.levels
        state.cross_variance[model[trend] - self.bank.levels, cell[trend]] *= 1.0 - chance[trend]

    def _weigh(self, state: FilterState, log_density: FloatArray) -> None:
        """Model probabilities by Bayes' rule; a small part is drawn back to what fits all cells."""
        cells = log_density.shape[1]
        common = (_PRIOR_CELLS * self.bank.prior + cells * state.pooled) / (_PRIOR_CELLS + cells)
        weights = (1.0 - _SWITCH) * state.weights + _SWITCH * common[:, None]
        weights *= np.exp(log_density - log_density.max(axis=0))
        weights /= weights.sum(axis=0)
        state.weights = weights
        state.pooled += max(_POOL, 1.0 / (state.releases + 2)) * (weights.mean(axis=1) - state.pooled)

    def _average(
        self, state: FilterState, measurement: Measurement, target: FloatArray, variance: FloatArray, null: Any
    ) -> Estimate:
        """The model average now, and the path it predicts until the next release."""
        bank, trends = self.bank, self.bank.levels
        weights, empty = state.weights[:-1], state.weights[-1]
        # moments of a mixture: the mean of the means; the mean of the variances plus the variance of the means
        mean = (weights * target).sum(axis=0) + empty * null[0]
        spread = (weights * (variance + (target - mean) ** 2)).sum(axis=0) + empty * (null[1] + (null[0] - mean) ** 2)
        level = (weights * state.level).sum(axis=0) + empty * state.null_mean
        slope = (weights[trends:] * state.slope).sum(axis=0)
        state.slow = level.copy() if not state.releases else state.slow + _POOL * (level - state.slow)
        state.scale = _scale(np.maximum(level, state.slow), state.users)
        _learn_null(state, measurement)

        # Between releases the average is a line and its variance a cubic in the slots since (`between`): the same
        # moments of the predicted models, with the mixture's terms collected by powers of h.
        hidden = empty * (state.null_variance + (state.null_mean - level) ** 2)
        flicker = (weights * bank.flicker[:, None]).sum(axis=0) * state.scale
        now = (weights * (state.level_variance + (state.level - level) ** 2)).sum(axis=0) + hidden + flicker
        walk = (weights[:trends] * bank.walk[:trends, None]).sum(axis=0) * state.scale
        drift = (weights[trends:] * (state.cross_variance + state.slope * (state.level[trends:] - level))).sum(axis=0)
        linear = walk + 2.0 * drift
        square = (weights[trends:] * (state.slope_variance + (state.slope - slope) ** 2)).sum(axis=0)
        square += (1.0 - weights[trends:].sum(axis=0)) * slope * slope  # the other models have no slope
        cubic = (weights[trends:] * bank.walk[trends:, None]).sum(axis=0) * state.scale
        state.path = np.vstack([level, slope, now, linear, square, cubic])
        state.composition = (1.0 - empty) * measurement.composition * state.scale
        state.gap = 0
        state.releases += 1
        return _estimate(state, mean, spread)


def _check_finite(state: FilterState) -> None:
    """What is not finite in any model makes the averages of all so: these stand for the whole state."""
    small = (*state.null_sums.tolist(), *state.calibration.tolist(), *state.jumps.tolist(), state.gain, state.inflation)
    if not math.isfinite(sum(small, start=float(state.path.sum() + state.pooled.sum()))):
        raise ArithmeticError("the filter's state is not finite")


def _scale(level: FloatArray, users: int) -> FloatArray:
    """s = x(1 − x/n): the variance of a count of independent users."""
    inside = np.clip(level, 0.0, float(users))
    return np.maximum(inside * (1.0 - inside / max(users, 1)), _SMALLEST)


def between(state: FilterState) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the model average `gap` slots after the release."""
    level, slope, now, linear, square, cubic = state.path
    h = float(state.gap)
    variance = now + h * linear + h * h * square + cubic * ((h - 1.0) * h * (2.0 * h - 1.0) / 6.0)
    return level + h * slope, np.maximum(variance, 0.0)


def _estimate(state: FilterState, mean: FloatArray, variance: FloatArray) -> Estimate:
    std_error = np.sqrt(state.inflation * variance + state.composition + 1e-12)
    typical = float((std_error**2).mean())
    law = NoiseError("estimate", typical**0.5, typical)
    return Estimate(_frozen(_possible(mean, state.users)), _frozen(std_error), law)


def _possible(mean: FloatArray, users: int) -> FloatArray:
    """What a count can be: a cell holds each of n users at most once, in however many cells they may be."""
    return np.clip(mean, 0.0, float(users) if users else np.inf)


def _learn_null(state: FilterState, measurement: Measurement) -> None:
    """What the cells of the null share although none of them shows it: pooled mean and variance, kept small."""
    noise, empty = measurement.error.variance, state.weights[-1]
    precision = 1.0 / noise
    residual = measurement.values - state.null_mean
    state.null_sums = state.null_sums * (1.0 - _POOL) + np.array(
        [
            precision * float((empty * measurement.values).sum()),
            precision * float(empty.sum()),
            precision**2 * float((empty * (residual * residual - noise)).sum()),
            precision**2 * float(empty.sum()),
        ]
    )
    total, weight, squares, square_weight = state.null_sums.tolist()
    mean = max(0.0, (total - weight**0.5) / max(weight, 1e-300))  # shrunk by one standard error
    state.null_mean = min(mean, 0.25 * noise**0.5)  # never more than the noise hides
    spread = max(_SMALLEST, mean, squares / max(square_weight, 1e-300))
    state.null_variance = max(_SMALLEST, min(spread, 25.0 * max(state.null_mean, _SMALLEST), 0.25 * noise))


def copied(state: FilterState, *, deep: bool = True) -> FilterState:
    """A state of its own; arrays are copied only where they will change."""
    values: list[Any] = [getattr(state, field.name) for field in fields(state)]
    if deep:
        values = [value.copy() if isinstance(value, np.ndarray) else value for value in values]
    return FilterState(*values)


def _frozen(values: FloatArray) -> FloatArray:
    values.setflags(write=False)
    return values
