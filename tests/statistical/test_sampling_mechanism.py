"""The sampling mechanism SM: mean Σ p_g C and variance Σ C p(1 − p) + that of the noise (spec 5 and 6)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistical.goodness import Z_LIMIT, has_mean, has_variance
from tests.unit.scripted import HUGE, permit_for
from wevent import Population, Publisher, Requirement, SecureNoise, SeededNoise
from wevent.core.estimators import Sampling, laplace_error
from wevent.core.mechanism import Plan

SIZE = 40_000  # cells of one slot: as many independent draws
SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(20240611)}
EPSILONS, COUNTS = np.array([0.2, 0.5, 1.0, 1.5]), np.array([40, 60, 50, 20])
BUDGETS = [200_000_000, 500_000_000, 1_000_000_000, 1_500_000_000]


def measure(source, threshold: int = 10**9, **options: int) -> np.ndarray:
    permit = permit_for(BUDGETS, [10**8] * 4, **options)
    counts = np.repeat(COUNTS[:, None], SIZE, axis=1)
    return Sampling().measure(permit, Plan(threshold, 0.0, permit.budgets), counts, source).values


@pytest.mark.parametrize("source", SOURCES)
def test_mean_and_variance(source: str) -> None:
    values = measure(SOURCES[source]())
    p = np.minimum(np.expm1(EPSILONS) / np.expm1(1.0), 1.0)
    mean = (p * COUNTS).sum()
    sampling = (COUNTS * p * (1 - p)).sum()
    noise = laplace_error(1.0).variance
    assert has_mean(values, mean)
    assert has_variance(values, sampling + noise)
    for wrong in (COUNTS.sum(), 0.95 * mean, 1.05 * mean):
        assert not has_mean(values, wrong)
    for wrong in (sampling, noise, 0.9 * (sampling + noise), 1.1 * (sampling + noise)):
        assert not has_variance(values, wrong)


@pytest.mark.parametrize("source", SOURCES)
def test_several_cells_per_user_and_replacement(source: str) -> None:
    """k = 2 and replace: p_g = expm1(e_g/2)/expm1(θ/2), noise of scale 4/θ."""
    values = measure(SOURCES[source](), sensitivity=4, cells_per_user=2)
    p = np.minimum(np.expm1(EPSILONS / 2) / np.expm1(0.5), 1.0)
    assert has_mean(values, (p * COUNTS).sum())
    assert has_variance(values, (COUNTS * p * (1 - p)).sum() + laplace_error(4.0).variance)


@pytest.mark.parametrize("source", SOURCES)
def test_the_smallest_threshold_keeps_everyone(source: str) -> None:
    values = measure(SOURCES[source](), threshold=200_000_000)
    assert has_mean(values, COUNTS.sum())
    assert has_variance(values, laplace_error(5.0).variance)


class Recording:
    """Forwards to a source, keeps what it sampled, and makes the probe decide to publish."""

    seeded = True

    def __init__(self, source, *, reuse: bool = False) -> None:
        self._source = source
        self._reuse = reuse
        self.samples: list[np.ndarray] = []

    def laplace(self, permit, size):
        return np.array([HUGE]) if size == 1 else self._source.laplace(permit, size)

    def binomial(self, counts, permit):
        again = self._reuse and bool(self.samples)
        kept = self.samples[-1].copy() if again else self._source.binomial(counts, permit)
        self.samples.append(kept)
        return kept

    def respond(self, counts, permit):
        raise AssertionError("no local mechanism here")


def correlation(source, *, reuse: bool = False) -> float:
    """Between what the probe and what the publication of one slot kept of the sampled class, over the cells."""
    noise = Recording(source, reuse=reuse)
    cells = 5000
    population = Population({Requirement(1, "4e-6"): 20 * cells, Requirement(1, "8e-6"): 20 * cells})  # p = 1/2
    publisher = Publisher(population, cells, "pbd", noise=noise)
    release = publisher.step(np.full((2, cells), 20))
    assert release.fresh
    assert len(noise.samples) == 2
    probe, publication = (sample[0].astype(float) for sample in noise.samples)
    return float(np.corrcoef(probe, publication)[0, 1] * np.sqrt(cells))


@pytest.mark.parametrize("source", SOURCES)
def test_the_publication_draws_a_sample_of_its_own(source: str) -> None:
    """▲ Independent of the probe's (spec 7); a reused sample is seen."""
    assert abs(correlation(SOURCES[source]())) <= Z_LIMIT
    assert abs(correlation(SOURCES[source](), reuse=True)) > Z_LIMIT
