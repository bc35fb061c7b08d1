"""The accountant of the baselines: a charge in every window that a draw meets, and no window above its epsilon."""

import numpy as np
import pytest

from wevent import Requirement
from wevent.experiments.baselines import BaselineAccountant, BaselineNoise, BaselineOverspent

W4 = Requirement(4, 1)
WHOLE, HALF = 1_000_000_000, 500_000_000


def test_a_release_costs_every_window_that_holds_its_slot():
    accountant = BaselineAccountant(W4)
    accountant.release(1, WHOLE)
    for slot in (2, 3, 4):
        with pytest.raises(BaselineOverspent):
            accountant.release(slot, 1)
    accountant.release(5, WHOLE)
    assert accountant.worst_window(4) == WHOLE
    assert accountant.worst_window(5) == 2 * WHOLE


def test_a_refused_charge_is_not_made():
    accountant = BaselineAccountant(W4)
    accountant.release(1, HALF)
    with pytest.raises(BaselineOverspent):
        accountant.release(2, HALF + 1)
    accountant.release(2, HALF)
    assert accountant.draws == [(1, 1, HALF), (2, 2, HALF)]


def test_a_run_of_tests_costs_its_budget_once_in_every_window_it_meets():
    accountant = BaselineAccountant(W4)
    run = accountant.begin(3, WHOLE)  # reads slots 2 and 3
    for slot in (4, 5, 9):
        accountant.go_on(run, slot)
    assert accountant.draws == [(2, 9, WHOLE)]
    assert accountant.worst_window(4) == WHOLE
    for slot in (9, 10, 12):  # windows from slot 9 on still meet the run
        with pytest.raises(BaselineOverspent):
            accountant.release(slot, 1)
    accountant.release(13, WHOLE)


def test_a_run_reads_the_slot_before_its_first_test():
    accountant = BaselineAccountant(W4)
    accountant.release(1, WHOLE)
    with pytest.raises(BaselineOverspent):
        accountant.begin(5, 1)  # reads slot 4, which is in a window with slot 1
    accountant.begin(6, WHOLE)


def test_a_run_that_goes_on_pays_in_new_windows_only():
    accountant = BaselineAccountant(W4)
    run = accountant.begin(2, HALF)
    accountant.release(3, HALF)
    accountant.go_on(run, 6)  # windows from slot 3 on: 500 of the release, 500 of the run
    accountant.release(7, HALF)
    assert accountant.worst_window(4) == WHOLE


@pytest.mark.parametrize("nano", [0, -1])
def test_nothing_is_drawn_for_nothing(nano):
    with pytest.raises(BaselineOverspent):
        BaselineAccountant(W4).release(1, nano)


def test_what_releases_have_left():
    accountant = BaselineAccountant(W4)
    accountant.release(2, 7)
    accountant.release(4, 9)
    accountant.begin(5, 100)
    assert [accountant.released(slot) for slot in (5, 6, 7, 8)] == [16, 9, 9, 0]
    assert BaselineAccountant(W4).oldest_release(9) is None


def test_the_oldest_release_of_a_window():
    accountant = BaselineAccountant(W4)
    accountant.release(2, 7)
    accountant.release(4, 9)
    assert [accountant.oldest_release(slot) for slot in (5, 6, 7, 8)] == [2, 4, 4, None]


def test_nothing_drawn_is_nothing_spent():
    assert BaselineAccountant(W4).worst_window(3) == 0


@pytest.mark.parametrize(("nano", "sensitivity"), [(1_000_000_000, 1), (250_000_000, 2), (20_000_000, 8)])
def test_the_scale_is_sensitivity_over_epsilon(nano, sensitivity):
    charge = BaselineAccountant(Requirement(10, 1)).release(1, nano)
    draws = BaselineNoise([1]).laplace(charge, sensitivity, 40_000)
    ratio = np.exp(-nano / 1e9 / sensitivity)
    variance = 2 * ratio / (1 - ratio) ** 2  # of the discrete Laplace law
    assert draws.dtype == np.int64
    assert abs(draws.mean()) < 5 * np.sqrt(variance / len(draws))
    assert draws.var() == pytest.approx(variance, rel=0.06)


def test_every_draw_may_have_a_sensitivity_of_its_own():
    charge = BaselineAccountant(Requirement(10, 1)).release(1, 1_000_000)
    draws = np.array([BaselineNoise([seed]).laplace(charge, [1, 100], 2) for seed in range(300)])
    assert draws[:, 1].std() > 50 * draws[:, 0].std()


def test_the_same_seed_gives_the_same_noise():
    charge = BaselineAccountant(Requirement(10, 1)).release(1, 1_000_000)
    first, again, other = (BaselineNoise(seed).laplace(charge, 1, 5).tolist() for seed in ([1, 2], [1, 2], [1, 3]))
    assert first == again != other
