"""Streams without memory: what a slot holds says nothing about the next one.

A publisher can learn their level and how much they flicker, never where they are now; only a measurement tells that.
"""

from typing import Any

import numpy as np

from benchmarks.hard_streams import class_sizes

KINDS = ("shares", "presence")

_CONCENTRATION = 30.0
"""Of the Dirichlet law of a slot's shares: a cell with a fifth of all has a share of 0.2 ± 0.07."""
_PRESENT = 0.6
_PRESENCE = (3.0, 2.0)
"""Of the Beta law of presence: 0.6 ± 0.2."""


def memoryless(
    kind: str, *, users: int, classes: int, seed: int, slots: int = 1000, cells: int = 5, sizes: Any = None
) -> tuple[Any, Any]:
    """Counts (slots, classes, cells) and class sizes; users draw their cells anew in every slot.

    `sizes` are the classes' own, equal ones if None.
    """
    generator = np.random.default_rng([5, KINDS.index(kind), seed])
    held = class_sizes(users, classes) if sizes is None else np.asarray(sizes)
    chances = slot_chances(kind, slots, cells, generator)
    answers = np.concatenate([chances, np.maximum(0.0, 1.0 - chances.sum(axis=1, keepdims=True))], axis=1)
    answers /= answers.sum(axis=1, keepdims=True)
    counts = [generator.multinomial(size, answers)[:, :cells] for size in held]
    return np.stack(counts, axis=1).astype(np.int64), held


def slot_chances(kind: str, slots: int, cells: int, generator: np.random.Generator) -> Any:
    """Where a user is: slots × cells, the rest of the probability is absence."""
    base = generator.dirichlet(np.full(cells, 2.0))
    if kind == "shares":  # as many come, to other cells in every slot
        return _PRESENT * generator.dirichlet(_CONCENTRATION * base, slots)
    if kind == "presence":  # the same shares, how many come is drawn anew
        return generator.beta(*_PRESENCE, slots)[:, None] * base
    raise ValueError(f"no memoryless stream {kind!r}")
