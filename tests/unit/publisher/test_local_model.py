"""The client's randomizer and the server's estimator; their law is in tests/statistical."""

from __future__ import annotations

import numpy as np
import pytest

from wevent import InvalidReports, InvalidRequirement, local
from wevent.core.budget import response_probability
from wevent.core.estimators import randomize as core_randomize


def bits(*draws: int):
    """A source of random bits that was written down; refuses more draws and numbers that do not fit."""
    rest = list(draws)

    def draw(width: int) -> int:
        value = rest.pop(0)
        assert 0 <= value < 2**width
        return value

    return draw


@pytest.mark.parametrize("answer", [0, 1, 2, 3])
def test_the_truth_is_kept_below_p_and_the_rest_is_uniform_by_rejection(answer: int) -> None:
    truth = response_probability(10**9, 3)
    assert core_randomize(answer, cells=3, budget=10**9, draw_bits=bits(truth - 1)) == answer
    others = [other for other in range(4) if other != answer]
    for place, other in enumerate(others):
        lies = core_randomize(answer, cells=3, budget=10**9, draw_bits=bits(truth, 3, 3, place))
        assert lies == other


def test_one_cell_needs_no_further_bits() -> None:
    assert core_randomize(0, cells=1, budget=10**9, draw_bits=bits(2**64 - 1)) == 1
    assert core_randomize(1, cells=1, budget=10**9, draw_bits=bits(2**64 - 1)) == 0


def test_reports_are_answers() -> None:
    seen = {local.randomize(None, cells=["n", "s"], epsilon="0.5") for _ in range(200)}
    assert seen == {0, 1, 2}
    assert {local.randomize("s", cells=["n", "s"], epsilon=50) for _ in range(50)} == {1}
    assert {local.randomize(None, cells=5, epsilon=50) for _ in range(50)} == {5}
    assert {local.randomize(4, cells=5, epsilon=50) for _ in range(50)} == {4}


@pytest.mark.parametrize("cell", [5, -1, "n", 2.5])
def test_an_unknown_cell_is_refused_without_being_named(cell: object) -> None:
    with pytest.raises(InvalidReports) as caught:
        local.randomize(cell, cells=5, epsilon=1)
    assert repr(cell) not in str(caught.value)


@pytest.mark.parametrize("epsilon", [0, -1, 51, float("nan"), "a lot"])
def test_an_epsilon_no_promise_can_be_built_on(epsilon: object) -> None:
    with pytest.raises(InvalidRequirement):
        local.randomize(0, cells=5, epsilon=epsilon)
    with pytest.raises(InvalidRequirement):
        local.estimate([0], cells=5, epsilon=epsilon)


def test_the_estimate_inverts_the_expected_reports() -> None:
    """Reports in exactly the expected proportions give back the counts."""
    truth = response_probability(10**9, 2) / 2.0**64
    lie = (1 - truth) / 2
    scale = 10**6
    counts = np.array([5, 3, 2])  # two cells and absent
    expected = (counts * (truth - lie) + lie * counts.sum()) * scale
    reports = np.repeat([0, 1, 2], np.round(expected).astype(int))
    assert local.estimate(reports, cells=2, epsilon=1) == pytest.approx(counts[:2] * scale, rel=1e-5)


def test_no_reports_estimate_nobody() -> None:
    assert local.estimate([], cells=3, epsilon=1).tolist() == [0, 0, 0]


def test_very_weak_privacy_tells_the_truth() -> None:
    assert local.estimate([0, 0, 1, 2], cells=2, epsilon=50).tolist() == [2, 1]
