"""Errors that can be worked out beforehand: of the publisher, and of the replicated mechanisms that stand in for it."""

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.experiments import metrics
from wevent.experiments.choices import Choice
from wevent.experiments.reproduce.batches import run_publishers, run_replicates, score_replicates
from wevent.experiments.reproduce.replicated.replicates import Replicates
from wevent.experiments.trial import Trial

CONSTANT = ["pbd", "pba", "bd", "ba", "bd:std", "uniform", "pbu", "sample"]


def constant(window, epsilon, *, repeats=4, slots=2_000):
    population = Population({Requirement(window, epsilon): 500})
    counts = np.broadcast_to(np.array([120, 300], dtype=np.int32), (slots, 1, 2))
    return Replicates.of([Trial(population, counts)] * repeats)


def published(label, batch):
    return run_publishers(Choice.parse(label), batch, seed=[1])


def replicated(label, batch):
    return run_replicates(Choice.parse(label), batch, seed=1)


BOTH = pytest.mark.parametrize("run_all", [published, replicated])


@BOTH
@pytest.mark.parametrize(("window", "epsilon"), [(10, "0.5"), (40, "1.0"), (3, "6")])
def test_uniform_has_twice_the_square_of_w_over_epsilon(window, epsilon, run_all):
    """AMRE = 2(w/ε)², less the discrete noise's 1/6 (2q/(1 − q)² = 2s² − 1/6 + …)."""
    batch = constant(window, epsilon)
    amre = score_replicates(run_all("uniform", batch), batch).amre.mean()
    scale = window / float(epsilon)
    q = np.exp(-1 / scale)
    assert 2 * q / (1 - q) ** 2 == pytest.approx(2 * scale**2 - 1 / 6, abs=0.4 / scale**2 + 1e-3)
    assert amre == pytest.approx(2 * q / (1 - q) ** 2, rel=0.06)


@BOTH
def test_sample_at_window_one_is_uniform_with_the_whole_epsilon(run_all):
    batch = constant(1, "0.8")
    q = np.exp(-0.8)
    run = run_all("sample", batch)
    assert run.fresh.all()
    assert score_replicates(run, batch).amre.mean() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.06)


@BOTH
def test_sample_repeats_within_a_window_and_uses_the_whole_epsilon(run_all):
    batch = constant(7, "50", slots=50)
    run = run_all("sample", batch)
    assert np.flatnonzero(run.fresh[:, 0]).tolist() == [0, 7, 14, 21, 28, 35, 42, 49]
    assert metrics.worst_window_share(run.charges[:, 0], batch.populations[0]) == 1.0


@BOTH
@pytest.mark.parametrize("label", CONSTANT)
def test_error_falls_to_nothing_as_epsilon_grows_on_a_constant_stream(label, run_all):
    errors = []
    for epsilon in ("0.5", "5", "50"):
        batch = constant(2, epsilon, slots=400)
        run = run_all(label, batch)
        errors.append(float(metrics.squared_errors(run.releases[20:], batch.truth[20:]).mean()))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01
