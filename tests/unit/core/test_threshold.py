"""OBS: the worked example, and the prefix sums against the formula written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.profiles import examples
from tests.unit.scripted import permit_for
from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.budget import NANO
from wevent.core.estimators import Threshold, choose_threshold, reporting_errors
from wevent.core.ledger import Ledger


def literal_errors(
    budgets: list[int], sizes: list[int], sensitivity: int = 1, cells_per_user: int = 1
) -> dict[int, float]:
    """Spec 5, symbol by symbol."""
    errors = {}
    for theta in sorted({budget for budget in budgets if budget > 0}):
        variance = bias = 0.0
        for budget, size in zip(budgets, sizes, strict=True):
            if budget < theta:
                p = math.expm1(budget / NANO / cells_per_user) / math.expm1(theta / NANO / cells_per_user)
            else:
                p = 1.0
            variance += cells_per_user * size * p * (1 - p)
            bias += cells_per_user * size * (1 - p)
        errors[theta] = variance + bias**2 + 2 * (sensitivity / (theta / NANO)) ** 2
    return errors


def test_the_worked_example_of_the_paper_with_its_slip_corrected() -> None:
    """Budgets 0.1 ×2, 0.4 ×5, 0.8 ×3: errors 200, 15.308424…, 27.733024… (not 89.74); θ = 0.4."""
    budgets, sizes = [100_000_000, 400_000_000, 800_000_000], [2, 5, 3]
    candidates, errors = reporting_errors(budgets, sizes)
    assert candidates.tolist() == budgets
    assert errors[0] == pytest.approx(200, rel=1e-12)
    assert math.floor(errors[1] * 1e6) == 15_308_424
    assert math.floor(errors[2] * 1e6) == 27_733_024
    choice = choose_threshold(permit_for(budgets, sizes))
    assert choice.nano == 400_000_000
    assert choice.error == pytest.approx(errors[1], rel=1e-12)


def test_the_worked_example_user_by_user() -> None:
    budgets = [100_000_000] * 2 + [400_000_000] * 5 + [800_000_000] * 3
    choice = choose_threshold(permit_for(budgets, [1] * 10))
    assert choice.nano == 400_000_000
    assert math.floor(choice.error * 1e6) == 15_308_424


@st.composite
def classes(draw: st.DrawFn, most: int) -> tuple[list[int], list[int]]:
    number = draw(st.integers(1, most))
    budget = st.one_of(st.just(0), st.integers(1, 10**6), st.integers(1, 49 * NANO))
    return (
        sorted(
            draw(st.lists(budget, min_size=number, max_size=number))
        ),  # the later classes of `permit_for` are looser
        draw(st.lists(st.integers(0, 10**5), min_size=number, max_size=number)),
    )


@examples(150)
@given(classes(80), st.integers(1, 6), st.integers(1, 3))
def test_prefix_sums_and_formula_agree(case: tuple[list[int], list[int]], sensitivity: int, k: int) -> None:
    budgets, sizes = case
    expected = literal_errors(budgets, sizes, sensitivity, k)
    candidates, errors = reporting_errors(budgets, sizes, sensitivity=sensitivity, cells_per_user=k)
    assert set(candidates.tolist()) == set(expected)
    slack = 1e-9 * (k * sum(sizes)) ** 2 + 1e-6  # cancellation in the variance, which is at most a quarter of the users
    for theta, error in zip(candidates.tolist(), errors.tolist(), strict=True):
        assert error == pytest.approx(expected[theta], rel=1e-7, abs=slack)
    choice = choose_threshold(permit_for(budgets, sizes, sensitivity=sensitivity, cells_per_user=k))
    if not expected:
        assert choice == Threshold(0, math.inf)
    else:
        assert expected[choice.nano] <= min(expected.values()) * (1 + 1e-7) + slack
        assert choice.error == pytest.approx(expected[choice.nano], rel=1e-7, abs=slack)


def test_nothing_overflows_at_the_largest_budgets() -> None:
    budgets, sizes = [1, 49 * NANO, 49 * NANO + 1], [10**6, 10**6, 1]
    _, errors = reporting_errors(budgets, sizes)
    assert np.isfinite(errors).all()
    assert math.isfinite(choose_threshold(permit_for(budgets, sizes)).error)


def test_a_class_without_budget_counts_fully_in_the_bias() -> None:
    budgets, sizes = [0, 400_000_000], [7, 5]
    choice = choose_threshold(permit_for(budgets, sizes))
    assert choice.nano == 400_000_000
    assert choice.error == pytest.approx(7**2 + 2 / 0.4**2)


def test_the_sensitivity_enters_the_noise_squared() -> None:
    budgets = [500_000_000]
    for sensitivity in (1, 2, 6):
        choice = choose_threshold(permit_for(budgets, [9], sensitivity=sensitivity))
        assert choice.error == pytest.approx(2 * (sensitivity / 0.5) ** 2)


def test_users_in_transition_move_no_threshold_and_nothing_else_reads_own() -> None:
    """400 of 1,000 users are counted in the stricter class for a while (spec 15.3)."""
    loose, strict = Requirement(1, 1), Requirement(1, "0.1")
    before, plain = Population({loose: 1000, strict: 0}), Population({loose: 600, strict: 400})
    moving = Population({loose: 600, strict: 400}, {loose: 600})
    permits = {
        name: Ledger(population).reserve(None, np.array([10**8, 10**9])).publication
        for name, population in {"before": before, "plain": plain, "moving": moving}.items()
    }
    thresholds = {name: choose_threshold(permit).nano for name, permit in permits.items() if permit is not None}
    assert thresholds == {"before": 10**9, "plain": 10**8, "moving": 10**9}
    for permit in permits.values():
        assert permit is not None
        assert permit.sizes.tolist() == ([0, 1000] if permit is permits["before"] else [400, 600])
    for mechanism in ("pft", "plbu", "uniform"):
        runs = [Publisher(one, 2, mechanism, noise=SeededNoise(2)) for one in (plain, moving)]
        first, second = ([run.step([[50, 90], [100, 300]]).to_dict() for _ in range(20)] for run in runs)
        assert first == second


def test_a_budget_whose_noise_would_be_cut_off_is_no_candidate() -> None:
    """k = 10^7: below three nano-epsilons the scale exceeds 2^52, however many users would be left out for it."""
    sizes = [2**34, 2**34, 1, 1]
    for k, expected in ((10**6, 1), (10**7, 3)):
        permit = permit_for([1, 1, 3, 4], sizes, sensitivity=k, cells_per_user=k)
        assert choose_threshold(permit).nano == expected
        permit.for_sampling(expected)
    permit = permit_for([1, 1, 2, 2], sizes, sensitivity=10**7, cells_per_user=10**7)
    assert choose_threshold(permit) == Threshold(0, math.inf)
