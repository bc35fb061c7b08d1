"""Integer Laplace noise against its closed form, from both sources; noise 10 % off must be rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.statistical.goodness import (
    draw_laplace,
    fits_laplace,
    has_mean,
    has_variance,
    repetition,
    repetition_alarm,
)
from wevent import SecureNoise, SeededNoise
from wevent.core.estimators import laplace_error

SIZE = 40_000
SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(20240611)}
SCALES = [0.3, 1.0, 4.0, 25.0]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("source", SOURCES)
def test_the_noise_has_the_law(source: str, scale: float) -> None:
    draws = draw_laplace(SOURCES[source](), scale, SIZE)
    assert fits_laplace(draws, scale)
    assert has_mean(draws, 0.0)
    assert has_variance(draws, laplace_error(scale).variance)


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("source", SOURCES)
def test_noise_ten_percent_off_is_rejected(source: str, scale: float, factor: float) -> None:
    draws = draw_laplace(SOURCES[source](), scale * factor, SIZE)
    assert not fits_laplace(draws, scale)


def test_other_wrong_noise_is_rejected() -> None:
    """Rounded continuous noise, shifted noise, noise with a hole at zero, clipped noise: all of the right variance."""
    random = np.random.default_rng(1)
    right = draw_laplace(SeededNoise(2), 4.0, SIZE)
    assert fits_laplace(right, 4.0)
    assert not fits_laplace(np.round(random.normal(0, 32**0.5, SIZE)).astype(int), 4.0)
    assert not fits_laplace(np.floor(random.laplace(0, 4.0, SIZE)).astype(int), 4.0)
    assert not fits_laplace(right[right != 0], 4.0)
    assert not fits_laplace(np.clip(right, -15, 15), 4.0)
    assert not fits_laplace(np.abs(right), 4.0)


@pytest.mark.parametrize("source", SOURCES)
def test_the_cells_of_one_draw_are_independent(source: str) -> None:
    draws = draw_laplace(SOURCES[source](), 4.0, SIZE).astype(float)
    products = draws[:-1:2] * draws[1::2]
    assert has_mean(products, 0.0)
    assert has_mean(np.sign(draws[:-1:2]) * np.sign(draws[1::2]), 0.0)


def test_nothing_repeats_in_a_vector_of_secure_noise() -> None:
    assert repetition_alarm() < 1e-9
    assert repetition(SecureNoise()) is None


@pytest.mark.parametrize(
    "dependent",
    [
        lambda draws: np.resize(draws[:64], len(draws)),
        lambda draws: np.resize(draws[:3001], len(draws)),
        lambda draws: np.append(draws[:2048], -draws[2047::-1]),
        lambda draws: np.abs(draws) * np.resize(np.sign(draws[:500]), len(draws)),
        lambda draws: np.where(np.arange(len(draws)) == 77, draws[4000], draws),
    ],
    ids=["blocks of 64", "blocks of 3001", "mirrored", "signs of 500", "one cell twice"],
)
def test_noise_whose_cells_depend_on_each_other_is_rejected(
    dependent: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = SecureNoise.laplace
    monkeypatch.setattr(SecureNoise, "laplace", lambda *asked: dependent(right(*asked)))
    assert repetition(SecureNoise())
