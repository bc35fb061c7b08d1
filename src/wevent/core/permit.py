"""Permits: the only things that sampling and noise accept, and the one place where budgets become randomness.

A permit comes out of the ledger's gate (`Ledger.reserve`) and holds the budgets that were reserved. It turns, once,
into one of three forms, and everything that decides how much privacy is lost is computed here from the reserved
numbers: sampling probabilities, noise scales, truth probabilities. A policy only proposes budgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray, IntArray, UintArray, any_true
from wevent.core.budget import NANO, noise_scale, response_probability, sampling_probability

WEIGHT_BITS = 20  # weights live on a grid of 2^-20 (spec 11)

_GATE = object()  # only this module and the ledger hold it: nobody else makes permits by accident


class PermitMisused(RuntimeError):
    """A permit was made outside the gate or used twice: a bug, never a user's mistake."""


class NoisePermit:
    """The right to draw one vector of integer Laplace noise of scale Δ/θ.

    Loss: θ nano-epsilons to every user whose data entered the vector, for L1 sensitivity Δ (spec 6).
    """

    __slots__ = ("scale",)

    def __init__(self, gate: object, threshold: int, sensitivity: int) -> None:
        _check(gate)
        self.scale = noise_scale(threshold, sensitivity)


class SamplingPermit:
    """The right to keep each record of class g with probability p_g and to disturb the sum with scale Δ/θ.

    The sampling mechanism SM (paper, section 4.1; spec 6). Loss of class g: min(e_g, θ) nano-epsilons.
    """

    __slots__ = ("budgets", "cells_per_user", "noise", "threshold")

    def __init__(self, gate: object, permit: Permit, threshold: int) -> None:
        _check(gate)
        self.budgets = permit.budgets
        self.threshold = threshold
        self.cells_per_user = permit.cells_per_user
        self.noise = NoisePermit(gate, threshold, permit.sensitivity)

    @property
    def keeps_all(self) -> bool:
        """Whether no class is below the threshold: then nothing is sampled."""
        return not any_true(self.budgets < self.threshold)

    @property
    def certain(self) -> BoolArray:
        """The classes with p_g = 1."""
        return self.budgets >= self.threshold

    def exact_probabilities(self) -> UintArray:
        """p_g as 64-bit fractions, never above the true value; meaningless where `certain`."""
        return np.array(
            [
                0 if budget >= self.threshold else sampling_probability(budget, self.threshold, self.cells_per_user)
                for budget in self.budgets.tolist()
            ],
            dtype=np.uint64,
        )

    def float_probabilities(self) -> FloatArray:
        """p_g as floats, for simulation only: they may exceed the true value by a few ulps."""
        return _float_probabilities(self.budgets.tobytes(), self.threshold, self.cells_per_user)


@lru_cache(maxsize=64)
def _float_probabilities(budgets: bytes, threshold: int, cells_per_user: int) -> FloatArray:
    exponents = np.minimum(np.frombuffer(budgets, dtype=np.int64), threshold) / (NANO * cells_per_user)
    top = threshold / (NANO * cells_per_user)
    probabilities: FloatArray = np.exp(exponents - top) * np.expm1(-exponents) / np.expm1(-top)
    probabilities.setflags(write=False)
    return probabilities


class WeightingPermit:
    """The right to sum the counts with weights A_g/2^20 and to disturb the sum with scale Δ·2^20/θ (spec 11).

    With θ the largest budget of a class with members and A_g = (min(e_g, θ) << 20) // θ, one user of class g moves the
    weighted sum by at most Δ·A_g in L1, so class g loses A_g·θ/2^20 ≤ e_g nano-epsilons; `losses` rounds that up.
    """

    __slots__ = ("losses", "noise", "threshold", "weights")

    def __init__(self, gate: object, permit: Permit) -> None:
        _check(gate)
        self.threshold = largest_budget(permit.budgets, permit.sizes)
        self.weights = integer_weights(permit.budgets, self.threshold)
        self.losses = weighted_losses(self.weights, self.threshold)
        self.noise = NoisePermit(gate, self.threshold, permit.sensitivity << WEIGHT_BITS)


def largest_budget(budgets: IntArray, sizes: IntArray) -> int:
    """θ: the largest budget of a class with members, so that somebody has the full weight; of all if nobody is there."""
    members = sizes > 0
    return int((budgets[members] if members.any() else budgets).max())


def integer_weights(budgets: IntArray, threshold: int) -> IntArray:
    """A_g = (min(e_g, θ) << 20) // θ: budgets are at most 5e10 nano-epsilons, so nothing overflows."""
    weights: IntArray = (np.minimum(budgets, threshold) << WEIGHT_BITS) // threshold
    return weights


def weighted_losses(weights: IntArray, threshold: int) -> IntArray:
    """A_g·θ/2^20, rounded up to whole nano-epsilons: never above e_g, which is whole too."""
    losses: IntArray = -(-weights * threshold >> WEIGHT_BITS)
    return losses


class ResponsePermit:
    """The right to one randomized response per user with e_g (spec 9). Loss of class g: e_g nano-epsilons."""

    __slots__ = ("cells", "truths")

    def __init__(self, gate: object, permit: Permit, cells: int) -> None:
        _check(gate)
        self.cells = cells
        self.truths = np.array(
            [response_probability(budget, cells) for budget in permit.budgets.tolist()], dtype=np.uint64
        )

    def float_truths(self) -> FloatArray:
        """The truth probabilities p_g as floats, for estimation and simulation."""
        return self.truths / 2.0**64


class Permit:
    """Reserved budgets of the present classes, to be used once.

    Attributes:
        budgets: e_g per class of the population, nano-epsilons, read-only.
        sizes: n_g per class, from the registry.
        sensitivity: Δ under the stream's neighbouring relation.
        cells_per_user: k.
    """

    __slots__ = ("_used", "budgets", "cells_per_user", "sensitivity", "sizes")

    def __init__(
        self, gate: object, budgets: IntArray, sizes: IntArray, *, sensitivity: int, cells_per_user: int
    ) -> None:
        _check(gate)
        self.budgets = budgets
        self.sizes = sizes
        self.sensitivity = sensitivity
        self.cells_per_user = cells_per_user
        self._used = False

    def for_sampling(self, threshold: int) -> SamplingPermit:
        """Use it for the sampling mechanism with threshold θ; class g loses min(e_g, θ)."""
        self._use()
        return SamplingPermit(_GATE, self, threshold)

    def for_weighting(self) -> WeightingPermit:
        """Use it for a weighted sum; class g loses at most e_g."""
        self._use()
        return WeightingPermit(_GATE, self)

    def for_response(self, cells: int) -> ResponsePermit:
        """Use it for randomized response over `cells` cells plus "absent"; class g loses e_g."""
        self._use()
        return ResponsePermit(_GATE, self, cells)

    def _use(self) -> None:
        if self._used:
            raise PermitMisused("a permit pays for one measurement")
        self._used = True


@dataclass(frozen=True, slots=True)
class Reservation:
    """What the ledger set aside for one slot: the most the slot may charge (spec 4).

    Attributes:
        slot: the slot it is valid for.
        probe_budgets: e¹ per ledger row.
        publication_budgets: e² per ledger row.
        probe: the permit for the dissimilarity, if the mechanism probes.
        publication: the permit for a publication, if one is offered.
    """

    slot: int
    probe_budgets: IntArray
    publication_budgets: IntArray
    probe: Permit | None
    publication: Permit | None


def _check(gate: object) -> None:
    if gate is not _GATE:
        raise PermitMisused("permits come from Ledger.reserve")
