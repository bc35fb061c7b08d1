"""Main sums and anchors: offsets are learnt, levels corrected, and what is not known is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wevent.core.mechanism import ErrorModel, Estimate, Measurement
from wevent.core.pft.calibrated_filter import CalibratedFilter, CalibratedState
from wevent.core.pft.class_bias import ClassBias, Contrast
from wevent.core.pft.filter import Filter

USERS = 10_000
LEAN = np.array([0.3, -0.3])  # two classes: CV² is 0.18
TRUTH = np.array([2000.0, 500.0, 50.0])


def law(variance: float) -> ErrorModel:
    return ErrorModel("laplace", (variance / 2.0) ** 0.5, variance)


def release(
    random: np.random.Generator, truth: Any, beta: Any, *, main: float = 50.0, alike: float | None = None
) -> Measurement:
    """A main sum that is off by β·x(1 − x/n), and an anchor if it has a variance."""
    hill = truth * (1.0 - truth / USERS)
    seen = truth - beta * hill + random.normal(0.0, np.sqrt(float(LEAN @ LEAN) * hill))  # classes mix by chance
    values = seen + random.laplace(0.0, (main / 2.0) ** 0.5, len(truth))
    anchor = None if alike is None else (truth + random.laplace(0.0, (alike / 2.0) ** 0.5, len(truth)), law(alike))
    return Measurement(values, law(main), float(LEAN @ LEAN), USERS, anchor, LEAN)


def run(beta: Any, slots: int, *, every: int, seed: int = 1, alike: float = 400.0) -> tuple[CalibratedState, Estimate]:
    random, tracker = np.random.default_rng(seed), CalibratedFilter()
    state = tracker.start(len(TRUTH))
    for slot in range(slots):
        noise = alike if every and slot % every == 0 else None
        state, estimate = tracker.advance(state, release(random, TRUTH, beta, alike=noise))
    return state, estimate


def test_offsets_are_learnt_and_corrected() -> None:
    beta = np.array([0.3, -0.25, 0.1])
    _, estimate = run(beta, 120, every=6)
    assert estimate.std_error is not None
    assert np.abs(estimate.values - TRUTH)[:2] == pytest.approx(
        [0.0, 0.0], abs=30.0
    )  # uncorrected they are 480 and 119
    assert (np.abs(estimate.values - TRUTH) < 4.0 * estimate.std_error).all()


def test_without_anchors_what_is_not_known_is_stated() -> None:
    """Nothing shows the offsets, so the errors are as large as offsets may be."""
    _, blind = run(np.array([0.3, -0.25, 0.1]), 60, every=0)
    _, seeing = run(np.array([0.3, -0.25, 0.1]), 60, every=6)
    assert blind.std_error is not None
    assert seeing.std_error is not None
    assert (blind.std_error[:2] > 4.0 * seeing.std_error[:2]).all()
    assert blind.std_error[0] > 0.07 * TRUTH[0]


def test_evidence_against_offsets_restores_faith_in_main_sums() -> None:
    state, estimate = run(np.zeros(3), 200, every=6)
    assert estimate.std_error is not None
    weights = CalibratedFilter()._offsets.weights(state.offsets)
    assert weights[0] > 0.5  # small lasting offsets are hard to rule out …
    assert weights[5:].sum() < 0.05  # … large ones are not
    assert estimate.std_error[0] < 40.0


def test_equal_weights_have_no_offsets_and_are_filtered_as_ever() -> None:
    """One requirement for all: what is published is what the filter alone would publish."""
    random = np.random.default_rng(3)
    tracker, plain = CalibratedFilter(), Filter()
    state, other = tracker.start(3), plain.start(3)
    for slot in range(60):
        values = TRUTH + random.laplace(0.0, 5.0, 3)
        measurement = Measurement(values, law(50.0), 0.0, USERS, None, np.zeros(1)) if slot % 3 == 0 else None
        state, mine = tracker.advance(state, measurement)
        other, its = plain.advance(other, None if measurement is None else measurement._replace(lean=None))
        assert mine.values == pytest.approx(its.values, rel=1e-9)
        assert mine.std_error == pytest.approx(its.std_error, rel=1e-9)


def test_a_mix_that_jumps_is_told_from_a_count_that_jumps_by_an_anchor() -> None:
    tracker, random = CalibratedFilter(), np.random.default_rng(5)
    state, _ = run(np.zeros(3), 60, every=3)
    state, mixed = tracker.advance(state, release(random, TRUTH, np.array([0.5, 0.0, 0.0]), alike=400.0))
    assert mixed.values[0] == pytest.approx(TRUTH[0], abs=120.0)  # the main sum fell by 800
    state, _ = run(np.zeros(3), 60, every=3)
    moved = TRUTH * np.array([0.5, 1.0, 1.0])
    state, fallen = tracker.advance(state, release(random, moved, np.zeros(3), alike=400.0))
    assert fallen.values[0] == pytest.approx(moved[0], abs=120.0)


def test_counts_are_solved_from_main_sums() -> None:
    """x − β·x(1 − x/n) = m, to the last digit, for offsets of either sign."""
    tracker = CalibratedFilter()
    state, _ = run(np.zeros(3), 1, every=1)
    for beta in (-2.0, -0.3, 1e-12, 0.4, 0.7):
        state.offsets.mean[:] = beta
        expected = TRUTH - beta * TRUTH * (1.0 - TRUTH / USERS)
        believed = tracker._offsets.belief(state.offsets, state.main.scale).mean
        assert believed == pytest.approx(beta)
        found = tracker._corrected(state, Estimate(expected, np.ones(3), law(1.0)))
        assert found.mean == pytest.approx(TRUTH, rel=1e-9)


def test_offsets_that_wander_are_left_to_the_anchors() -> None:
    """No offset lasts: the estimate is that of anchors alone, and trust says so."""
    random, tracker, plain = np.random.default_rng(6), CalibratedFilter(), Filter()
    state, other = tracker.start(3), plain.start(3)
    mine, its = [], []
    for slot in range(300):
        beta = np.array([0.6, -0.6, 0.6]) * np.sign(np.sin(slot / 5.0))
        measurement = release(random, TRUTH, beta, alike=100.0)
        state, estimate = tracker.advance(state, measurement)
        assert measurement.anchor is not None
        other, alone = plain.advance(other, Measurement(*measurement.anchor, 0.0, USERS))
        mine.append(((estimate.values - TRUTH) ** 2).mean())
        its.append(((alone.values - TRUTH) ** 2).mean())
    assert (state.trust[:2] < 0.5).all()
    assert np.mean(mine[100:]) < 2.0 * np.mean(its[100:])


def test_anchors_of_long_ago_do_not_hide_a_cell_that_appears() -> None:
    random, tracker = np.random.default_rng(7), CalibratedFilter()
    state, empty = tracker.start(3), np.array([2000.0, 500.0, 0.0])
    for slot in range(30):
        state, _ = tracker.advance(state, release(random, empty, np.zeros(3), alike=100.0 if slot < 3 else None))
    for _ in range(3):
        state, estimate = tracker.advance(state, release(random, TRUTH * [1.0, 1.0, 20.0], np.zeros(3)))
    assert estimate.values[2] == pytest.approx(1000.0, abs=60.0)


def test_a_contrast_teaches_what_a_normal_law_would() -> None:
    """Noise of main sums beside which that of anchors is nothing: Bayes' rule for one Gaussian, in closed form."""
    offsets = ClassBias()
    state = offsets.start(1)
    scale, reach = np.array([1600.0]), np.array([1500.0])
    offsets.reweigh(state, LEAN, scale)
    state.mean[:], state.variance[:] = 0.1, 0.02
    offsets.learn(state, Contrast(np.array([260.0]), 900.0, 1e-6, reach), scale, 1)
    precision = 1.0 / 0.02 + reach**2 / 900.0
    expected = (0.1 / 0.02 + 260.0 * reach / 900.0) / precision
    assert state.mean[1, 0] == pytest.approx(expected[0], rel=2e-3)  # but for the chance that it started anew
    assert state.variance[1, 0] == pytest.approx(1.0 / precision[0], rel=0.05)


def test_a_step_leaves_the_state_before_it_alone() -> None:
    tracker, random = CalibratedFilter(), np.random.default_rng(9)
    state, _ = run(np.array([0.3, -0.25, 0.1]), 20, every=5)
    before = repr(tracker.dump(state))
    tracker.advance(state, None)
    tracker.advance(state, release(random, TRUTH, 0.4, alike=100.0))
    assert repr(tracker.dump(state)) == before
