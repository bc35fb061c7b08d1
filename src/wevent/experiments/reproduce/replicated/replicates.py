"""Repeats of an experiment side by side: what goes into a run, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, FloatArray, IntArray
from wevent.core.requirements import Population
from wevent.experiments.trial import Trial


@dataclass(frozen=True)
class Replicates:
    """R streams with their classes, padded to the same number of classes.

    A padding class has no members and the requirement of the replicate's first class: it changes neither thresholds
    nor budgets.

    Attributes:
        populations: the classes and sizes of each replicate.
        sizes, windows, nanos: n_g, w_g, ε_g (nano) per replicate and class.
        counts: users per slot, replicate, class and cell.
    """

    populations: tuple[Population, ...]
    sizes: IntArray
    windows: IntArray
    nanos: IntArray
    counts: npt.NDArray[np.int32]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Replicates:
        """Stack them."""
        populations = tuple(trial.population for trial in trials)
        width = max(map(len, populations))
        slots, _, cells = trials[0].counts.shape
        stacked = np.zeros((slots, len(populations), width, cells), dtype=np.int32)
        columns = np.zeros((3, len(populations), width), dtype=np.int64)
        for replicate, (population, trial) in enumerate(zip(populations, trials, strict=True)):
            classes = len(population)
            stacked[:, replicate, :classes] = trial.counts
            columns[0, replicate, :classes] = population.sizes
            padded = [*population.classes, *[population.classes[0]] * (width - classes)]
            columns[1, replicate] = [requirement.window for requirement in padded]
            columns[2, replicate] = [requirement.nano for requirement in padded]
        return cls(populations, columns[0], columns[1], columns[2], stacked)

    @property
    def slots(self) -> int:
        """T."""
        return len(self.counts)

    @property
    def cells(self) -> int:
        """d."""
        return int(self.counts.shape[3])

    @cached_property
    def truth(self) -> FloatArray:
        """Users per slot, replicate and cell."""
        truth: FloatArray = self.counts.sum(axis=2, dtype=np.float64)
        return truth

    @property
    def trials(self) -> list[Trial]:
        """Each on its own again, without the padding."""
        return [
            Trial(population, self.counts[:, replicate, : len(population)])
            for replicate, population in enumerate(self.populations)
        ]

    def __len__(self) -> int:
        return len(self.populations)


@dataclass
class ReplicatedRun:
    """What a mechanism published over all slots of all replicates.

    Attributes:
        releases: published value per slot, replicate and cell.
        fresh: whether it was measured in its slot.
        charges: nano-epsilons per slot, replicate and class.
        reach: half the width of the stated 95 % interval, slots × replicates × (1 or cells); NaN where none is stated.
    """

    releases: FloatArray
    fresh: BoolArray
    charges: IntArray
    reach: FloatArray

    @classmethod
    def empty(cls, replicates: Replicates) -> ReplicatedRun:
        """Zeros, nothing fresh, nothing charged."""
        shape = (replicates.slots, len(replicates))
        return cls(
            np.zeros((*shape, replicates.cells)),
            np.zeros(shape, dtype=np.bool_),
            np.zeros((*shape, replicates.sizes.shape[1]), dtype=np.int64),
            np.full((*shape, 1), np.nan),
        )
