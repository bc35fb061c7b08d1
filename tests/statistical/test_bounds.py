"""The paper's error bounds hold in simulation under the theorems' assumptions, and are the proofs' formulas.

The bounds are on means; each simulated mean is over enough draws that its standard error is a few percent, and the
bounds are loose by more than that, so a false alarm would need a deviation of many standard errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wevent
from tests.support.bounds import pba_bound, pbd_bound, sampling_mechanism_bound
from wevent.core.estimators import reporting_errors

MIXED = {(4, "0.8"): 30, (6, "0.9"): 20, (8, "1.0"): 5}
EQUAL = {(6, "0.9"): 50}


def population(sizes: dict[tuple[int, str], int]) -> wevent.Population:
    return wevent.Population({wevent.Requirement(window, eps): size for (window, eps), size in sizes.items()})


class Scripted(wevent.SeededNoise):
    """Seeded noise whose dissimilarity draw (the only one of size 1) publishes or skips as told."""

    publish = True

    def laplace(self, permit: Any, size: int) -> Any:
        if size == 1:
            return np.array([2**60 if self.publish else -(2**60)])
        return super().laplace(permit, size)


def squared_errors(people: wevent.Population, mechanism: str, script: list[bool], seed: int) -> list[float]:
    """The squared error per cell of every slot; everyone stays in cell 0, the worst case for SM."""
    noise = Scripted(seed)
    publisher = wevent.Publisher(people, 2, mechanism, noise=noise)
    counts = np.column_stack([people.sizes, np.zeros_like(people.sizes)])
    errors = []
    for decision in script:
        noise.publish = decision
        errors.append(float((publisher.step(counts).histogram[0] - counts[:, 0].sum()) ** 2))
    return errors


def test_lemma_is_the_better_of_the_two_extreme_thresholds() -> None:
    assert sampling_mechanism_bound([0.5, 1.0], [3, 7]) == pytest.approx(min(2 / 0.25, 3 * 3.25 + 2))
    assert sampling_mechanism_bound([0.1, 1.0], [3, 7]) == pytest.approx(3 * 3.25 + 2)
    assert sampling_mechanism_bound([0.1, 1.0], [3, 7], sensitivity=2) == pytest.approx(3 * 3.25 + 8)


def test_lemma_bounds_what_obs_expects() -> None:
    generator = np.random.default_rng(3)
    for _ in range(300):
        classes = int(generator.integers(1, 9))
        budgets = generator.integers(1_000_000, 2_000_000_000, classes)
        sizes = generator.integers(1, 500, classes)
        bound = sampling_mechanism_bound((budgets / 1e9).tolist(), sizes.tolist())
        assert reporting_errors(budgets, sizes)[1].min() <= bound * (1 + 1e-9)


@pytest.mark.parametrize("sizes", [EQUAL, MIXED])
def test_lemma_bounds_simulated_sampling_mechanism(sizes: dict[tuple[int, str], int]) -> None:
    people = population(sizes)
    budgets = [one.nano // one.window / 1e9 for one in people.classes]
    errors = squared_errors(people, "pbu", [True] * 3000, seed=1)
    bound = sampling_mechanism_bound(budgets, people.sizes.tolist())
    assert np.mean(errors) <= bound * 1.1  # ten standard errors of a mean of 3,000 squared Laplace draws are about 35 %
    if sizes is EQUAL:  # one class: the lemma is the noise itself, so it is tight
        assert np.mean(errors) >= bound * 0.85


@pytest.mark.parametrize("publications", [1, 2, 3])
@pytest.mark.parametrize("sizes", [EQUAL, MIXED])
def test_pbd_theorem(sizes: dict[tuple[int, str], int], publications: int) -> None:
    people = population(sizes)
    shortest = min(one.window for one in people.classes)
    spacing = -(-shortest // publications)
    script = [slot % spacing == 0 for slot in range(15 * shortest)]
    means = [np.mean(squared_errors(people, "pbd", script, seed)) for seed in range(16)]
    assert np.mean(means) <= pbd_bound(people, cells=2, publications=publications)


def test_pbd_formula_has_the_squares() -> None:
    people = population({(10, "1.0"): 100})
    rate = 0.1
    expected = 8 / (4 * rate**2) + 32 * (4**2 - 1) / (3 * 2 * rate**2)
    assert pbd_bound(people, cells=2, publications=2) == pytest.approx(expected)


@pytest.mark.parametrize("skipped", [0, 1, 3, 9])
@pytest.mark.parametrize("sizes", [EQUAL, MIXED])
def test_pba_theorem(sizes: dict[tuple[int, str], int], skipped: int) -> None:
    people = population(sizes)
    script = ([False] * skipped + [True] + [False] * skipped) * 8
    runs = np.array([squared_errors(people, "pba", script, seed) for seed in range(20)])
    cycle = 2 * skipped + 1
    steady = runs[:, cycle:]  # before the first publication zeros are repeated: no publication error yet
    nullified = steady.reshape(20, -1, cycle)[:, :, skipped + 1 :]
    nullified_error = float(nullified.mean()) if skipped else 0.0
    assert steady.mean() <= pba_bound(people, cells=2, skipped=skipped, nullified_error=nullified_error)


def test_pba_formula_counts_a_share_as_half() -> None:
    people = population({(10, "1.0"): 100})
    rate = 0.1
    expected = 8 / (4 * rate**2) + (8 / rate**2 * (1 + 1 / 4) + 1 * 5.0) / 3
    assert pba_bound(people, cells=2, skipped=1, nullified_error=5.0) == pytest.approx(expected)
    beyond = pba_bound(people, cells=2, skipped=12, nullified_error=0.0)
    harmonic = sum(1 / k**2 for k in range(1, 11))
    assert beyond == pytest.approx(8 / (4 * rate**2) + (8 / rate**2 * harmonic + 3 * 8 / (10 * rate) ** 2) / 25)
