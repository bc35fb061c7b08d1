"""The sampling mechanism SM with the threshold from OBS (paper, section 4.1; spec 5 and 6)."""

from __future__ import annotations

import math

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Measurement, NoiseError, NoiseSource, Plan
from wevent.core.permit import Permit, SamplingPermit
from wevent.core.threshold import choose_threshold


class Sampling:
    """Sample every class down to one threshold, sum, add integer noise."""

    def plan(self, permit: Permit) -> Plan:
        """θ = OBS(e); class g loses min(e_g, θ)."""
        choice = choose_threshold(permit)
        return Plan(choice.nano, choice.error, np.minimum(permit.budgets, choice.nano))

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Sample, then disturb (SM_s, SM_d). Charges class g at most e_g; its true loss is min(e_g, θ)."""
        spend = permit.for_sampling(plan.threshold)
        values = sample(counts, spend, noise)
        values += noise.laplace(spend.noise, len(values))
        return Measurement(values, laplace_error(spend.noise.scale), users=int(permit.sizes.sum()))


def sample(counts: IntArray, spend: SamplingPermit, noise: NoiseSource) -> IntArray:
    """SM_s: Binomial(C[g, j], p_g), summed over classes; p_g = 1 keeps everyone without a draw."""
    kept = counts if spend.keeps_all else noise.binomial(counts, spend)
    total: IntArray = np.add.reduce(kept, axis=0)
    return total


def laplace_error(scale: float) -> NoiseError:
    """The variance of integer Laplace noise, 2q/(1 − q)² with q = exp(−1/scale)."""
    return NoiseError("laplace", scale, 2.0 * math.exp(-1.0 / scale) / math.expm1(-1.0 / scale) ** 2)
