"""Streams kept back while `pft` was built: no constant was chosen on them. Different in spirit from all others.

Counts are (slots, 1, cells) with everybody in one class: where they are used, all ask for the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Generator = np.random.Generator
_CELLS = 6


def held_back(kind: str, *, users: int, seed: int, slots: int = 600) -> tuple[Any, Any]:
    """Counts of a stream and its class sizes."""
    generator = np.random.default_rng([6, KINDS.index(kind), seed])
    if kind == "movers":
        counts = _movers(users, slots, generator)
    else:
        chances = _CHANCES[kind](slots, generator)
        answers = np.concatenate([chances, np.maximum(0.0, 1.0 - chances.sum(axis=1, keepdims=True))], axis=1)
        counts = generator.multinomial(users, answers / answers.sum(axis=1, keepdims=True))[:, :-1]
    return counts[:, None, :].astype(np.int64), np.array([users])


def _shares(generator: Generator, cells: int = _CELLS, total: float = 0.6) -> Any:
    return total * generator.dirichlet(np.full(cells, 1.5))


def _capped(chances: Any) -> Any:
    return chances / np.maximum(chances.sum(axis=1, keepdims=True) / 0.97, 1.0)


def _regimes(slots: int, generator: Generator) -> Any:
    """Three hidden regimes, each with shares of its own, for some sixty slots at a time."""
    levels = [_shares(generator, total=total) for total in (0.2, 0.5, 0.9)]
    regime, rows = 0, []
    for _ in range(slots):
        if generator.random() < 1 / 60:
            regime = int(generator.integers(3))
        rows.append(levels[regime])
    return np.array(rows)


def _spikes(slots: int, generator: Generator) -> Any:
    """Calm, but for single slots in which one cell has four times as many."""
    chances = np.repeat(_shares(generator, total=0.4)[None], slots, axis=0)
    for slot in np.flatnonzero(generator.random(slots) < 1 / 40):
        chances[slot, generator.integers(_CELLS)] *= 4.0
    return _capped(chances)


def _short_memory(slots: int, generator: Generator) -> Any:
    """What a cell has is pulled back to its level by a third in every slot."""
    state, rows = np.zeros(_CELLS), []
    for _ in range(slots):
        state = 0.67 * state + generator.normal(0.0, 0.25, _CELLS)
        rows.append(state)
    return _capped(_shares(generator, total=0.5) * np.exp(np.array(rows)))


def _swap(slots: int, generator: Generator) -> Any:
    """Two cells change places now and then; sums never show it."""
    row, rows = _shares(generator), []
    for _ in range(slots):
        if generator.random() < 1 / 80:
            one, other = generator.choice(_CELLS, 2, replace=False)
            row = row.copy()
            row[[one, other]] = row[[other, one]]
        rows.append(row)
    return np.array(rows)


def _zipf(slots: int, generator: Generator) -> Any:
    """Twenty cells, few large and many small, with shares drawn anew in every slot."""
    base = 1.0 / np.arange(1, 21) ** 1.2
    return 0.3 * generator.dirichlet(60.0 * base / base.sum(), slots)


def _weekdays(slots: int, generator: Generator) -> Any:
    """Days of 24 slots, five alike and two of another shape."""
    time = np.arange(slots)
    hour, weekend = time % 24, (time // 24) % 7 >= 5
    phases = generator.random((2, _CELLS)) * 24.0
    waves = [np.exp(2.0 * np.cos(2.0 * np.pi * (hour[:, None] - phase) / 24.0)) for phase in phases]
    shape = np.where(weekend[:, None], 0.5 * waves[1], waves[0])
    return _capped(0.12 * _shares(generator) * shape)


def _growth(slots: int, generator: Generator) -> Any:
    """Every cell grows from next to nothing and levels off, each in its own time."""
    time = np.arange(slots)[:, None] / slots
    start, speed = generator.uniform(0.2, 0.8, _CELLS), generator.uniform(8.0, 25.0, _CELLS)
    return _shares(generator, total=0.8) / (1.0 + np.exp(-speed * (time - start)))


def _switches(slots: int, generator: Generator) -> Any:
    """Cells that are open or closed, and change at random, each on its own."""
    open_now, rows = generator.random(_CELLS) < 0.5, []
    for _ in range(slots):
        open_now = open_now ^ (generator.random(_CELLS) < 1 / 30)
        rows.append(open_now)
    return _shares(generator) * np.array(rows)


def _batches(slots: int, generator: Generator) -> Any:
    """People arrive in batches, into one cell at a time, and go one by one."""
    row, rows = np.zeros(_CELLS), []
    for _ in range(slots):
        row = row * 0.96
        if generator.random() < 1 / 15:
            row[generator.integers(_CELLS)] += generator.gamma(2.0, 0.04)
        rows.append(row)
    return _capped(np.array(rows))


def _heavy_tails(slots: int, generator: Generator) -> Any:
    """Levels that hardly move and now and then leap, by factors without a bound, and come back slowly."""
    state, rows = np.zeros(_CELLS), []
    for _ in range(slots):
        state = np.clip(0.98 * state + 0.03 * generator.standard_t(1.6, _CELLS), -5.0, 5.0)
        rows.append(state)
    return _capped(_shares(generator, total=0.4) * np.exp(np.array(rows)))


def _sawtooth(slots: int, generator: Generator) -> Any:
    """Cells fill up at a steady rate and are emptied at once, in periods that nobody declares."""
    period, offset = generator.integers(25, 140, _CELLS), generator.random(_CELLS)
    time = np.arange(slots)[:, None]
    return _shares(generator, total=0.8) * ((time / period + offset) % 1.0)


def _movers(users: int, slots: int, generator: Generator) -> Any:
    """The same people, who stay where they are but for one in fifty, who goes where others like to be."""
    liked = np.append(_shares(generator), 0.4)
    here = generator.multinomial(users, liked)
    rows = []
    for slot in range(slots):
        if slot % 150 == 75:
            liked = np.append(_shares(generator), 0.4)
        leaving = generator.binomial(here, 0.02)
        here = here - leaving + generator.multinomial(leaving.sum(), liked)
        rows.append(here[:-1])
    return np.array(rows)


_CHANCES: dict[str, Callable[[int, Generator], Any]] = {
    "regimes": _regimes,
    "spikes": _spikes,
    "short memory": _short_memory,
    "swap": _swap,
    "zipf": _zipf,
    "weekdays": _weekdays,
    "growth": _growth,
    "switches": _switches,
    "batches": _batches,
    "heavy tails": _heavy_tails,
    "sawtooth": _sawtooth,
}
KINDS = (*_CHANCES, "movers")
