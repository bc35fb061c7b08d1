"""Two weighted sums of one slot: the main one with the classes' own budgets, and the anchor, in which all count alike.

Privacy. Class g's budget e_g is split into a_g = min(level, e_g) and e_g − a_g, whole nano-epsilons. Each part is a weighted
sum with noise of its own (see `weighting`): the anchor costs class g at most a_g and the main sum at most e_g − a_g, so the
slot costs e_g, by composition (spec 11.8). Which part is measured is decided before counts are read. All else is free.
"""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.estimators.weighting import measure_sum, plan_sum, weighted_mean
from wevent.core.mechanism import Measurement, NoiseSource, Plan
from wevent.core.permit import Permit, WeightingPermit, split_budgets


class TwoSums:
    """Weigh, sum and disturb once or twice, as the permit's level says."""

    def plan(self, permit: Permit) -> Plan:
        """θ and the expected error of the main sum, or of the anchor where there is none; the losses of both."""
        anchor, main = (plan_sum(budgets, permit) for budgets in split_budgets(permit.budgets, permit.level))
        return (main if main.threshold else anchor)._replace(losses=anchor.losses + main.losses)

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Charges class g at most min(level, e_g) for the anchor and the rest of e_g for the main sum (spec 11.8)."""
        spend = permit.for_split()
        users = int(permit.sizes.sum())
        anchor = None if spend.anchor is None else measure_sum(spend.anchor, permit.sizes, counts, noise)
        if spend.main is None:
            assert anchor is not None  # the plan found θ > 0
            return Measurement(*anchor, 0.0, users, anchor)
        lean = _lean(spend.main, permit.sizes)
        values, error = measure_sum(spend.main, permit.sizes, counts, noise)
        return Measurement(values, error, float(lean @ lean), users, anchor, lean)


def _lean(spend: WeightingPermit, sizes: IntArray) -> FloatArray:
    """How the weights differ from equal ones: its square is their CV² over users."""
    weights = spend.weights / spend.unit
    members = sizes if sizes.any() else np.ones_like(sizes)
    lean: FloatArray = (weights / weighted_mean(weights, sizes) - 1.0) * np.sqrt(members / members.sum())
    return lean + 0.0  # no −0.0: a journal has none
