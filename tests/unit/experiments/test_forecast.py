"""What a plan says in words is what its figures say."""

import re
from dataclasses import replace

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.experiments import Expected, Forecast, Move
from wevent.experiments.formatting import change_and_interval, short
from wevent.experiments.intervals import ratio_interval
from wevent.experiments.scores import Scores

STRICT, LOOSE = Requirement(48, "0.5"), Requirement(24, "1")


def expected(name, amre):
    one = np.ones(len(amre))
    scores = Scores(one, one, one, one, one, one, one, one)
    return Expected(name, replace(scores, amre=np.asarray(amre, dtype=float)))


def forecast(rows, moves=(), mean_count=637.0):
    ranked = sorted(
        (expected(name, amre) for name, amre in rows.items()), key=lambda row: float(row.scores.amre.mean())
    )
    population = Population({STRICT: 100, LOOSE: 900})
    return Forecast(population, tuple(ranked), mean_count, tuple(moves), (), "daily", {}, 1)


def moves(*ratios, base=(100.0, 110.0, 90.0)):
    return [Move(STRICT, LOOSE, 25, ratio_interval([ratio * value for value in base], list(base))) for ratio in ratios]


def jittered(*ratios):
    """Moves whose ratio differs from repeat to repeat."""
    return [
        Move(STRICT, LOOSE, 25, ratio_interval([ratio * 0.8, ratio, ratio * 1.25], [1.0, 1.0, 1.0])) for ratio in ratios
    ]


BASE = {"pft": [1681.0, 1700.0, 1650.0], "pbu": [18225.0, 18000.0, 18400.0]}


def test_the_first_has_the_smallest_typical_error_whatever_the_tails():
    heavy = forecast({"often": [1.0, 1.0, 400.0], "steady": [81.0, 81.0, 81.0]})
    shown = [row.typical_error.mean for row in heavy.expected]
    assert shown == sorted(shown)
    assert heavy.expected[0].mechanism == "steady"
    assert heavy.expected[0].typical_error.mean ** 2 == pytest.approx(heavy.expected[0].to_dict()["amre"])
    assert heavy.advice()[0].startswith("Use steady: a typical error of 9 users")


def test_a_first_that_most_repeats_contradict_is_not_called_ahead():
    noisy = forecast({"often": [1.0, 1.0, 1.0, 1.0, 1.0, 9.0], "steady": [2.0] * 6})
    assert noisy.advice()[1] == "often is within noise of it: choose by other needs."
    clear = forecast({"often": [1.0, 1.01] * 20 + [90.0], "steady": [2.0] * 41}).advice()[1]
    assert clear.startswith("In a typical repeat often has the smaller error, and steady has fewer large ones")


@pytest.mark.parametrize("ratio", [0.999, 0.97, 0.96, 0.5, 1e-6])
def test_a_move_that_the_table_shows_to_lower_the_error_is_named(ratio):
    planned = forecast(BASE, moves(1.0, ratio, 2.0))
    sentence = planned.advice()[-1]
    most = planned.moves[1]
    assert most.ratio.high < 1.0
    gain, ends = change_and_interval(most.ratio)
    assert sentence.endswith(f": {gain} squared error ({ends}).")


@pytest.mark.parametrize("ratio", [0.9999, 1.0, 1.02, 210.95])
def test_a_move_that_the_table_shows_to_lower_nothing_is_not_called_a_gain(ratio):
    sentence = forecast(BASE, moves(ratio)).advice()[-1]
    assert sentence == "None of the moves lowers the error beyond noise."


def test_moves_within_noise_are_no_gain_and_one_repeat_proves_nothing():
    assert forecast(BASE, jittered(0.9)).advice()[-1] == "None of the moves lowers the error beyond noise."
    once = forecast({"pft": [1681.0], "pbu": [18225.0]}, [Move(STRICT, LOOSE, 25, ratio_interval([1.0], [2.0]))])
    assert once.advice()[-1].startswith("One repeat cannot tell")


def test_numbers_are_written_as_in_the_table():
    planned = forecast({"bd": [2_016_400.0] * 3}, mean_count=1234.0)
    sentence = planned.advice()[0]
    assert short(planned.expected[0].typical_error.mean) == "1,420"
    assert "1,420 users per cell" in sentence
    assert "mean count of 1,230" in sentence
    assert not re.search(r"e\+0", sentence)
