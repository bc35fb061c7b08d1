"""Weighting: integer weights, exact losses, noise that never falls short, κ."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scripted import ScriptedNoise, permit_for
from wevent import SeededNoise
from wevent.core.estimators import Weighting, weighted_mean

GRID = 2**20
LARGEST = 50_000_000_000 - 10_000_000  # what the smallest of a few classes of `permit_for` may charge
classes = st.lists(
    st.tuples(st.one_of(st.integers(0, 50), st.integers(0, LARGEST)), st.integers(0, 10**6)), min_size=1, max_size=8
)


def split(drawn: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [budget for budget, _ in sorted(drawn)], [size for _, size in sorted(drawn)]


@given(drawn=classes, sensitivity=st.integers(1, 4))  # above, one nano-epsilon is too little
def test_losses_are_exact_and_never_above_the_budget(drawn: list[tuple[int, int]], sensitivity: int) -> None:
    budgets, sizes = split(drawn)
    members = [budget for budget, size in drawn if size] or budgets
    if not max(members):
        return
    spend = permit_for(budgets, sizes, sensitivity=sensitivity).for_weighting()
    theta = max(members)
    assert spend.threshold == theta
    for weight, loss, budget in zip(spend.weights.tolist(), spend.losses.tolist(), budgets, strict=True):
        true_loss = Fraction(weight * theta, spend.unit)  # exp(Δ·A / (Δ·2^20/θ)), in nano-epsilons
        assert true_loss <= min(budget, theta)
        assert true_loss <= loss < true_loss + 1  # rounded up, by less than one nano-epsilon …
        assert loss <= budget  # … and still no more than was reserved
        full = weight * (GRID // spend.unit)
        assert Fraction((full + 1) * theta, GRID) > min(budget, theta)  # the largest weight on the grid that fits


@given(drawn=classes, sensitivity=st.integers(1, 4))  # above, one nano-epsilon is too little
def test_the_noise_is_at_least_delta_times_the_grid_over_theta(drawn: list[tuple[int, int]], sensitivity: int) -> None:
    budgets, sizes = split(drawn)
    budgets[-1], sizes[-1] = max(budgets[-1], 1), max(sizes[-1], 1)
    spend = permit_for(budgets, sizes, sensitivity=sensitivity).for_weighting()
    needed = Fraction(sensitivity * spend.unit * 10**9, spend.threshold)
    assert Fraction(spend.noise.scale) >= needed
    assert Fraction(np.nextafter(spend.noise.scale, 0.0)) < needed  # and no larger than it must be


@given(drawn=classes, sensitivity=st.integers(1, 4))
def test_the_unit_of_weights_changes_no_ratio_of_weight_and_noise(
    drawn: list[tuple[int, int]], sensitivity: int
) -> None:
    budgets, sizes = split(drawn)
    budgets[-1], sizes[-1] = max(budgets[-1], 1), max(sizes[-1], 1)
    spend = permit_for(budgets, sizes, sensitivity=sensitivity).for_weighting()
    assert GRID % spend.unit == 0
    for weight, budget in zip(spend.weights.tolist(), budgets, strict=True):
        true_loss = Fraction(weight * sensitivity * 10**9) / Fraction(spend.noise.scale)
        assert true_loss <= budget  # what a user really loses by the noise that is drawn


def test_equal_budgets_get_whole_noise() -> None:
    """Integer noise of scale 1 has a variance of 1.84; on a grid of 2^-20 it would be 2."""
    permit = permit_for([10**9, 10**9], [30, 10])
    measured = Weighting().measure(permit, Weighting().plan(permit), np.ones((2, 3), dtype=np.int64), SeededNoise(3))
    assert (measured.values == np.rint(measured.values)).all()
    assert measured.error.variance == pytest.approx(2 * np.exp(-1) / (1 - np.exp(-1)) ** 2)
    assert measured.composition == 0.0


def test_the_plan_says_what_the_permit_will_do() -> None:
    permit = permit_for([100_000_000, 400_000_000], [30, 10], sensitivity=2)
    plan = Weighting().plan(permit)
    assert plan.threshold == 400_000_000
    mean_budget = (30 * 0.1 + 10 * 0.4) / 40
    assert plan.error == pytest.approx(2 * (2 / mean_budget) ** 2, rel=1e-6)
    assert plan.losses.tolist() == permit.for_weighting().losses.tolist() == [100_000_000, 400_000_000]


def test_the_planned_error_is_the_noise_of_the_measurement() -> None:
    permit = permit_for([3_000_000, 8_000_000, 20_000_000], [5, 70, 900])
    plan = Weighting().plan(permit)
    measured = Weighting().measure(permit, plan, np.zeros((3, 2), dtype=np.int64), ScriptedNoise([]))
    assert measured.error.variance == pytest.approx(plan.error, rel=1e-6)
    assert measured.error.law == "laplace"
    assert measured.users == 975


def test_nobody_with_a_budget_cannot_be_measured() -> None:
    plan = Weighting().plan(permit_for([0, 0], [5, 5]))
    assert plan.threshold == 0
    assert plan.error == float("inf")
    assert plan.losses.tolist() == [0, 0]


def test_a_class_without_members_does_not_set_the_threshold() -> None:
    """Otherwise the weights of all who are there can fall to 0 on the grid, and κ divides by 0."""
    permit = permit_for([10_000, 40_000_000_000], [10, 0])
    plan = Weighting().plan(permit)
    assert plan.threshold == 10_000
    assert plan.losses.tolist() == [10_000, 10_000]
    counts = np.array([[4, 6], [0, 0]])
    assert Weighting().measure(permit, plan, counts, ScriptedNoise([])).values.tolist() == [4, 6]


def test_without_any_member_all_classes_count_alike() -> None:
    permit = permit_for([10_000, 40_000], [0, 0])
    measured = Weighting().measure(permit, Weighting().plan(permit), np.zeros((2, 3), dtype=np.int64), SeededNoise(1))
    assert np.isfinite(measured.values).all()
    assert measured.users == 0


def test_kappa_makes_an_even_mix_unbiased() -> None:
    """Every cell holds the same part of each class: the weighted sum is the count, exactly."""
    sizes = np.array([100, 200, 700])
    counts = np.outer(sizes // 100, [10, 35, 5])
    permit = permit_for([100_000_000, 400_000_000, 250_000_000], sizes.tolist())
    measured = Weighting().measure(permit, Weighting().plan(permit), counts, ScriptedNoise([]))
    assert measured.values == pytest.approx(counts.sum(axis=0), rel=1e-12)


def test_unbiased_over_independent_cells_with_noise() -> None:
    sizes, random = np.array([400, 300, 300]), np.random.default_rng(11)
    noise, rounds = SeededNoise(12), 4000
    errors = []
    for _ in range(rounds):
        counts = np.stack([random.multinomial(size, [0.2, 0.3, 0.5]) for size in sizes])[:, :2]
        permit = permit_for([100_000_000, 600_000_000, 300_000_000], sizes.tolist())
        measured = Weighting().measure(permit, Weighting().plan(permit), counts, noise)
        errors.append(measured.values - counts.sum(axis=0))
    bias, deviation = np.mean(errors, axis=0), np.std(errors, axis=0)
    assert (np.abs(bias) < 4 * deviation / rounds**0.5).all()
    # what is left is the noise and the mix of classes, as stated
    stated = measured.error.variance + measured.composition * 1000 * np.array([0.2 * 0.8, 0.3 * 0.7])
    assert deviation**2 == pytest.approx(stated, rel=0.15)


def test_a_correlated_cell_is_biased_by_its_mean_weight() -> None:
    """Only strict users in the first cell, only lenient ones in the second: the documented bias, exactly."""
    permit = permit_for([200_000_000, 400_000_000], [50, 50])
    counts = np.array([[40, 0], [0, 40]])
    measured = Weighting().measure(permit, Weighting().plan(permit), counts, ScriptedNoise([]))
    assert measured.values / 40 - 1 == pytest.approx([0.5 / 0.75 - 1, 1 / 0.75 - 1])


def test_composition_is_the_squared_coefficient_of_variation() -> None:
    permit = permit_for([200_000_000, 400_000_000], [50, 50])
    measured = Weighting().measure(permit, Weighting().plan(permit), np.zeros((2, 1), dtype=np.int64), SeededNoise(1))
    assert measured.composition == pytest.approx((0.625 - 0.75**2) / 0.75**2)
    equal = permit_for([300_000_000] * 2, [50, 7])
    measured = Weighting().measure(equal, Weighting().plan(equal), np.zeros((2, 1), dtype=np.int64), SeededNoise(1))
    assert measured.composition == 0


def test_the_mean_is_over_users() -> None:
    assert weighted_mean(np.array([1.0, 3.0]), np.array([3, 1])) == 1.5
    assert weighted_mean(np.array([1.0, 3.0]), np.array([0, 0])) == 2
