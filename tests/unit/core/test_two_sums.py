"""Two sums from one reservation: what each class loses in both together, in exact integers, and what is measured."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scripted import ScriptedNoise, permit_for
from wevent import SeededNoise
from wevent.core.estimators import CalibratedSum

GRID = 2**20
LARGEST = 50_000_000_000 - 10_000_000  # what the smallest of a few classes of `permit_for` may charge
classes = st.lists(
    st.tuples(st.one_of(st.integers(0, 50), st.integers(0, LARGEST)), st.integers(0, 10**6)), min_size=1, max_size=8
)


@given(drawn=classes, level=st.integers(0, LARGEST), sensitivity=st.integers(1, 4))
def test_both_sums_cost_a_class_no_more_than_was_reserved(
    drawn: list[tuple[int, int]], level: int, sensitivity: int
) -> None:
    budgets, sizes = [budget for budget, _ in sorted(drawn)], [size for _, size in sorted(drawn)]
    spend = permit_for(budgets, sizes, sensitivity=sensitivity, level=level).for_split()
    parts = [part for part in (spend.anchor, spend.main) if part is not None]
    for row, budget in enumerate(budgets):
        # the true loss of a part: Δ·A over its own noise scale, in nano-epsilons
        true = [Fraction(int(part.weights[row]) * sensitivity * 10**9) / Fraction(part.noise.scale) for part in parts]
        assert sum(true) <= int(spend.losses[row]) <= budget
        assert sum(int(part.losses[row]) for part in parts) == int(spend.losses[row])
        if spend.anchor is not None:
            assert int(spend.anchor.losses[row]) <= min(level, budget)


@given(drawn=classes, level=st.integers(0, LARGEST))
def test_the_plan_says_what_the_permit_will_do(drawn: list[tuple[int, int]], level: int) -> None:
    budgets, sizes = [budget for budget, _ in sorted(drawn)], [size for _, size in sorted(drawn)]
    permit = permit_for(budgets, sizes, level=level)
    plan = CalibratedSum().plan(permit)
    spend = permit.for_split()
    assert plan.losses.tolist() == spend.losses.tolist()
    last = spend.main or spend.anchor
    assert plan.threshold == (0 if last is None else last.threshold)


def test_an_anchor_counts_everyone_alike_and_the_main_sum_by_what_is_left() -> None:
    permit = permit_for([100_000_000, 400_000_000], [30, 10], level=100_000_000)
    counts = np.array([[5, 7, 0], [3, 0, 9]])
    measured = CalibratedSum().measure(permit, CalibratedSum().plan(permit), counts, ScriptedNoise([]))
    assert measured.anchor is not None
    assert measured.anchor[0].tolist() == [8, 7, 9]
    assert measured.values == pytest.approx([3 * 4, 0, 9 * 4])  # the strict class has nothing left: κ is 40 / 10
    assert measured.users == 40
    assert measured.composition == pytest.approx(3.0)  # weights 0 and 4 around 1, for 30 and 10
    assert measured.lean is not None
    assert float(measured.lean @ measured.lean) == measured.composition


def test_a_level_of_nothing_is_a_main_sum_alone_and_a_level_of_all_an_anchor() -> None:
    for level, anchored, leaning in ((0, False, True), (400_000_000, True, False)):
        permit = permit_for([200_000_000, 400_000_000], [30, 10], level=level)
        counts = np.array([[5, 7, 0], [3, 0, 9]])
        measured = CalibratedSum().measure(permit, CalibratedSum().plan(permit), counts, SeededNoise(3))
        assert (measured.anchor is not None, measured.lean is not None) == (anchored, leaning)
        if not leaning:
            assert measured.anchor is not None
            assert measured.values.tolist() == measured.anchor[0].tolist()


def test_both_sums_have_noise_of_their_own() -> None:
    permit = permit_for([10**9, 2 * 10**9], [30, 10], level=10**9)
    counts = np.zeros((2, 400), dtype=np.int64)
    measured = CalibratedSum().measure(permit, CalibratedSum().plan(permit), counts, SeededNoise(1))
    assert measured.anchor is not None
    both = np.corrcoef(measured.values, measured.anchor[0])[0, 1]
    assert abs(both) < 0.2
    for values, error in ((measured.values, measured.error), measured.anchor):
        assert values.var() == pytest.approx(error.variance, rel=0.4)


def test_nobody_with_a_budget_cannot_be_measured() -> None:
    assert CalibratedSum().plan(permit_for([0, 0], [3, 4], level=5)).threshold == 0
