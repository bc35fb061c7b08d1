"""A noise source whose publish/skip decisions are written down, and short ways to permits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from wevent import Population, Publisher, Release, Requirement
from wevent.core.ledger import Ledger
from wevent.core.permit import Permit

HUGE = 2**40


class ScriptedNoise:
    """Adds nothing, keeps everyone; a draw of size one (the probe's) is hugely positive or negative as scripted."""

    seeded = True

    def __init__(self, decisions: Iterable[bool]) -> None:
        self._decisions: Iterator[bool] = iter(decisions)

    def laplace(self, permit, size):
        if size == 1:
            return np.array([HUGE if next(self._decisions) else -HUGE], dtype=np.int64)
        return np.zeros(size, dtype=np.int64)

    def binomial(self, counts, permit):
        return counts.copy()

    def respond(self, counts, permit):
        return counts.copy()


def permit_for(
    budgets: list[int], sizes: list[int], *, sensitivity: int = 1, cells_per_user: int = 1, level: int = 0
) -> Permit:
    """A permit with these budgets (nano-epsilons), from a ledger of as many one-slot classes of epsilon up to 50."""
    population = Population({Requirement(1, 50 - row / 1000): size for row, size in enumerate(reversed(sizes))})
    ledger = Ledger(population, sensitivity=sensitivity, cells_per_user=cells_per_user)
    permit = ledger.reserve(None, np.array(budgets, dtype=np.int64), level).publication
    assert permit is not None
    return permit


def publish(mechanism: str, epsilons: dict[int, int], script: str, **options: object) -> list[Release]:
    """Releases for a script of P (publish) and s (skip): window → nano-epsilons, ten users per class, two cells."""
    population = Population({Requirement.from_nano(window, nano): 10 for window, nano in epsilons.items()})
    noise = ScriptedNoise(letter == "P" for letter in script if letter != "-")
    publisher = Publisher(population, cells=2, mechanism=mechanism, noise=noise, **options)  # type: ignore[arg-type]
    counts = np.full((len(epsilons), 2), 3)
    return [publisher.step(counts) for _ in script]
