"""Figures of repeats, one at a time or side by side."""

import numpy as np
import pytest

from wevent.experiments.scores import Scores, SlotErrors

TRUTH = np.array([[6.0, 2.0], [0.0, 0.0], [4.0, 4.0]])
RELEASES = np.array([[3.0, 3.0], [-1.0, 2.0], [4.0, 4.0]])
FRESH = np.array([True, False, True])


def test_a_repeat_alone_and_beside_another_has_the_same_figures():
    alone = Scores.of(SlotErrors.of(RELEASES, TRUTH), FRESH, [0.5], [0.9])
    stacked = np.stack([RELEASES, TRUTH], axis=1), np.stack([TRUTH, TRUTH], axis=1)
    beside = Scores.of(SlotErrors.of(*stacked), np.stack([FRESH, FRESH], axis=1), [0.5, 0.1], [0.9, 1.0])
    for figure in vars(alone):
        assert getattr(alone, figure).shape == (1,)
        assert getattr(beside, figure)[0] == pytest.approx(getattr(alone, figure)[0])
    assert (beside.amre[1], beside.mae[1], beside.mre[1]) == (0.0, 0.0, 0.0)


def test_means_are_over_slots_and_empty_slots_have_no_relative_error():
    scores = Scores.of(SlotErrors.of(RELEASES, TRUTH), FRESH, [0.5], [0.9])
    assert scores.amre[0] == pytest.approx((5.0 + 2.5 + 0.0) / 3)
    assert scores.mae[0] == pytest.approx((2.0 + 1.5 + 0.0) / 3)
    assert scores.mre[0] == pytest.approx((0.5 + 0.0) / 2)
    assert scores.fresh[0] == 2.0


def test_parts_are_joined_in_order():
    parts = [Scores.of(SlotErrors.of(RELEASES, TRUTH), FRESH, [share], [0.9]) for share in (0.5, 0.7)]
    assert Scores.joined(parts).worst_window_share.tolist() == [0.5, 0.7]
