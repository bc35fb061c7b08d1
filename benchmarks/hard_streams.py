"""Invented streams that are hard to publish: class × cell counts with known truth, from a seed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Requirements = list[tuple[int, float]]

NINE: Requirements = [(window, epsilon) for window in (40, 80, 120) for epsilon in (0.6, 0.8, 1.0)]
TWENTY_FIVE: Requirements = [(w, e) for w in (40, 80, 120, 160, 200) for e in (0.2, 0.4, 0.6, 0.8, 1.0)]
KINDS = ("jump", "burst", "cycle", "appear", "walk", "constant")


def class_sizes(users: int, classes: int) -> Any:
    """Equal classes."""
    sizes = np.full(classes, users // classes)
    sizes[: users % classes] += 1
    return sizes


def synthetic(kind: str, *, users: int, slots: int, classes: int, seed: int) -> tuple[Any, Any]:
    """tlns, sin or log (the specification, section 13): counts (slots, classes, 2) and class sizes."""
    generator = np.random.default_rng([1, seed])
    time = np.arange(1, slots + 1)
    if kind == "sin":
        chance = 0.05 * np.sin(0.01 * time) + 0.075
    elif kind == "log":
        chance = 0.25 / (1.0 + np.exp(-0.01 * time))
    else:
        chance, level = np.empty(slots), 0.05
        for slot in range(slots):
            level = min(1.0, max(0.0, level + generator.normal(0.0, 0.0025)))
            chance[slot] = level
    sizes = class_sizes(users, classes)
    ones = generator.binomial(sizes, chance[:, None])
    return np.stack([sizes - ones, ones], axis=2), sizes


def hard(
    kind: str, *, users: int, classes: int, seed: int, slots: int = 1000, cells: int = 5, stay: bool = False
) -> tuple[Any, Any]:
    """Counts of a hard stream; `stay`: the same users hold the same cells, otherwise they are redrawn in every slot."""
    generator = np.random.default_rng([2, seed])
    chances = cell_chances(kind, slots, cells, generator)
    sizes = class_sizes(users, classes)
    counts = np.empty((slots, classes, cells), dtype=np.int64)
    for row, size in enumerate(sizes):
        if stay:
            places = np.sort(generator.random(size))
            edges = np.searchsorted(places, np.minimum(np.cumsum(chances, axis=1), 1.0))
            counts[:, row] = np.diff(edges, axis=1, prepend=0)
        else:
            absent = np.maximum(0.0, 1.0 - chances.sum(axis=1, keepdims=True))
            answers = np.concatenate([chances, absent], axis=1)
            counts[:, row] = generator.multinomial(size, answers / answers.sum(axis=1, keepdims=True))[:, :cells]
    return counts, sizes


def cell_chances(kind: str, slots: int, cells: int, generator: np.random.Generator) -> Any:
    """Where a user is: slots × cells, the rest of the probability is absence."""
    base = generator.dirichlet(np.ones(cells)) * 0.6
    if kind == "constant":
        return np.repeat(base[None], slots, axis=0)
    if kind == "appear":  # a cell from nothing, half-way
        chances = np.repeat(base[None], slots, axis=0)
        chances[: int(0.53 * slots), 0] = 0.0
        return chances
    if kind == "cycle":  # a day of 288 slots
        phase = generator.random(cells) * 2.0 * np.pi
        return 0.8 * base * (1.0 + 0.6 * np.sin(2.0 * np.pi * np.arange(slots)[:, None] / 288.0 + phase))
    if kind == "burst":
        high = np.zeros(slots)
        for start in _arrivals(generator, slots, 120.0):
            high[start : start + int(generator.integers(3, 20))] = 1.0
        return base * (0.4 + 0.6 * high[:, None])
    if kind == "jump":  # by half, up or down, every 150 slots on average
        factor, path = np.ones(cells), []
        for _ in range(slots):
            up = np.where(generator.random(cells) < 0.5, 1.5, 0.5)
            factor = np.clip(np.where(generator.random(cells) < 1 / 150, factor * up, factor), 0.25, 2.0)
            path.append(factor)
        return _within(base * np.array(path))
    steps = np.cumsum(generator.normal(0.0, 0.1, (slots, cells)), axis=0)  # a random walk of 10 % a slot, reflected
    return _within(base * np.exp(np.abs((steps + 1.0) % 4.0 - 2.0) - 1.0))


def _arrivals(generator: np.random.Generator, slots: int, mean: float) -> Sequence[int]:
    times = np.cumsum(generator.exponential(mean, slots).astype(int) + 1)
    return times[times < slots].tolist()


def _within(chances: Any) -> Any:
    return chances / np.maximum(chances.sum(axis=1, keepdims=True) / 0.95, 1.0)
