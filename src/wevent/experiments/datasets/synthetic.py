"""The paper's three binary streams (section 5.1; spec 13), and an invented one for planning."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray, IntArray
from wevent.experiments.datasets.stream import Invented

Variant = Literal["printed", "authors"]


def _tlns(slots: int, variant: Variant, generator: np.random.Generator) -> FloatArray:
    """p_t = clip(p_{t−1} + N(0, 0.0025²), 0, 1), p_0 = 0.05; the authors start at 0.5 and count slot 0."""
    path = np.empty(slots)
    probability = 0.05 if variant == "printed" else 0.5
    steps = generator.normal(0.0, 0.0025, slots)
    if variant == "authors":
        steps[0] = 0.0
    for slot, step in enumerate(steps.tolist()):
        probability = min(max(probability + step, 0.0), 1.0)
        path[slot] = probability
    return path


def _sin(slots: int, variant: Variant, generator: np.random.Generator) -> FloatArray:
    """p_t = 0.05·sin(0.01 t) + 0.075."""
    path: FloatArray = 0.05 * np.sin(0.01 * _times(slots, variant)) + 0.075
    return path


def _log(slots: int, variant: Variant, generator: np.random.Generator) -> FloatArray:
    """p_t = 0.25/(1 + e^{−0.01 t}); the authors' slot 0 has 0.25 itself."""
    path: FloatArray = 0.25 / (1.0 + np.exp(-0.01 * _times(slots, variant)))
    if variant == "authors":
        path[0] = 0.25
    return path


def _times(slots: int, variant: Variant) -> FloatArray:
    return np.arange(slots, dtype=np.float64) + (1.0 if variant == "printed" else 0.0)


_PATHS: dict[str, Callable[[int, Variant, np.random.Generator], FloatArray]] = {"tlns": _tlns, "sin": _sin, "log": _log}
SYNTHETIC = tuple(_PATHS)


@dataclass(frozen=True)
class Binary(Invented):
    """n users with independent values in every slot: 1 with probability p_t, else 0.

    Drawn per class, Binomial(n_g, p_t): the same law as drawing every user.
    """

    name: str
    variant: Variant = "printed"
    cells: tuple[str, str] = ("0", "1")

    def probabilities(self, *, seed: Sequence[int]) -> FloatArray:
        """Return p_1 … p_T; only `tlns` depends on the seed. The authors' files round to two decimals."""
        path = _PATHS[self.name](self.slots, self.variant, self._generator(seed, 0))
        return path.round(2) if self.variant == "authors" else path

    def count(self, rows: IntArray, classes: int, *, seed: Sequence[int]) -> npt.NDArray[np.int32]:
        sizes = np.bincount(rows[rows >= 0], minlength=classes)
        ones = self._generator(seed, 1).binomial(sizes, self.probabilities(seed=seed)[:, None])
        return np.stack([sizes - ones, ones], axis=2).astype(np.int32)

    def _generator(self, seed: Sequence[int], use: int) -> np.random.Generator:
        return np.random.default_rng([*seed, zlib.crc32(self.name.encode()), use])


def synthetic_stream(name: str, *, users: int, slots: int, variant: Variant = "printed") -> Binary:
    """Return one of the paper's synthetic streams.

    >>> synthetic_stream("sin", users=100, slots=3).probabilities(seed=[1]).round(4).tolist()
    [0.0755, 0.076, 0.0765]
    """
    return Binary(users, slots, name, variant)


@dataclass(frozen=True)
class Daily(Invented):
    """Any number of cells with a daily rhythm, for plans without a sample.

    Cells have Zipf shares that swing over the day, each at its own hour; a user is present with probability `present`
    on average, more by day than by night.
    """

    cell_count: int
    slots_per_day: float
    present: float = 0.5
    name: str = "daily"

    @property
    def cells(self) -> Sequence[int]:
        return range(self.cell_count)

    def count(self, rows: IntArray, classes: int, *, seed: Sequence[int]) -> npt.NDArray[np.int32]:
        sizes = np.bincount(rows[rows >= 0], minlength=classes)
        day = 2.0 * np.pi * np.arange(self.slots) / self.slots_per_day
        phases = np.arange(self.cell_count) * 2.4  # spread over the day
        shares = (1.0 + 0.5 * np.sin(day[:, None] + phases)) / np.arange(1, self.cell_count + 1)
        shares /= shares.sum(axis=1, keepdims=True)
        presence = np.clip(self.present * (1.0 + 0.4 * np.sin(day - np.pi / 2)), 0.0, 1.0)
        chances = np.concatenate([shares * presence[:, None], 1.0 - presence[:, None]], axis=1)
        generator = np.random.default_rng([*seed, zlib.crc32(b"daily")])
        drawn = generator.multinomial(sizes, chances[:, None, :])
        return drawn[:, :, :-1].astype(np.int32)
