"""Each baseline as it is described: when it releases, with what, and what it publishes in between."""

import numpy as np
import pytest

from wevent import Requirement
from wevent.experiments.baselines import BASELINES, BaselineAccountant, BaselineNoise
from wevent.experiments.baselines.grouping import _shares
from wevent.experiments.baselines.rescue import RescueDp
from wevent.experiments.baselines.spas import Spas
from wevent.publisher.catalogue import SIMULATED_ONLY


class Silence(BaselineNoise):
    """Noise without noise: what remains is the mechanism."""

    def __init__(self):
        super().__init__(0)

    def laplace(self, charge, sensitivity, size):
        return np.zeros(size, dtype=np.int64)


def run(label, truth, window=40, epsilon=1, noise=None):
    accountant = BaselineAccountant(Requirement(window, epsilon))
    baseline = BASELINES[label].start(truth.shape[1], accountant, noise or Silence())
    steps = [baseline.step(row) for row in truth]
    return np.array([step[0] for step in steps]), np.array([step[1] for step in steps]), accountant


def charges(accountant):
    return {first: nano for first, last, nano in accountant.draws if first == last}


CONSTANT = np.full((240, 3), 100)


def test_those_that_publishers_refuse_are_those_that_are_simulated():
    assert [label for label in BASELINES if ":" not in label] == list(SIMULATED_ONLY)
    assert all("corrected" in summary for summary in SIMULATED_ONLY.values())


@pytest.mark.parametrize("label", BASELINES)
def test_without_noise_a_constant_stream_is_published_as_it_is(label):
    releases, fresh, _ = run(label, CONSTANT)
    assert (releases == 100).all()
    assert fresh[0]


@pytest.mark.parametrize("label", BASELINES)
def test_with_noise_every_value_is_finite_and_the_first_slot_is_measured(label):
    generator = np.random.default_rng(3)
    truth = generator.integers(0, 500, (300, 6))
    releases, fresh, accountant = run(label, truth, window=20, noise=BaselineNoise([5]))
    assert np.isfinite(releases).all()
    assert fresh[0]
    assert fresh.sum() > 5
    assert accountant.worst_window(20) <= 1_000_000_000


@pytest.mark.parametrize("label", BASELINES)
@pytest.mark.parametrize(("window", "epsilon"), [(1, 1), (2, "0.000000004"), (7, "0.3"), (50, 50)])
def test_every_requirement_can_be_run(label, window, epsilon):
    truth = np.random.default_rng(4).integers(0, 50, (160, 1))
    releases, _, accountant = run(label, truth, window=window, epsilon=epsilon, noise=BaselineNoise([6]))
    assert np.isfinite(releases).all()
    assert accountant.worst_window(window) <= Requirement(window, epsilon).nano


class TestSpas:
    def test_the_first_window_releases_every_twentieth_slot(self):
        _, fresh, accountant = run("spas", CONSTANT[:40])
        assert np.flatnonzero(fresh).tolist() == [0, 20]
        assert charges(accountant) == {1: 375_000_000, 21: 375_000_000}  # 20 · ¾ε / w

    def test_a_change_is_found_and_released(self):
        truth = CONSTANT.copy()
        truth[100:] = 900
        releases, fresh, _ = run("spas", truth)
        assert fresh[100]
        assert (releases[100:] == 900).all()

    def test_tests_cost_at_most_a_quarter(self):
        truth = np.random.default_rng(1).integers(0, 1000, (400, 4))
        _, _, accountant = run("spas", truth, noise=BaselineNoise([2]))
        runs = [(first, last, nano) for first, last, nano in accountant.draws if first != last]
        assert len(runs) > 3
        for start in range(1, 401):
            assert sum(nano for first, last, nano in runs if first < start + 40 and last >= start) <= 250_000_000

    def test_a_run_that_paused_for_a_window_is_still_counted_when_it_goes_on(self):
        peer = Spas(2, BaselineAccountant(Requirement(4, 1)), Silence())
        peer._slot = 6
        paused = peer._running(1)
        peer._slot = 12
        assert peer._running(1) is paused
        peer._open = None  # its success
        peer._slot = 13
        assert peer._running(1) is not paused
        peer._open = None
        peer._slot = 14
        assert peer._running(1) is None  # ε/8 each: two are all that these slots can have


class TestFast:
    def test_a_block_has_its_samples_and_half_of_epsilon(self):
        _, fresh, accountant = run("fast", CONSTANT, window=120)
        assert fresh[:120].sum() == fresh[120:].sum() == 9  # ⌊0.075 · 120⌋
        assert fresh[:5].all()
        assert set(charges(accountant).values()) == {1_000_000_000 // 2 // 9}

    def test_intervals_grow_while_the_estimate_stays(self):
        _, fresh, _ = run("fast", CONSTANT, window=120)
        assert np.flatnonzero(fresh[:120]).tolist() == [0, 1, 2, 3, 4, 5, 9, 16, 26]  # +3 each: 5·(1 − 1/e)

    def test_a_sample_corrects_by_the_fixed_gain(self):
        truth = np.array([[0], [1000], [1000]])
        releases, _, _ = run("fast", truth, window=40)
        variance = 100.0 + 1e5
        gain = variance / (variance + 1e6)
        assert releases[1, 0] == pytest.approx(1000 * gain)


class TestRescueDp:
    def test_the_first_budgets(self):
        _, _, accountant = run("rescuedp", CONSTANT)
        first = int(1e9 * 0.2 * np.log(2.0))
        assert charges(accountant)[1] == first
        assert charges(accountant)[2] == int((1_000_000_000 - first) * 0.2 * np.log(2.0))

    def test_intervals_grow_while_the_estimate_stays(self):
        _, fresh, _ = run("rescuedp", CONSTANT)
        assert np.flatnonzero(fresh)[:5].tolist() == [0, 1, 12, 33, 64]  # + 10 each

    def test_small_cells_that_go_together_are_one_group(self):
        peer = RescueDp(4, BaselineAccountant(Requirement(40, 1)), Silence())
        for past in ([1, 2, 900, 9], [3, 5, 900, 2], [2, 3, 900, 4]):
            peer._released.append(np.array(past, dtype=float))
        groups = peer._groups().tolist()
        assert groups[0] == groups[1]
        assert len(set(groups)) == 3  # 900 is large, the last goes another way

    def test_one_bad_measurement_does_not_stop_it_from_learning(self):
        peer = RescueDp(1, BaselineAccountant(Requirement(40, 1)), Silence())
        for value, variance in ((0.0, 1e9), (5.0, 1e9), (100.0, 1.0), (300.0, 1.0)):
            peer._learn(np.array([value]), np.array([variance]))
        assert peer._process[0] > 10_000.0


class TestGroups:
    def test_every_slot_is_measured_with_its_share(self):
        for label in ("pegasus", "adapub"):
            _, fresh, accountant = run(label, CONSTANT, window=40)
            assert fresh.all()
            assert _shares(accountant) == (5_000_000, 20_000_000)
            assert accountant.worst_window(1) == 25_000_000
            assert accountant.worst_window(40) == 1_000_000_000

    def test_slots_that_look_alike_are_published_as_their_median(self):
        truth = np.array([[100], [104], [101], [103]])
        releases, _, _ = run("pegasus", truth, window=4)
        assert releases[:, 0].tolist() == [100, 102, 101, 102]

    def test_a_slot_that_differs_stands_alone_and_the_next_begins_a_group(self):
        truth = np.array([[100], [100], [5000], [5000], [5000]])
        releases, _, _ = run("pegasus", truth, window=4)
        assert releases[:, 0].tolist() == [100, 100, 5000, 5000, 5000]
