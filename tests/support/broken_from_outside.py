"""Publishers that an audit from outside must call broken, each for one reason, and an honest one beside them.

All publish every slot with the strictest ε / w, as `uniform` does; they are quick, so that a test can make thousands of runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import AuditSubject
from wevent.core.mechanism import Measurement, NoiseSource
from wevent.core.requirements import Population
from wevent.publisher.release import Release

_NOTHING = np.zeros(1, dtype=np.int64)


class EverySlot:
    """Counts and integer Laplace noise, every slot."""

    measured: Measurement | None = None

    def __init__(self, population: Population, cells: int, noise: NoiseSource | None) -> None:
        self.cells, self.slot = cells, 0
        self.window = max(requirement.window for requirement in population.classes)
        self.epsilon = min(requirement.epsilon for requirement in population.classes)
        self.random = self.source()

    def source(self) -> np.random.Generator:
        return np.random.default_rng()

    @property
    def scale(self) -> float:
        return self.window / self.epsilon

    def noise(self, size: int) -> Any:
        """The difference of two geometric numbers is integer Laplace noise."""
        end = -np.expm1(-1.0 / self.scale)
        return self.random.geometric(end, size) - self.random.geometric(end, size)

    def values(self, truth: Any) -> Any:
        return truth + self.noise(self.cells)

    def step(self, counts: Any) -> Release:
        self.slot += 1
        values = np.asarray(self.values(counts.sum(axis=0)), dtype=np.float64)
        return Release(self.slot, values, range(self.cells), "every slot", "fresh", _NOTHING, _NOTHING)


class FloatLaplace(EverySlot):
    def noise(self, size: int) -> Any:
        return self.random.laplace(scale=self.scale, size=size)


class OneNoiseForAllCells(EverySlot):
    def noise(self, size: int) -> Any:
        return super().noise(1)


class WrongBudget(EverySlot):
    @property
    def scale(self) -> float:
        return 1.0 / self.epsilon


class SeededEntropy(EverySlot):
    def source(self) -> np.random.Generator:
        return np.random.default_rng(20260101)


class SaturatedNoise(EverySlot):
    def noise(self, size: int) -> Any:
        return np.clip(super().noise(size), -(2**31), 2**31 - 1)


class NegativeRedrawn(EverySlot):
    def values(self, truth: Any) -> Any:
        values = super().values(truth)
        while (values < 0).any():
            values = np.where(values < 0, super().values(truth), values)
        return values


class StopsOnSomebody(EverySlot):
    def step(self, counts: Any) -> Release:
        if counts[:, 0].sum() % 2:
            raise ArithmeticError
        return super().step(counts)


class RemembersACount(EverySlot):
    """Noise as wide as promised, but what was counted before is in the value, too."""

    before: Any = 0

    def values(self, truth: Any) -> Any:
        values = super().values(truth + self.before)
        self.before = truth
        return values


BROKEN: tuple[type[EverySlot], ...] = (
    FloatLaplace,
    OneNoiseForAllCells,
    WrongBudget,
    SeededEntropy,
    SaturatedNoise,
    NegativeRedrawn,
    StopsOnSomebody,
    RemembersACount,
)


def subject(kind: Callable[..., EverySlot]) -> AuditSubject:
    return AuditSubject(getattr(kind, "__name__", "every slot"), kind)
