"""Invented streams in which days come back, more or less: class × cell counts with known truth, from a seed."""

from typing import Any

import numpy as np

from benchmarks.hard_streams import class_sizes
from wevent.experiments.datasets.city import SLOTS_PER_DAY, City

KINDS = ("two peaks", "own hours", "sparse", "weekends", "holiday", "shift")
WEEKEND = (5, 6)  # days of a week that begins with day 0
HOLIDAY = 10  # the day that is like a weekend's
SHIFTED, SHIFT = 7, 2.0  # from this day on everything is this many hours later


def city(*, users: int, days: int, classes: int, seed: int) -> tuple[Any, Any]:
    """The city of `wevent demo`, users dealt into equal classes: counts (slots, classes, cells) and class sizes."""
    rows = np.random.default_rng([5, seed]).permutation(np.arange(users) % classes)
    counts = City(users, days * SLOTS_PER_DAY).count(rows, classes, seed=[seed])
    return counts.astype(np.int64), np.bincount(rows, minlength=classes)


def days_off(kind: str, days: int) -> list[int]:
    """The days that are of the other kind."""
    if kind == "holiday":
        return [HOLIDAY] if days > HOLIDAY else []
    return [day for day in range(days) if day % 7 in WEEKEND] if kind == "weekends" else []


def cyclic(kind: str, *, users: int, days: int, classes: int, seed: int, slots_per_day: int = 288) -> tuple[Any, Any]:
    """Counts of a stream with days; everybody is drawn anew in every slot."""
    generator = np.random.default_rng([6, KINDS.index(kind), seed])
    chances = _chances(kind, days, slots_per_day, generator)
    absent = 1.0 - chances.sum(axis=1, keepdims=True)
    answers = np.concatenate([chances, absent], axis=1)
    sizes = class_sizes(users, classes)
    drawn = [generator.multinomial(size, answers)[:, :-1] for size in sizes]
    return np.stack(drawn, axis=1), sizes


def _chances(kind: str, days: int, per_day: int, generator: np.random.Generator) -> Any:
    """Where a user is: slots × cells, the rest is absence."""
    hour = np.arange(days * per_day) % per_day * 24.0 / per_day
    day = np.arange(days * per_day) // per_day
    cells = 40 if kind == "sparse" else 10
    base = generator.dirichlet(np.full(cells, 0.5 if kind == "sparse" else 2.0))
    if kind == "own hours":  # a cell is open at hours of its own
        middle, width = generator.uniform(0.0, 24.0, cells), generator.uniform(1.5, 6.0, cells)
        return 0.7 * base * (0.1 + 0.9 * _bump(hour[:, None], middle, width))
    if kind == "sparse":
        middle = generator.uniform(8.0, 20.0, cells)
        return 0.08 * base * (0.02 + _bump(hour[:, None], middle, 4.0))
    work = generator.dirichlet(np.full(cells, 2.0))
    later = np.where(day >= SHIFTED, SHIFT, 0.0) if kind == "shift" else 0.0
    hour = (hour - later) % 24.0
    off = np.isin(day, days_off(kind, days))
    if kind == "two peaks":  # the rush, morning and evening, and people between two places in it
        awake = 0.15 + 0.35 * _bump(hour, 8.5, 1.5) + 0.4 * _bump(hour, 18.0, 2.0)
        there = 1.0 / (1.0 + np.exp(-(hour - 8.5) / 0.7)) - 1.0 / (1.0 + np.exp(-(hour - 18.0) / 0.7))
    else:
        awake = 0.3 + 0.4 * _bump(hour, np.where(off, 16.0, 13.0), 5.0)
        there = 1.0 / (1.0 + np.exp(-(hour - 8.5) / 0.8)) - 1.0 / (1.0 + np.exp(-(hour - 17.5) / 1.2))
    there = np.where(off, 0.0, there)[:, None]
    return awake[:, None] * (there * work + (1.0 - there) * base)


def _bump(hour: Any, middle: Any, width: Any) -> Any:
    """1 in the middle, less the farther away round the clock."""
    apart = np.abs((hour - middle + 12.0) % 24.0 - 12.0)
    return np.exp(-((apart / width) ** 2))
