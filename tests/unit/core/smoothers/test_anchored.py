"""Main sums and anchors: offsets are learnt, levels corrected, and what is not known is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wevent.core.mechanism import Estimate, Measurement, NoiseError
from wevent.core.smoothers.anchored import AnchoredFilter, AnchoredState, Corrected, _lesson
from wevent.core.smoothers.filter import Filter

USERS = 10_000
LEAN = np.array([0.3, -0.3])  # two classes: CV² is 0.18
TRUTH = np.array([2000.0, 500.0, 50.0])


def law(variance: float) -> NoiseError:
    return NoiseError("laplace", (variance / 2.0) ** 0.5, variance)


def release(
    random: np.random.Generator, truth: Any, beta: Any, *, main: float = 50.0, alike: float | None = None
) -> Measurement:
    """A main sum that is off by β·x(1 − x/n), and an anchor if it has a variance."""
    hill = truth * (1.0 - truth / USERS)
    seen = truth - beta * hill + random.normal(0.0, np.sqrt(float(LEAN @ LEAN) * hill))  # classes mix by chance
    values = seen + random.laplace(0.0, (main / 2.0) ** 0.5, len(truth))
    anchor = None if alike is None else (truth + random.laplace(0.0, (alike / 2.0) ** 0.5, len(truth)), law(alike))
    return Measurement(values, law(main), float(LEAN @ LEAN), USERS, anchor, LEAN)


def run(beta: Any, slots: int, *, every: int, seed: int = 1, alike: float = 400.0) -> tuple[AnchoredState, Estimate]:
    random, tracker = np.random.default_rng(seed), AnchoredFilter()
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
    weights = AnchoredFilter()._offsets.weights(state.offsets)
    assert weights[0] > 0.5  # small lasting offsets are hard to rule out …
    assert weights[5:].sum() < 0.05  # … large ones are not
    assert estimate.std_error[0] < 40.0


def test_equal_weights_have_no_offsets_and_are_filtered_as_ever() -> None:
    """One requirement for all: what is published is what the filter alone would publish."""
    random = np.random.default_rng(3)
    tracker, plain = AnchoredFilter(), Filter()
    state, other = tracker.start(3), plain.start(3)
    for slot in range(60):
        values = TRUTH + random.laplace(0.0, 5.0, 3)
        measurement = Measurement(values, law(50.0), 0.0, USERS, None, np.zeros(1)) if slot % 3 == 0 else None
        state, mine = tracker.advance(state, measurement)
        other, its = plain.advance(other, None if measurement is None else measurement._replace(lean=None))
        assert mine.values == pytest.approx(its.values, rel=1e-9)
        assert mine.std_error == pytest.approx(its.std_error, rel=1e-9)


def test_a_mix_that_jumps_is_told_from_a_count_that_jumps_by_an_anchor() -> None:
    tracker, random = AnchoredFilter(), np.random.default_rng(5)
    state, _ = run(np.zeros(3), 60, every=3)
    state, mixed = tracker.advance(state, release(random, TRUTH, np.array([0.5, 0.0, 0.0]), alike=400.0))
    assert mixed.values[0] == pytest.approx(TRUTH[0], abs=120.0)  # the main sum fell by 800
    state, _ = run(np.zeros(3), 60, every=3)
    moved = TRUTH * np.array([0.5, 1.0, 1.0])
    state, fallen = tracker.advance(state, release(random, moved, np.zeros(3), alike=400.0))
    assert fallen.values[0] == pytest.approx(moved[0], abs=120.0)


def test_a_lesson_is_the_posterior_of_the_whole() -> None:
    """Level and offset as one Gaussian vector, conditioned on both sums, against the formula."""
    spread, doubt, owed, main_noise, alike_noise = 90.0, 700.0, 0.6, 50.0, 400.0
    covariance = np.array([[spread + owed**2 * doubt, owed * doubt], [owed * doubt, doubt]])  # of x and e
    see = np.array([[1.0, 0.0], [1.0, -1.0]])  # an anchor shows x, a main sum x − e
    seen = np.array([35.0, -20.0])
    whole = see @ covariance @ see.T + np.diag([alike_noise, main_noise])
    gain = covariance @ see.T @ np.linalg.inv(whole)
    x, e = gain @ seen
    left = covariance - gain @ see @ covariance

    one = np.ones(1)
    main = Corrected(seen[1] * one, main_noise * one, one)
    lesson, lever = _lesson(owed * one, main, (seen[0] * one, law(alike_noise)), 0.0 * one, spread * one)
    assert lesson is not None
    mean = lesson.seen[0] * doubt / (doubt + lesson.noise[0])
    variance = doubt * lesson.noise[0] / (doubt + lesson.noise[0])
    assert mean == pytest.approx(e)
    assert variance == pytest.approx(left[1, 1])
    after = owed + lever[0]
    assert after * variance == pytest.approx(left[0, 1])  # what the level owes to the offset is their covariance
    both = 1.0 / (1.0 / main_noise + 1.0 / alike_noise)
    level = owed * mean
    together = both * ((seen[1] + mean) / main_noise + seen[0] / alike_noise)
    assert level + spread / (spread + both) * (together - level) == pytest.approx(x)
    assert spread * both / (spread + both) + after**2 * variance == pytest.approx(left[0, 0])


def test_a_state_comes_back_to_the_bit() -> None:
    tracker, random = AnchoredFilter(), np.random.default_rng(8)
    state, _ = run(np.array([0.3, -0.25, 0.1]), 20, every=5)
    again = tracker.load(tracker.dump(state))
    for slot in range(10):
        measurement = release(random, TRUTH, 0.1, alike=100.0 if slot % 4 == 0 else None) if slot % 2 else None
        state, mine = tracker.advance(state, measurement)
        again, its = tracker.advance(again, measurement)
        assert mine.values.tobytes() == its.values.tobytes()
    assert repr(tracker.dump(state)) == repr(tracker.dump(again))


def test_a_step_leaves_the_state_before_it_alone() -> None:
    tracker, random = AnchoredFilter(), np.random.default_rng(9)
    state, _ = run(np.array([0.3, -0.25, 0.1]), 20, every=5)
    before = repr(tracker.dump(state))
    tracker.advance(state, None)
    tracker.advance(state, release(random, TRUTH, 0.4, alike=100.0))
    assert repr(tracker.dump(state)) == before
