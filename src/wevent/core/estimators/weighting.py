"""Weights instead of sampling: every class counts with its own budget, nobody is left out (spec 11.1).

Privacy. The released vector is Σ_g A_g·C[g, ·] plus integer Laplace noise of scale at least Δ·2^20/θ. Under the
neighbouring relation one user of class g changes the sum by at most A_g·Δ in L1, so the probability of any outcome
changes by a factor of at most exp(A_g·Δ / scale) ≤ exp(A_g·θ/2^20) ≤ exp(e_g), since A_g ≤ e_g·2^20/θ. Multiplying by κ is
post-processing. Where every A_g is 2^20 or 0, that factor is taken out of weights and scale alike. No sampling variance and
no waste: class g loses its own e_g, not min(e_g, θ) of a common threshold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.core.estimators.sampling import laplace_error
from wevent.core.mechanism import Measurement, NoiseError, NoiseSource, Plan
from wevent.core.permit import (
    WEIGHT_BITS,
    Permit,
    WeightingPermit,
    integer_weights,
    largest_budget,
    suffices,
    weighted_losses,
)


class Weighting:
    """Weigh each class by its budget, sum, add integer noise, scale back with κ.

    Unbiased if cells, presence and classes are independent; otherwise the relative bias of a cell is its users' mean
    weight over everyone's mean weight, minus 1.
    """

    def plan(self, permit: Permit) -> Plan:
        """θ = max e over classes with members; the error expected per cell is the noise, 2(Δ/ē)², ē the mean over users."""
        return plan_sum(permit.budgets, permit)

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Weigh and disturb. Charges class g at most e_g; its true loss is A_g·θ/2^20 (above)."""
        spend = permit.for_weighting()
        values, error = measure_sum(spend, permit.sizes, counts, noise)
        weights = spend.weights / spend.unit
        mean = weighted_mean(weights, permit.sizes)
        composition = max(0.0, weighted_mean(weights * weights, permit.sizes) / mean**2 - 1.0)
        return Measurement(values, error, composition, int(permit.sizes.sum()))


def plan_sum(budgets: IntArray, permit: Permit) -> Plan:
    """What a weighted sum with these of the permit's budgets would be and cost; without noise for it, nothing (spec 11.1)."""
    threshold = largest_budget(budgets, permit.sizes)
    if not suffices(threshold, permit.sensitivity):
        return Plan(0, float("inf"), np.zeros_like(budgets))
    weights = integer_weights(budgets, threshold)
    mean = weighted_mean(weights / 2**WEIGHT_BITS, permit.sizes)
    error = 2.0 * (permit.sensitivity * NANO / (threshold * mean)) ** 2
    return Plan(threshold, error, weighted_losses(weights, threshold))


def measure_sum(
    spend: WeightingPermit, sizes: IntArray, counts: IntArray, noise: NoiseSource
) -> tuple[FloatArray, NoiseError]:
    """Σ_g A_g·C[g, ·] plus noise, times κ/2^20: values and their law (spec 11.1). Class g loses at most `spend.losses[g]`."""
    total = spend.weights @ counts
    total += noise.laplace(spend.noise, len(total))
    scale = 1.0 / (weighted_mean(spend.weights / spend.unit, sizes) * spend.unit)  # κ/2^20: post-processing
    law = laplace_error(spend.noise.scale)
    return total.astype(np.float64) * scale, NoiseError("laplace", law.scale * scale, law.variance * scale**2)


def weighted_mean(values: npt.NDArray[np.float64], sizes: IntArray) -> float:
    """The mean over registered users; over classes if there are none."""
    users = int(sizes.sum())
    return float(values @ sizes) / users if users else float(values.mean())
