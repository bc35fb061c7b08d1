"""ClassBias: what other weights keep of them, what a jump may add, and what they are expected to cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wevent.core.pft.class_bias import BiasState, ClassBias, default_bias_models
from wevent.core.pft.constants import HORIZON

LEAN = np.array([0.3, -0.3])
SCALE = np.array([1600.0, 400.0])


def learnt(offsets: ClassBias, part: float = 0.1) -> BiasState:
    """Offsets of which a tenth of the variance is left."""
    state = offsets.start(2)
    offsets.reweigh(state, LEAN, SCALE)
    state.mean[1:] = 0.2
    state.variance = part * offsets.stationary(state, SCALE)
    return state


def only(model: int) -> ClassBias:
    """A bank that believes in one model."""
    bank = default_bias_models()
    one = np.eye(len(bank.tau))[model]
    return ClassBias(replace(bank, prior=one, cautious=one))


def test_the_bank_is_that_of_the_specification() -> None:
    bank = ClassBias().bank
    prior = np.array([0.5, *[0.075] * 6, 0.025, 0.025])
    assert bank.prior == pytest.approx(prior)
    assert bank.cautious == pytest.approx(np.array([0.1, *prior[1:]]) / 0.6)
    assert bank.tau.tolist() == [0.0, 1e-3, 1e-3, 1e-2, 1e-2, 1e-1, 1e-1, 1.0, 1.0]
    assert bank.life.tolist() == [2e4, *[2e4, 250.0] * 4]


def test_the_same_weights_keep_what_is_known() -> None:
    offsets = ClassBias()
    state = learnt(offsets)
    mean, variance = state.mean.copy(), state.variance.copy()
    change = offsets.reweigh(state, LEAN, SCALE)
    assert state.mean == pytest.approx(mean)
    assert state.variance == pytest.approx(variance)
    assert change.mean == pytest.approx(0.0)
    assert change.variance == pytest.approx(0.0, abs=1e-12)


def test_weights_that_lean_twice_as_far_are_off_by_twice_as_much() -> None:
    offsets = ClassBias()
    state = learnt(offsets)
    mean, variance = state.mean.copy(), state.variance.copy()
    offsets.reweigh(state, 2.0 * LEAN, SCALE)
    assert state.mean == pytest.approx(2.0 * mean)
    assert state.variance == pytest.approx(4.0 * variance)


@pytest.mark.parametrize("lean", [np.array([0.3, 0.3]), np.array([0.1, 0.2, -0.3])])
def test_weights_that_share_nothing_with_the_old_ones_forget(lean: Any) -> None:
    """Others, or of other classes: the offset is as unknown as at the start, and the main sum moves by the old one."""
    offsets = ClassBias()
    state = learnt(offsets)
    believed = offsets.belief(state, SCALE).mean
    change = offsets.reweigh(state, lean, SCALE)
    assert state.mean == pytest.approx(0.0)
    assert state.variance == pytest.approx(offsets.stationary(state, SCALE))
    assert change.mean == pytest.approx(believed)


def test_a_jump_adds_doubt_but_no_more_than_offsets_may_be() -> None:
    offsets = ClassBias()
    state = learnt(offsets)
    before, expected = state.variance.copy(), np.array([100.0, 100.0])
    within = offsets.jump(state, np.array([29.0, -30.0]), expected, SCALE)  # three deviations
    assert within.tolist() == [0.0, 0.0]
    assert state.variance.tolist() == before.tolist()
    added = offsets.jump(state, np.array([0.0, -40.0]), expected, SCALE)
    assert added[0] == 0.0
    assert added[1] > 0.0
    excess = state.spread * offsets.bank.tau * (40.0**2 - 900.0) / SCALE[1] ** 2
    assert state.variance[:, 1] == pytest.approx(before[:, 1] + excess)
    offsets.jump(state, np.array([1e6, 1e6]), expected, SCALE)
    assert state.variance == pytest.approx(offsets.stationary(state, SCALE))


@pytest.mark.parametrize("model", [0, 3, 4, 8])
def test_without_anchors_what_is_known_fades(model: int) -> None:
    """The mean over the horizon, slot by slot."""
    offsets, spread = only(model), 0.05
    state = learnt(offsets)
    found = offsets.expected_errors(state, SCALE, np.array([spread]), np.array([1e9]), np.array([np.inf]))[0]
    whole = offsets.bank.tau[model] * (SCALE**2).mean() + SCALE.mean()
    now = float((state.variance[model] * SCALE**2).mean()) / state.spread
    slots = np.arange(HORIZON) + 0.5
    path = whole + (now - whole) * np.exp(-2.0 * slots / offsets.bank.life[model])
    assert found == pytest.approx(spread * (SCALE.mean() if model == 0 else path.mean()), rel=1e-4)


def test_anchors_settle_where_one_lesson_after_the_other_does() -> None:
    model, spread, every, noise = 8, 0.05, 20.0, 900.0
    offsets = only(model)
    state = learnt(offsets, part=0.0)
    state.anew = np.array([-2.0, 0.0])  # what plans believe of fresh starts, taken back: 2e-3 in 1,000 slots
    found = offsets.expected_errors(state, SCALE, np.array([spread]), np.array([every]), np.array([noise]))[0]
    prior = spread * ((SCALE**2).mean() + SCALE.mean())
    keep, after = np.exp(-2.0 * every / offsets.bank.life[model]), prior
    for _ in range(500):
        before = prior + (after - prior) * keep
        after = before * noise / (before + noise)
    assert found == pytest.approx(0.5 * (before + after), rel=1e-6)


def test_what_may_start_anew_makes_rare_anchors_dearer() -> None:
    offsets = ClassBias()
    state = learnt(offsets, part=0.01)
    every, noise = np.array([10.0, 100.0]), np.array([400.0, 400.0])
    calm = offsets.expected_errors(state, SCALE, np.full(2, 0.05), every, noise)
    state.anew = np.array([20.0, 1000.0])
    wild = offsets.expected_errors(state, SCALE, np.full(2, 0.05), every, noise)
    assert (wild > calm).all()
    assert wild[1] - calm[1] > wild[0] - calm[0]
