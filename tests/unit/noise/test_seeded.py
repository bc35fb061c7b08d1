"""The simulation source: repeatable, and it says so."""

from __future__ import annotations

import numpy as np

from tests.unit.scripted import permit_for
from wevent import SeededNoise


def draws(noise: SeededNoise) -> list[list[int]]:
    counts = np.array([[50, 60], [70, 80]])
    return [
        noise.laplace(permit_for([10**8], [1]).for_sampling(10**8).noise, 5).tolist(),
        noise.binomial(counts, permit_for([10**8, 10**9], [200, 200]).for_sampling(10**9)).ravel().tolist(),
        noise.respond(counts, permit_for([10**8, 10**9], [110, 150]).for_response(1)).ravel().tolist(),
    ]


def test_the_same_seed_gives_the_same_draws() -> None:
    assert SeededNoise.seeded
    assert draws(SeededNoise(7)) == draws(SeededNoise(7))
    assert draws(SeededNoise(7)) != draws(SeededNoise(8))
    assert draws(SeededNoise([1, 2])) == draws(SeededNoise([1, 2]))


def test_a_position_continues_where_it_was_taken() -> None:
    noise = SeededNoise(7)
    draws(noise)
    position = noise.position()
    expected = draws(noise)
    assert draws(SeededNoise.at(position)) == expected
    assert draws(SeededNoise.at(position)) == expected


def test_the_global_generator_is_not_touched() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    draws(SeededNoise(7))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_certain_classes_are_kept_whole() -> None:
    counts = np.array([[5, 6], [7, 8]])
    kept = SeededNoise(1).binomial(counts, permit_for([0, 10**9], [11, 15]).for_sampling(10**9))
    assert kept.tolist() == [[0, 0], [7, 8]]
