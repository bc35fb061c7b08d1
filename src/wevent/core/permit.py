"""Permits: the only things that sampling and noise accept, and the one place where budgets become randomness.

A permit comes out of the ledger's gate (`Ledger.reserve`) and holds the budgets that were reserved. It turns, once,
into one of four forms, and everything that decides how much privacy is lost is computed here from the reserved
numbers: sampling probabilities, noise scales, truth probabilities. A policy only proposes budgets. A form pays for one
draw: a source of noise redeems it, and a second draw is refused. When a reservation ends, its permits and all their forms
end with it.
"""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import NoReturn, final

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray, IntArray, UintArray, any_true, frozen_copy
from wevent.core.budget import (
    MAX_EPSILON,
    NANO,
    least_threshold,
    noise_scale,
    response_probability,
    sampling_probability,
)
from wevent.core.limits import MAX_SCALE

WEIGHT_BITS = 20  # weights live on a grid of 2^-20 (spec 11.1)

_set = object.__setattr__  # how a permit gets its values, once


class PermitMisused(RuntimeError):
    """A permit was made outside the gate or used twice: a bug, never a user's mistake."""


class _Gate:
    """Origin of one permit and of everything made from it; only this module and the ledger create it.

    Attributes:
        drawn: whether noise was drawn for the permit.
        ended: whether its reservation has ended: nothing is drawn any more.
    """

    __slots__ = ("drawn", "ended")

    def __init__(self) -> None:
        self.drawn = self.ended = False


class _Sealed:
    """Made by the gate, used once; never changed, copied, stored or derived from."""

    __slots__ = ("_gate", "_used")

    _gate: _Gate

    def __init__(self, gate: object) -> None:
        if type(gate) is not _Gate:
            raise PermitMisused("permits come from Ledger.reserve")
        _set(self, "_gate", gate)
        _set(self, "_used", False)

    def __init_subclass__(cls) -> None:
        if cls.__bases__ != (_Sealed,):
            raise PermitMisused("nothing derives from a permit")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise PermitMisused("a permit does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise PermitMisused("a permit does not change")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PermitMisused("a permit is neither copied nor stored")

    def _use(self) -> None:
        if getattr(self, "_used", True):  # without the mark it did not come from the gate
            raise PermitMisused("a permit pays for one measurement, and its noise is drawn once")
        if self._gate.ended:
            raise PermitMisused("the reservation of this permit has ended")
        _set(self, "_used", True)


def redeem(permit: object, kind: type[_Sealed]) -> None:
    """Use a permit up for one draw: what every source of noise does before it draws (spec 4).

    From here on the draw is charged, whether it succeeds or not (`Ledger.reserve`).

    Raises:
        PermitMisused: if it is anything but a permit of this kind from the gate, was drawn with before, or has ended.
    """
    if type(permit) is not kind:
        raise PermitMisused(f"noise is drawn for a {kind.__name__} from the gate, not for a {type(permit).__name__}")
    permit._use()
    permit._gate.drawn = True


@final
class NoisePermit(_Sealed):
    """The right to draw one vector of integer Laplace noise of scale Δ/θ.

    Loss: θ nano-epsilons to every user whose data entered the vector, for L1 sensitivity Δ (spec 6).
    """

    __slots__ = ("scale",)

    scale: float

    def __init__(self, gate: object, threshold: int, sensitivity: int) -> None:
        _Sealed.__init__(self, gate)
        threshold = operator.index(threshold)
        scale = noise_scale(threshold, sensitivity) if 0 < threshold <= MAX_EPSILON * NANO else math.inf
        if scale > MAX_SCALE:  # it could be cut off
            raise PermitMisused(f"no noise of sensitivity {sensitivity} is drawn for {threshold} nano-epsilons")
        _set(self, "scale", scale)


@final
class SamplingPermit(_Sealed):
    """The right to keep each record of class g with probability p_g and to disturb the sum with scale Δ/θ.

    The sampling mechanism SM (paper, section 4.1; spec 6). Loss of class g: min(e_g, θ) nano-epsilons.
    """

    __slots__ = ("budgets", "cells_per_user", "noise", "threshold")

    budgets: IntArray
    cells_per_user: int
    noise: NoisePermit
    threshold: int

    def __init__(self, gate: object, permit: Permit, threshold: int) -> None:
        _Sealed.__init__(self, gate)
        _set(self, "budgets", permit.budgets)
        _set(self, "threshold", threshold)
        _set(self, "cells_per_user", permit.cells_per_user)
        _set(self, "noise", NoisePermit(gate, threshold, permit.sensitivity))

    @property
    def keeps_all(self) -> bool:
        """Whether no class is below the threshold: then nothing is sampled."""
        return not any_true(self.budgets < self.threshold)

    @property
    def certain(self) -> BoolArray:
        """The classes with p_g = 1."""
        return self.budgets >= self.threshold

    def exact_probabilities(self) -> UintArray:
        """Return p_g as 64-bit fractions, never above the true value; meaningless where `certain`."""
        return np.array(
            [
                0 if budget >= self.threshold else sampling_probability(budget, self.threshold, self.cells_per_user)
                for budget in self.budgets.tolist()
            ],
            dtype=np.uint64,
        )

    def float_probabilities(self) -> FloatArray:
        """Return p_g as floats, for simulation only: they may exceed the true value by a few ulps."""
        return _float_probabilities(self.budgets.tobytes(), self.threshold, self.cells_per_user)


@lru_cache(maxsize=64)
def _float_probabilities(budgets: bytes, threshold: int, cells_per_user: int) -> FloatArray:
    exponents = np.minimum(np.frombuffer(budgets, dtype=np.int64), threshold) / (NANO * cells_per_user)
    top = threshold / (NANO * cells_per_user)
    return frozen_copy(np.exp(exponents - top) * np.expm1(-exponents) / np.expm1(-top))


@final
class WeightingPermit(_Sealed):
    """The right to sum the counts with weights A_g/2^20 and to disturb the sum with scale Δ·2^20/θ (spec 11.1).

    With θ the largest budget of a class with members and A_g = (min(e_g, θ) << 20) // θ, one user of class g moves the
    weighted sum by at most Δ·A_g in L1, so class g loses A_g·θ/2^20 ≤ e_g nano-epsilons; `losses` rounds that up.

    Where every A_g is 2^20 or 0, that factor is taken out of weights and noise: the ratio, and with it the loss, is the
    same, and whole counts get whole noise, which varies less than noise on a finer grid.

    Attributes:
        losses: of each class, nano-epsilons.
        noise: for one draw.
        threshold: θ.
        unit: the weight of a class that counts in full.
        weights: A_g, or A_g/2^20.
    """

    __slots__ = ("losses", "noise", "threshold", "unit", "weights")

    losses: IntArray
    noise: NoisePermit
    threshold: int
    unit: int
    weights: IntArray

    def __init__(self, gate: object, budgets: IntArray, permit: Permit) -> None:
        _Sealed.__init__(self, gate)
        threshold = largest_budget(budgets, permit.sizes)
        weights = integer_weights(budgets, threshold)
        unit = weight_unit(weights)
        _set(self, "noise", NoisePermit(gate, threshold, permit.sensitivity * unit))
        _set(self, "threshold", threshold)
        _set(self, "unit", unit)
        _set(self, "weights", frozen_copy(weights * unit >> WEIGHT_BITS))
        _set(self, "losses", frozen_copy(weighted_losses(weights, threshold)))


def largest_budget(budgets: IntArray, sizes: IntArray) -> int:
    """Return θ: the largest budget of a class with members, so that some class has the full weight; of all without users."""
    members = sizes > 0
    return int((budgets[members] if any_true(members) else budgets).max())


def integer_weights(budgets: IntArray, threshold: int) -> IntArray:
    """Return A_g = (min(e_g, θ) << 20) // θ: budgets are at most 5e10 nano-epsilons, so nothing overflows."""
    weights: IntArray = (np.minimum(budgets, threshold) << WEIGHT_BITS) // threshold
    return weights


def weight_unit(weights: IntArray) -> int:
    """Return what stands for a class that counts in full: 1 if all classes that count do, otherwise 2^20."""
    grid = 1 << WEIGHT_BITS
    return grid if any_true(weights % grid != 0) else 1


def weighted_losses(weights: IntArray, threshold: int) -> IntArray:
    """Return A_g·θ/2^20, rounded up to whole nano-epsilons: never above e_g, which is whole too."""
    losses: IntArray = -(-weights * threshold >> WEIGHT_BITS)
    return losses


@final
class SplitPermit(_Sealed):
    """The right to two weighted sums of one slot (spec 11.8): the anchor with min(level, e_g), the main sum with the rest.

    Sequential composition within the slot: class g loses at most min(level, e_g) in the anchor and e_g − min(level, e_g) in
    the main sum, e_g together. A part that nobody has enough budget for is None and costs nothing.
    """

    __slots__ = ("anchor", "losses", "main")

    anchor: WeightingPermit | None
    losses: IntArray
    main: WeightingPermit | None

    def __init__(self, gate: object, permit: Permit) -> None:
        _Sealed.__init__(self, gate)
        parts = [
            WeightingPermit(gate, budgets, permit)
            if suffices(largest_budget(budgets, permit.sizes), permit.sensitivity)
            else None
            for budgets in split_budgets(permit.budgets, permit.level)
        ]
        losses = sum((part.losses for part in parts if part is not None), start=np.zeros_like(permit.budgets))
        _set(self, "anchor", parts[0])
        _set(self, "main", parts[1])
        _set(self, "losses", frozen_copy(losses))


def split_budgets(budgets: IntArray, level: int) -> tuple[IntArray, IntArray]:
    """Return what goes into the anchor, min(level, e_g), and what into the main sum: e_g in all, in whole nano-epsilons."""
    anchor = np.minimum(budgets, level)
    return anchor, budgets - anchor


def suffices(threshold: int, sensitivity: int) -> bool:
    """Return whether θ is enough for a weighted sum whose noise is not cut off."""
    return threshold >= least_threshold(sensitivity << WEIGHT_BITS)


@final
class ResponsePermit(_Sealed):
    """The right to one randomized response per user with e_g (spec 9). Loss of class g: e_g nano-epsilons."""

    __slots__ = ("cells", "truths")

    cells: int
    truths: UintArray

    def __init__(self, gate: object, permit: Permit, cells: int) -> None:
        _Sealed.__init__(self, gate)
        truths = [response_probability(budget, cells) for budget in permit.budgets.tolist()]
        _set(self, "cells", cells)
        _set(self, "truths", frozen_copy(np.array(truths, dtype=np.uint64)))

    def float_truths(self) -> FloatArray:
        """Return the truth probabilities p_g as floats, for estimation and simulation."""
        return self.truths / 2.0**64


@final
class Permit(_Sealed):
    """Reserved budgets of the present classes, to be used once.

    Attributes:
        budgets: e_g per class of the population, nano-epsilons, read-only.
        sizes: n_g per class, from the registry.
        threshold_sizes: the n_g that OBS chooses θ with, see `Population.threshold_sizes`.
        sensitivity: Δ under the stream's neighbouring relation.
        cells_per_user: k.
        level: how much of each budget an anchor may take, nano-epsilons.
    """

    __slots__ = ("budgets", "cells_per_user", "level", "sensitivity", "sizes", "threshold_sizes")

    budgets: IntArray
    cells_per_user: int
    level: int
    sensitivity: int
    sizes: IntArray
    threshold_sizes: IntArray

    def __init__(
        self,
        gate: object,
        budgets: IntArray,
        sizes: IntArray,
        *,
        threshold_sizes: IntArray,
        sensitivity: int,
        cells_per_user: int,
        level: int = 0,
    ) -> None:
        _Sealed.__init__(self, gate)
        _set(self, "budgets", budgets)
        _set(self, "sizes", sizes)
        _set(self, "threshold_sizes", threshold_sizes)
        _set(self, "sensitivity", sensitivity)
        _set(self, "cells_per_user", cells_per_user)
        _set(self, "level", level)

    def for_sampling(self, threshold: int) -> SamplingPermit:
        """Use it for the sampling mechanism with threshold θ; class g loses min(e_g, θ)."""
        self._use()
        return SamplingPermit(self._gate, self, threshold)

    def for_weighting(self) -> WeightingPermit:
        """Use it for a weighted sum; class g loses at most e_g."""
        self._use()
        return WeightingPermit(self._gate, self.budgets, self)

    def for_split(self) -> SplitPermit:
        """Use it for two weighted sums, anchor and main; class g loses at most e_g in both together."""
        self._use()
        return SplitPermit(self._gate, self)

    def for_response(self, cells: int) -> ResponsePermit:
        """Use it for randomized response over `cells` cells plus "absent"; class g loses e_g."""
        self._use()
        return ResponsePermit(self._gate, self, cells)


@final
class Reservation(_Sealed):
    """What the ledger set aside for one slot: the most the slot may charge (spec 4).

    Attributes:
        slot: the slot it is valid for.
        probe_budgets: e¹ per ledger row.
        publication_budgets: e² per ledger row.
        probe: the permit for the dissimilarity, if the mechanism probes.
        publication: the permit for a publication, if one is offered.
    """

    __slots__ = ("probe", "probe_budgets", "publication", "publication_budgets", "slot")

    probe: Permit | None
    probe_budgets: IntArray
    publication: Permit | None
    publication_budgets: IntArray
    slot: int

    def __init__(
        self, slot: int, budgets: tuple[IntArray, IntArray], permits: tuple[Permit | None, Permit | None]
    ) -> None:
        _Sealed.__init__(self, _Gate())
        _set(self, "slot", slot)
        _set(self, "probe_budgets", budgets[0])
        _set(self, "publication_budgets", budgets[1])
        _set(self, "probe", permits[0])
        _set(self, "publication", permits[1])

    def end(self) -> tuple[bool, bool]:
        """End its permits and their forms; return whether the probe and the publication were drawn."""
        drawn = []
        for permit in (self.probe, self.publication):
            if permit is not None:
                permit._gate.ended = True
            drawn.append(permit is not None and permit._gate.drawn)
        return drawn[0], drawn[1]
