"""One user with an odd requirement does not change how well a thousand others are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement, SeededNoise

USUAL = Population({Requirement(window, epsilon): 111 for window in (40, 80, 120) for epsilon in ("0.6", "0.8", 1)})
ODD = [
    (1, "2e-9"),
    (1, "0.01"),
    (1, 50),
    (40, "0.001"),
    (120, "0.01"),
    (120, 50),
    (1000, "0.000002"),
    (1000, 50),
    (100_000, 1),
]
MECHANISMS: dict[str, tuple[dict[str, Any], int, int]] = {  # options, slots, seeds
    "pft": ({}, 120, 4),
    "pft, budget weights": ({"class_weights": "budget"}, 120, 4),
    "pbu": ({}, 30, 8),
    "pbd": ({}, 60, 16),
    "pba": ({}, 120, 8),
}


def squared_errors(name: str, odd: tuple[int, object] | None) -> np.ndarray:
    """Return the mean squared error of each seed."""
    options, slots, seeds = MECHANISMS[name]
    sizes = dict(USUAL.items())
    if odd is not None:
        sizes[Requirement(*odd)] = 1
    errors = np.zeros((seeds, slots))
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        publisher = Publisher(Population(sizes), 4, name.split(",")[0], noise=SeededNoise(seed), **options)
        for slot in range(slots):
            turn = 0.1 * np.sin(slot / 60)
            parts = [0.4, 0.3, 0.2 + turn, 0.1 - turn]
            usual = iter(random.multinomial(100, parts, size=len(USUAL)))
            counts = np.array([next(usual) if one in USUAL else [1, 0, 0, 0] for one in publisher.population.classes])
            errors[seed, slot] = np.mean((publisher.step(counts).histogram - counts.sum(axis=0)) ** 2)
    return errors.mean(axis=1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_error_does_not_grow_by_more_than_a_tenth(name: str) -> None:
    """A growth of a tenth, plus three standard errors of the seeds; one user with (1, 50) made it 57 times as large."""
    usual = squared_errors(name, None)
    for odd in ODD:
        excess = squared_errors(name, odd) - 1.1 * usual
        margin = 3 * excess.std(ddof=1) / len(excess) ** 0.5
        assert excess.mean() <= margin, (odd, excess.mean() / usual.mean())
