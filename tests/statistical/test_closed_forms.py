"""Errors of the publisher that can be worked out beforehand."""

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.experiments import metrics
from wevent.experiments.mechanism_specs import MechanismSpec
from wevent.experiments.trial import Trial, publish
from wevent.noise import SeededNoise

CONSTANT = ["pbd", "pba", "bd", "ba", "bd:std", "uniform", "pbu", "sample"]


def constant(window, epsilon, *, slots=8_000):
    population = Population({Requirement(window, epsilon): 500})
    return Trial(population, np.broadcast_to(np.array([120, 300], dtype=np.int32), (slots, 1, 2)))


def run(label, trial):
    published = publish(MechanismSpec.parse(label), trial, SeededNoise([1]))
    return published, metrics.squared_errors(published.releases, trial.truth)


@pytest.mark.parametrize(("window", "epsilon"), [(10, "0.5"), (40, "1.0"), (3, "6")])
def test_uniform_has_twice_the_square_of_w_over_epsilon(window, epsilon):
    """AMRE = 2(w/ε)², less the discrete noise's 1/6 (2q/(1 − q)² = 2s² − 1/6 + …)."""
    _, errors = run("uniform", constant(window, epsilon))
    scale = window / float(epsilon)
    q = np.exp(-1 / scale)
    assert 2 * q / (1 - q) ** 2 == pytest.approx(2 * scale**2 - 1 / 6, abs=0.4 / scale**2 + 1e-3)
    assert errors.mean() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.06)


def test_sample_at_window_one_is_uniform_with_the_whole_epsilon():
    q = np.exp(-0.8)
    published, errors = run("sample", constant(1, "0.8"))
    assert published.fresh.all()
    assert errors.mean() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.06)


def test_sample_repeats_within_a_window_and_uses_the_whole_epsilon():
    published, _ = run("sample", constant(7, "50", slots=50))
    assert np.flatnonzero(published.fresh).tolist() == [0, 7, 14, 21, 28, 35, 42, 49]
    assert published.worst_window_share == 1.0


@pytest.mark.parametrize("label", CONSTANT)
def test_error_falls_to_nothing_as_epsilon_grows_on_a_constant_stream(label):
    errors = [run(label, constant(2, epsilon, slots=1_600))[1][20:].mean() for epsilon in ("0.5", "5", "50")]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01
