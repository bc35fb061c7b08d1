"""What weighted counts are off by: offsets per cell, learnt from anchors, in which all count alike (spec 11.8).

The main sum measures m = Σ_g w_g·C_g with weights of mean 1 over registered users; the count is x = Σ_g C_g. Where the
classes of a cell are another mix than everyone's, m = x − β·x(1 − x/n): β is the cell's own, linear in its mix, and slow.
Nobody knows how large such offsets are and how long they last, so each model of a small bank has an opinion: the spike says
that there are none but by chance, the others that β has variance τ²·CV² and a life. All cells together decide between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.pft.constants import (
    BIAS_BOUNDS,
    BIAS_JUMP,
    BIAS_MEMORY,
    BIAS_MODEL_MIX,
    BIAS_RESTART,
    BIAS_RESTART_PLANNED,
    BIAS_RESTART_SLOTS,
    CAUTION,
    HORIZON,
)
from wevent.core.pft.likelihood import laplace_on_gaussian


@dataclass(frozen=True)
class BiasModels:
    """The models, the spike first.

    Attributes:
        tau: τ², in units of the weights' CV².
        life: slots after which an offset has forgotten itself.
        prior: prior weights.
        cautious: the same with less faith in the spike: for stated errors and for plans.
    """

    tau: FloatArray
    life: FloatArray
    prior: FloatArray
    cautious: FloatArray


def default_bias_models() -> BiasModels:
    """Return the models: half of the prior for the spike; τ² from a thousandth to 1, lasting or not."""
    rows = [(0.0, 2e4, 0.5)]
    for tau, much in ((1e-3, 0.15), (1e-2, 0.15), (1e-1, 0.15), (1.0, 0.05)):
        rows += [(tau, 2e4, 0.5 * much), (tau, 250.0, 0.5 * much)]
    tau, life, prior = np.array(rows).T
    cautious = prior.copy()
    cautious[0] *= CAUTION
    return BiasModels(tau, life, prior / prior.sum(), cautious / cautious.sum())


@dataclass(slots=True)
class BiasState:
    """What is known of the offsets; models × cells unless said otherwise.

    Attributes:
        mean, variance: of β, `age` slots ago.
        evidence: log likelihood per model.
        lean: of the weights that the offsets are for (`Measurement.lean`).
        anew: discounted: how many offsets of a cell started anew, and the slots that was seen in.
        age: slots since mean and variance were computed.
    """

    mean: FloatArray
    variance: FloatArray
    evidence: FloatArray
    lean: FloatArray
    anew: FloatArray
    age: int = 0

    def rate(self, believed: float = BIAS_RESTART) -> float:
        """Return the chance per slot that a cell's offset starts anew, from what was believed and what was seen."""
        seen, slots = float(self.anew[0]), float(self.anew[1])
        return (believed * BIAS_RESTART_SLOTS + seen) / (BIAS_RESTART_SLOTS + slots)

    @property
    def spread(self) -> float:
        """CV² of the weights."""
        return float(self.lean @ self.lean)


class Moments(NamedTuple):
    """Mean and variance per cell."""

    mean: FloatArray
    variance: FloatArray


class Contrast(NamedTuple):
    """Anchor minus what main sums say of one slot, per cell: β·reach, and the noise of both.

    Attributes:
        seen: the difference.
        main: the variance of what main sums say.
        anchor: of the anchor's noise.
        reach: x(1 − x/n).
    """

    seen: FloatArray
    main: FloatArray | float
    anchor: float
    reach: FloatArray


@lru_cache(maxsize=256)
def _believed(prior: bytes, evidence: bytes) -> FloatArray:
    """Bayes' rule; asked for many times between two lessons."""
    before, logarithms = np.frombuffer(prior), np.frombuffer(evidence)
    found = before * np.exp(logarithms - logarithms.max())
    weights: FloatArray = (1.0 - BIAS_MODEL_MIX) * found / found.sum() + BIAS_MODEL_MIX * before
    weights.setflags(write=False)
    return weights


class ClassBias:
    """The arithmetic of the bank: pure functions of an `BiasState`, which they change in place."""

    def __init__(self, bank: BiasModels | None = None) -> None:
        self.bank = bank or default_bias_models()

    def start(self, cells: int) -> BiasState:
        shape = len(self.bank.tau), cells
        return BiasState(np.zeros(shape), np.zeros(shape), np.zeros(shape[0]), np.zeros(0), np.zeros(2))

    def weights(self, state: BiasState, *, cautious: bool = False) -> FloatArray:
        """Return how much each model is believed."""
        prior = self.bank.cautious if cautious else self.bank.prior
        return _believed(prior.tobytes(), state.evidence.tobytes())

    def stationary(self, state: BiasState, scale: FloatArray) -> FloatArray:
        """Return variances before anything was learnt: CV²·(τ² + 1/s), as chance alone gives 1/s; none for the spike."""
        variance: FloatArray = state.spread * (self.bank.tau[:, None] + 1.0 / np.maximum(scale, 1.0))
        variance[0] = 0.0
        return variance

    def now(self, state: BiasState, scale: FloatArray) -> Moments:
        """Return mean and variance of every model: what was learnt fades as slots pass."""
        if not state.age:
            return Moments(state.mean, state.variance)
        keep = np.exp(-state.age / self.bank.life)[:, None]
        stationary = self.stationary(state, scale)
        return Moments(state.mean * keep, stationary + (state.variance - stationary) * keep * keep)

    def belief(self, state: BiasState, scale: FloatArray) -> Moments:
        """Return β over all models: the mean as believed, the variance around it with caution."""
        mean, variance = self.now(state, scale)
        average = self.weights(state) @ mean
        return Moments(average, self.weights(state, cautious=True) @ (variance + (mean - average) ** 2))

    def most(self, state: BiasState, scale: FloatArray) -> FloatArray:
        """Return the variance per cell of what main sums are off by if nothing was learnt, in counts."""
        unknown: FloatArray = self.weights(state, cautious=True) @ self.stationary(state, scale) * scale**2
        return unknown

    def reweigh(self, state: BiasState, lean: FloatArray, scale: FloatArray) -> Moments:
        """Other weights: what they share with the old ones is kept, the rest is as unknown as at the start.

        Returns:
            Of the difference between the old offset and the new one.
        """
        mean, variance = self.now(state, scale)
        spread, old = float(lean @ lean), state.spread
        common = float(lean @ state.lean) / old if len(lean) == len(state.lean) and old > 1e-9 else 0.0
        fresh = max(0.0, 1.0 - common * common * old / max(spread, 1e-300))
        state.lean = lean.copy()
        added = fresh * self.stationary(state, scale)
        state.mean, state.variance, state.age = mean * common, variance * common * common + added, 0
        less, weights = 1.0 - common, self.weights(state)
        return Moments(less * (weights @ mean), weights @ (less * less * variance + added))

    def learn(self, state: BiasState, contrast: Contrast, scale: FloatArray, slots: int) -> None:
        """Bayes' rule for every model: offsets lasted, or started anew in the slots since the last anchor."""
        reach = contrast.reach
        mean, variance = self.now(state, scale)
        laplace = (contrast.anchor / 2.0) ** 0.5
        around = variance * reach**2 + contrast.main + 1e-9
        around[0] += state.spread * scale  # the spike: chance, new in every slot
        density, score, information = laplace_on_gaussian(contrast.seen - mean * reach, around, laplace)
        mean = mean + variance * reach * score
        variance = np.maximum(variance - (variance * reach) ** 2 * information, 0.0)

        chance = -np.expm1(slots * np.log1p(-state.rate()))
        wide = self.stationary(state, scale)[1:]
        whole = np.broadcast_to(contrast.seen, wide.shape)
        other, score, information = laplace_on_gaussian(whole, wide * reach**2 + contrast.main + 1e-9, laplace)
        both = np.logaddexp(np.log1p(-chance) + density[1:], np.log(chance) + other)
        share = np.exp(np.log(chance) + other - both)
        gap = wide * reach * score - mean[1:]
        fresh = np.maximum(wide - (wide * reach) ** 2 * information, 0.0)
        variance[1:] = (1.0 - share) * variance[1:] + share * fresh + share * (1.0 - share) * gap * gap
        mean[1:] += share * gap
        density[1:] = both
        state.mean, state.variance, state.age = np.clip(mean, *BIAS_BOUNDS), variance, 0
        fade = np.exp(-slots / BIAS_MEMORY)
        state.evidence = fade * state.evidence + density.sum(axis=1)
        state.evidence -= state.evidence.max()
        restarted = self.weights(state)[1:] @ share
        state.anew = state.anew * fade + [float(restarted.mean()), slots]

    def jump(self, state: BiasState, moved: FloatArray, expected: FloatArray, scale: FloatArray) -> FloatArray:
        """Widen the bias of a count that moved by more than was expected: other users may be another mix.

        Returns:
            What it may have added to the squared offset, in counts, per cell.
        """
        beyond = np.maximum(moved * moved - BIAS_JUMP * expected, 0.0)
        if not beyond.any():
            return beyond
        stationary = self.stationary(state, scale)
        added = self.bank.tau[:, None] * state.spread * beyond / np.maximum(scale, 1.0) ** 2
        state.mean, before = self.now(state, scale)
        state.variance, state.age = np.minimum(before + added, np.maximum(stationary, before)), 0
        result: FloatArray = self.weights(state, cautious=True) @ ((state.variance - before) * scale**2)
        return result

    def expected_errors(
        self, state: BiasState, scale: FloatArray, spread: FloatArray, every: FloatArray, noise: FloatArray
    ) -> FloatArray:
        """Return what offsets will cost per cell on average over the horizon, with an anchor every so many slots.

        Args:
            state: what is known.
            scale: s per cell.
            spread: CV² of the main sum's weights, for each design.
            every: slots between anchors.
            noise: variance of what an anchor says of an offset; infinite without anchors.
        """
        bank = self.bank
        square, mean = float((scale**2).mean()), float(scale.mean())
        unit = bank.tau * square + mean  # per unit of CV²
        known = unit
        if state.spread > 1e-9:
            known = np.minimum((state.variance * scale**2).mean(axis=1) / state.spread, unit)
        prior, now = spread[:, None] * unit, spread[:, None] * known
        fade = (1.0 - np.exp(-2.0 * HORIZON / bank.life)) * bank.life / (2.0 * HORIZON)
        errors = prior + (now - prior) * fade  # without anchors
        some = np.isfinite(noise)[:, None]
        k, n = every[:, None].astype(np.float64), np.where(some[:, 0], noise, 1e30)[:, None]
        lost = -np.expm1(-2.0 * k / bank.life)
        b = lost * (n - prior)
        before = (
            -b + np.sqrt(b * b + 4.0 * lost * prior * n)
        ) / 2.0  # the Riccati equation of an offset with this life
        settled = 0.5 * (before + before * n / (before + n))
        passing = k * n / HORIZON * np.log1p(HORIZON * now / (k * n))  # until it is settled
        # an offset that starts anew is off until an anchor shows it, and then learnt from noise as before
        settled = settled + state.rate(BIAS_RESTART_PLANNED) * k * (
            prior + n * np.log1p(n / np.maximum(settled, 1e-9 * n))
        )
        errors = np.where(some, np.minimum(errors, np.maximum(settled, passing)), errors)
        errors[:, 0] = spread * mean  # the spike: chance
        total: FloatArray = errors @ self.weights(state, cautious=True)
        return total
