"""The local model: every user randomizes their own report (spec 9)."""

from __future__ import annotations

import math

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Measurement, NoiseError, NoiseSource, Plan
from wevent.core.permit import Permit, largest_budget
from wevent.core.response import unbiased


class Randomized:
    """Generalized randomized response over the cells plus "absent", estimated per class and summed.

    Drawn at class level here: the law of the reports is that of every registered user sending exactly one.
    """

    def plan(self, permit: Permit) -> Plan:
        """Class g loses e_g. The largest budget of a class with members stands for the threshold."""
        return Plan(largest_budget(permit.budgets, permit.sizes), math.inf, permit.budgets)

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Draw every user's report, then estimate. Charges class g e_g."""
        spend = permit.for_response(counts.shape[1])
        users = permit.sizes[:, None]
        answers = np.hstack([counts, users - counts.sum(axis=1, keepdims=True)])  # the absent answer too
        reports = noise.respond(answers, spend)
        heard = permit.budgets > 0  # without a budget an answer says nothing
        users, truths = users[heard], spend.float_truths()[heard, None]
        values = unbiased(reports[heard, :-1], users, truths, spend.cells).sum(axis=0)
        lies = (1.0 - truths) / spend.cells
        variance = float((users * lies * (1.0 - lies) / (truths - lies) ** 2).sum())
        return Measurement(np.asarray(values), NoiseError("normal", math.sqrt(variance), variance))
