"""The filter: right where the answer is known, finite everywhere, and a pure function of its state."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from wevent.core.mechanism import ErrorModel, Estimate, Measurement
from wevent.core.pft.filter import Filter, FilterState, initial_estimate
from wevent.core.pft.models import models_with_seasons


def measured(
    values: np.ndarray, variance: float, random: np.random.Generator, users: int = 10_000, composition: float = 0.0
) -> Measurement:
    scale = (variance / 2) ** 0.5
    noise = random.laplace(0.0, scale, len(values))
    return Measurement(values + noise, ErrorModel("laplace", scale, variance), composition, users)


def snapshot(state: FilterState) -> dict[str, object]:
    return {
        field.name: value.tobytes() if isinstance(value, np.ndarray) else value
        for field in fields(state)
        for value in (getattr(state, field.name),)
    }


def run(truths: np.ndarray, variance: float, *, seed: int = 1, period: int = 1, users: int = 10_000) -> list[Estimate]:
    random, tracker = np.random.default_rng(seed), Filter()
    state, estimates = tracker.start(truths.shape[1]), []
    for slot, truth in enumerate(truths):
        measurement = measured(truth, variance, random, users) if slot % period == 0 else None
        state, estimate = tracker.advance(state, measurement)
        estimates.append(estimate)
    return estimates


def test_before_the_first_measurement_there_are_zeros_and_no_error() -> None:
    state, estimate = Filter().advance(Filter().start(3), None)
    assert estimate.values.tolist() == [0, 0, 0]
    assert estimate.std_error is None
    assert estimate.error is None
    assert state.releases == 0


def test_a_constant_stream_is_learnt() -> None:
    """The mean squared error falls far below the noise, and the stated one with it."""
    truth = np.array([4000.0, 900.0, 120.0, 0.0])
    estimates = run(np.tile(truth, (200, 1)), 10_000.0)
    late = np.array([estimate.values for estimate in estimates[100:]])
    assert np.mean((late - truth) ** 2) < 10_000 / 20
    assert np.mean(estimates[-1].std_error ** 2) < 10_000 / 8
    assert np.mean(estimates[-1].std_error) < np.mean(estimates[0].std_error) / 2


def test_a_stream_without_memory_passes_through() -> None:
    """Counts redrawn in every slot, little noise: nothing can be averaged, and the filter does not try."""
    random = np.random.default_rng(5)
    truths = random.uniform(100, 9000, size=(60, 3))
    estimates = run(truths, 2.0)
    late = np.array([estimate.values for estimate in estimates[10:]])
    assert np.abs(late - truths[10:]).max() < 20  # the truth moves by thousands
    assert np.mean((late - truths[10:]) ** 2) < 1.5 * 2.0


@pytest.mark.parametrize("variance", [4e-22, 1e-3, 2.0, 1e6, 1e14])
@pytest.mark.parametrize("users", [0, 20, 10**6])
def test_always_finite_and_never_negative(variance: float, users: int) -> None:
    """Noise that is next to nothing or enormous, cells of millions, of one and of none, with jumps."""
    truths = np.tile([0.9 * users, 1.0, 0.0], (40, 1))
    truths[20:] = truths[20:, ::-1]
    for period in (1, 6):
        for estimate in run(truths, variance, period=period, users=users):
            assert np.isfinite(estimate.values).all()
            assert (estimate.values >= 0).all()
            assert np.isfinite(estimate.std_error).all()
            assert (estimate.std_error > 0).all()


@pytest.mark.parametrize("period", [1, 6])
def test_no_estimate_exceeds_the_registered_users(period: int) -> None:
    """A cell that everybody is in, under noise larger than n: n is public, and a count is at most that."""
    truths = np.tile([50.0, 0.0], (60, 1))
    estimates = run(truths, 400.0, period=period, users=50)
    values = np.array([estimate.values for estimate in estimates])
    assert values.max() == 50
    assert values[:, 0].mean() > 40


def test_whole_numbers_are_measurements_too() -> None:
    """Sampling measures in integers: they are taken as the same numbers in floating point."""
    tracker, law = Filter(), ErrorModel("laplace", 3.0, 18.0)
    states = [tracker.start(2), tracker.start(2)]
    for slot in range(12):
        values = np.array([300 + slot, 2 - slot])
        states = [
            tracker.advance(state, Measurement(kind, law, users=1000))[0]
            for state, kind in zip(states, (values, values.astype(float)), strict=True)
        ]
    assert snapshot(states[0]) == snapshot(states[1])
    assert np.isfinite(states[0].level).all()


def test_an_empty_cell_among_full_ones_is_found_to_be_empty() -> None:
    truths = np.tile(np.array([5000.0] + [0.0] * 20), (150, 1))
    estimates = run(truths, 10_000.0)
    late = np.array([estimate.values for estimate in estimates[50:]])
    assert np.mean((late[:, 1:]) ** 2) < 10_000 / 300
    assert abs(late[:, 0].mean() - 5000) < 60


def test_without_a_measurement_only_the_gap_changes() -> None:
    random, tracker = np.random.default_rng(2), Filter()
    state = tracker.start(2)
    for _ in range(5):
        state, _ = tracker.advance(state, measured(np.array([500.0, 20.0]), 50.0, random))
    after, estimate = tracker.advance(state, None)
    assert snapshot(after) == {**snapshot(state), "gap": 1}
    later, later_estimate = tracker.advance(after, None)
    assert snapshot(later) == {**snapshot(state), "gap": 2}
    assert (later_estimate.std_error > estimate.std_error).all()  # what is not looked at is known less


def test_advance_leaves_its_input_alone() -> None:
    random, tracker = np.random.default_rng(3), Filter()
    state = tracker.start(3)
    for slot in range(12):
        measurement = measured(np.array([800.0, 30.0, 0.0]), 40.0, random) if slot % 3 == 0 else None
        before = snapshot(state)
        following, estimate = tracker.advance(state, measurement)
        assert snapshot(state) == before
        again, repeated = tracker.advance(state, measurement)
        assert snapshot(again) == snapshot(following)
        assert repeated.values.tobytes() == estimate.values.tobytes()
        state = following


@pytest.mark.parametrize("period", [1, 8])
def test_intervals_cover_a_random_walk(period: int) -> None:
    """95 % intervals hold the truth in 90 to 99 % of slots and cells."""
    random = np.random.default_rng(6)
    walk = 2000 + np.cumsum(random.normal(0, 15, size=(400, 8)), axis=0)
    estimates = run(walk, 2500.0, seed=7, period=period)
    inside = [np.abs(e.values - truth) <= 1.96 * e.std_error for e, truth in zip(estimates, walk, strict=True)]
    assert 0.9 <= np.mean(inside[10:]) <= 0.99


def test_the_stated_error_is_the_error() -> None:
    """Neither too small nor inflated: root mean squares agree within a third on a walk the bank has a model for."""
    random = np.random.default_rng(8)
    walk = 3000 + np.cumsum(random.normal(0, 20, size=(400, 8)), axis=0)
    estimates = run(walk, 1e4, seed=9)[50:]
    errors = np.array([estimate.values for estimate in estimates]) - walk[50:]
    stated = np.array([estimate.std_error for estimate in estimates])
    assert 0.75 < np.sqrt(np.mean(stated**2) / np.mean(errors**2)) < 1.35


def test_the_mix_of_classes_is_in_the_error() -> None:
    """It may persist, so no number of measurements takes it away."""
    tracker, random = Filter(), np.random.default_rng(10)
    state = tracker.start(1)
    for _ in range(100):
        state, estimate = tracker.advance(state, measured(np.array([1000.0]), 4.0, random, composition=0.2))
    assert estimate.std_error[0] ** 2 >= 0.9 * 0.2 * 1000 * 0.9


def after_some_measurements() -> tuple[Filter, FilterState]:
    random, tracker = np.random.default_rng(12), Filter()
    state = tracker.start(3)
    for slot in range(24):
        truth = np.array([500.0 + 9 * slot, 60.0, 0.0])
        state, _ = tracker.advance(state, measured(truth, 60.0, random) if slot % 3 == 0 else None)
    for _ in range(4):
        state, _ = tracker.advance(state, None)
    assert state.gap == 6  # two idle slots after the measurement of slot 22, and four more
    return tracker, state


def test_a_gap_is_as_many_single_slots() -> None:
    """The closed form over h slots against moving every model slot by slot."""
    tracker, state = after_some_measurements()
    bank, levels = tracker.bank, tracker.bank.levels
    move = np.array([[1.0, 1.0], [0.0, 1.0]])
    expected = []
    for model in range(len(bank.walk)):
        for cell in range(3):
            walk, trend = bank.walk[model] * state.scale[cell], model - levels
            mean = np.array([state.level[model, cell], state.slope[trend, cell] if trend >= 0 else 0.0])
            variance, cross, slope = state.level_variance[model, cell], 0.0, 0.0
            if trend >= 0:
                cross, slope = state.cross_variance[trend, cell], state.slope_variance[trend, cell]
            covariance = np.array([[variance, cross], [cross, slope]])
            for _ in range(state.gap):
                mean, covariance = move @ mean, move @ covariance @ move.T
                covariance[int(trend >= 0), int(trend >= 0)] += walk
            expected.append([mean[0], covariance[0, 0], covariance[0, 1], covariance[1, 1]])
    found = tracker.load(tracker.dump(state))
    tracker._predict(found)
    nothing = np.zeros((levels, 3))
    cross = np.vstack([nothing, found.cross_variance])
    slope = np.vstack([nothing, found.slope_variance])
    columns = np.stack([found.level, found.level_variance, cross, slope], axis=2)
    assert columns.reshape(-1, 4) == pytest.approx(np.array(expected), rel=1e-9)


def test_between_measurements_the_mixture_of_predictions_is_published() -> None:
    tracker, state = after_some_measurements()
    _, estimate = tracker.advance(state, None)
    predicted = tracker.load(tracker.dump(state))
    predicted.gap += 1
    tracker._predict(predicted)
    weights, null = state.weights[:-1], state.weights[-1]
    spread = predicted.level_variance + tracker.bank.flicker[:, None] * state.scale
    mean = (weights * predicted.level).sum(axis=0) + null * state.null_mean
    square = (weights * (spread + predicted.level**2)).sum(axis=0) + null * (state.null_variance + state.null_mean**2)
    assert estimate.values == pytest.approx(np.maximum(mean, 0.0), rel=1e-9)
    stated = state.inflation * (square - mean**2) + state.composition
    assert estimate.std_error**2 == pytest.approx(stated, rel=1e-6)


@pytest.mark.parametrize("level", [300.0, 30_000.0, 300_000.0])
def test_a_cell_that_appears_from_nothing_is_seen_at_once(level: float) -> None:
    """However far above its old scale: the models' variances are relative to a cell that was empty."""
    truths = np.tile([2000.0, 0.0, 50.0], (120, 1))
    truths[80:, 1] = level
    estimates = run(truths, 200.0, users=1_000_000)
    errors = np.array([estimate.values[1] for estimate in estimates[80:]]) - level
    assert np.abs(errors[0]) < 0.05 * level + 60.0
    assert np.abs(errors[2:]).max() < 0.01 * level + 60.0


@pytest.mark.parametrize("users", [10**6, 10**9, 10**12])
def test_a_first_look_states_the_error_of_the_noise_whatever_the_counts(users: int) -> None:
    """Far above the noise a squared count swallows its variance: differences of squares would be anything."""
    random = np.random.default_rng(4)
    truth = np.array([0.5, 0.1, 0.02]) * users
    for _ in range(50):
        look = initial_estimate(measured(truth, 72.0, random, users))
        assert look.variance == pytest.approx([72.0] * 3, rel=0.5)
        assert np.abs(look.level - truth).max() < 200


def test_a_cell_at_the_ends_of_64_bits_is_a_cell_like_any_other() -> None:
    """The absolute value of −2^63 is no int64."""
    values = np.array([-(2**63), 2**63 - 1, 0])
    for first in (values, np.zeros(3, dtype=np.int64)):
        tracker = Filter()
        state, _ = tracker.advance(tracker.start(3), Measurement(first, ErrorModel("laplace", 6.0, 72.0), 0.0, 10))
        whole = tracker.advance(state, Measurement(values, ErrorModel("laplace", 6.0, 72.0), 0.0, 10))
        state, _ = tracker.advance(
            tracker.start(3), Measurement(first * 1.0, ErrorModel("laplace", 6.0, 72.0), 0.0, 10)
        )
        floats = tracker.advance(state, Measurement(values * 1.0, ErrorModel("laplace", 6.0, 72.0), 0.0, 10))
        assert whole[1].values.tolist() == floats[1].values.tolist()
        assert snapshot(whole[0]) == snapshot(floats[0])


@pytest.mark.parametrize("users", [10**9, 10**12])
def test_a_later_look_too(users: int) -> None:
    random, tracker = np.random.default_rng(4), Filter()
    truths = np.array([[0.5, 0.1, 0.02], [0.02, 0.5, 0.1]] * 20) * users
    state = tracker.start(3)
    for truth in truths:
        state, estimate = tracker.advance(state, measured(truth, 72.0, random, users))
        assert (estimate.std_error > 0.3 * 72**0.5).all()
        assert (state.level_variance > 0.3 * 72).all()


@pytest.mark.parametrize("cycles", [(), (12,)])
def test_blocks_of_cells_change_nothing(monkeypatch: pytest.MonkeyPatch, cycles: tuple[int, ...]) -> None:
    """Cells teach each other through pooled numbers only, which do not know of blocks."""
    truth = np.array([4000.0, 900.0, 0.0, 120.0, 0.0, 30.0, 2.0])
    found = []
    for block in (1, 3, 7, 512):
        monkeypatch.setattr("wevent.core.pft.filter.CELLS_AT_ONCE", block)
        random, tracker = np.random.default_rng(3), Filter(models_with_seasons(cycles))
        state = tracker.start(len(truth))
        for slot in range(30):
            jumped = truth[::-1] if slot == 20 else truth
            state, estimate = tracker.advance(state, measured(jumped, 200.0, random, composition=0.1))
        found.append((state, estimate))
    for state, estimate in found[:-1]:
        assert estimate.values == pytest.approx(found[-1][1].values, rel=1e-12)
        assert_close(state, found[-1][0])
        if cycles:
            assert_close(state.season, found[-1][0].season)


def assert_close(one: Any, other: Any) -> None:
    """Every field but nested ones."""
    for field in fields(one):
        if field.name != "season":
            value = getattr(other, field.name)
            assert getattr(one, field.name) == pytest.approx(value, rel=1e-9, abs=1e-12), field.name
