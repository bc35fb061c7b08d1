"""The local estimator by hand: what goes in, what comes out, what error is stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.scripted import ScriptedNoise, permit_for
from wevent.core.estimators import RandomizedResponse


def test_every_registered_user_reports_absent_or_not() -> None:
    seen = {}

    class Watching(ScriptedNoise):
        def respond(self, counts, permit):
            seen["answers"] = counts.copy()
            seen["truths"] = permit.float_truths()
            return super().respond(counts, permit)

    permit = permit_for([10**9, 2 * 10**9], [10, 20])
    estimator = RandomizedResponse()
    plan = estimator.plan(permit)
    assert plan.losses.tolist() == [10**9, 2 * 10**9]
    measurement = estimator.measure(permit, plan, np.array([[3, 4], [0, 6]]), Watching([]))
    assert seen["answers"].tolist() == [[3, 4, 3], [0, 6, 14]]
    assert seen["truths"] == pytest.approx([math.e / (math.e + 2), math.e**2 / (math.e**2 + 2)])

    expected, variance = np.zeros(2), 0.0
    for users, p, reports in zip([10, 20], seen["truths"], [[3, 4], [0, 6]], strict=True):
        q = (1 - p) / 2
        expected += (np.array(reports) - users * q) / (p - q)
        variance += users * q * (1 - q) / (p - q) ** 2
    assert measurement.values == pytest.approx(expected)
    assert measurement.error.variance == pytest.approx(variance)
    assert measurement.error.law == "normal"


def test_a_class_without_a_budget_says_nothing() -> None:
    """Its answers are uniform: estimating from them would divide by nothing."""
    permit = permit_for([0, 2 * 10**9], [10, 20])
    alone = permit_for([2 * 10**9], [20])
    measured, expected = (
        RandomizedResponse().measure(one, RandomizedResponse().plan(one), np.array(counts), ScriptedNoise([]))
        for one, counts in ((permit, [[3, 4], [0, 6]]), (alone, [[0, 6]]))
    )
    assert measured.values.tolist() == expected.values.tolist()
    assert measured.error == expected.error
