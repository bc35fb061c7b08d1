"""PeGaSus and AdaPub, corrected: every slot is measured, and slots that look alike are smoothed together."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.experiments.baselines.accountant import BaselineAccountant, BaselineNoise


class SlotGroup:
    """The slots of one cell that are published together.

    Args:
        threshold_noise: drawn when the group begins.

    Attributes:
        size: how many slots.
        strangeness: how far each slot was from what was published before it, relatively; for AdaPub.
        threshold_noise: the same.
    """

    def __init__(self, threshold_noise: int) -> None:
        self.size = 0
        self.strangeness: list[float] = []
        self.threshold_noise = threshold_noise
        self._counts = np.zeros(16, dtype=np.int64)
        self._measured: list[int] = []  # ascending

    def join(self, count: int, measured: int, strangeness: float) -> None:
        """Add a slot: its true count and its noisy one."""
        self._place(count)
        self.size += 1
        insort(self._measured, measured)
        self.strangeness.append(strangeness)

    def deviation(self, count: int) -> int:
        """Return Σ|x − mean| over the group and one more slot, times how many they are: a whole number."""
        self._place(count)
        values = self._counts[: self.size + 1]
        return int(np.add.reduce(np.abs(len(values) * values - np.add.reduce(values))))

    def _place(self, count: int) -> None:
        if self.size == len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._counts[self.size] = count

    def median(self) -> float:
        return (self._measured[(self.size - 1) // 2] + self._measured[self.size // 2]) / 2.0


Limit = Callable[[SlotGroup, float], float]
"""θ: how far counts of a group may be from their mean, in sum, from the group and the strangeness of a slot."""


class SlotGroups:
    """Per cell: ε/w in every slot, four fifths for a measurement, one for the test whether the slot joins the group.

    The test of Σ|x − mean| over the group and the new slot reads all their true counts, and tests of one group share the
    noise of its threshold. A change of one slot's count moves the sum by less than 2 and concerns one group only, so what
    a slot loses to grouping is paid in that slot.

    Args:
        cells: d.
        accountant: of the requirement that all share.
        noise: for measurements, thresholds and tests.
        limit: θ.
    """

    def __init__(self, cells: int, accountant: BaselineAccountant, noise: BaselineNoise, limit: Limit) -> None:
        self._cells, self._accountant, self._noise, self._limit = cells, accountant, noise, limit
        self._for_tests, self._for_values = _shares(accountant)
        self._slot = 0
        self._published = np.zeros(cells)
        self._groups: list[SlotGroup | None] = [None] * cells

    def step(self, counts: IntArray) -> tuple[FloatArray, bool]:
        self._slot += 1
        charge = self._accountant.release(self._slot, self._for_values)  # everybody, four fifths of ε/w
        measured = counts + self._noise.laplace(charge, 1, self._cells)
        if not self._for_tests:
            return measured.astype(np.float64), True
        testing = self._accountant.release(self._slot, self._for_tests)  # and a fifth
        strangeness = np.abs(self._published - measured) / np.maximum(measured, 1)
        # Half of it for the threshold (2Δ/g), half for the test (4Δ/g), with Δ = 2. Deviations are multiplied by the number
        # of slots, which makes them whole numbers; so is their noise.
        sizes = [1 if group is None else group.size + 1 for group in self._groups]
        tests = self._noise.laplace(testing, 8 * np.array(sizes), self._cells).tolist()
        begins = None in self._groups
        thresholds = self._noise.laplace(testing, 4, self._cells).tolist() if begins else [0] * self._cells
        rows = zip(counts.tolist(), measured.tolist(), strangeness.tolist(), tests, thresholds, strict=True)
        self._published = np.array([self._publish(cell, *row) for cell, row in enumerate(rows)])
        return self._published.copy(), True

    def _publish(self, cell: int, count: int, measured: int, strangeness: float, test: int, threshold: int) -> float:
        group = self._groups[cell]
        if group is None:
            group = self._groups[cell] = SlotGroup(threshold)
        elif not self._joins(group, count, strangeness, test):
            self._groups[cell] = None
            return float(measured)
        group.join(count, measured, strangeness)
        return group.median()

    def _joins(self, group: SlotGroup, count: int, strangeness: float, test: int) -> bool:
        limit = self._limit(group, strangeness) + group.threshold_noise
        return group.deviation(count) + test < (group.size + 1) * limit


def _shares(accountant: BaselineAccountant) -> tuple[int, int]:
    """Return the nano-epsilons that a slot pays for its test and for its measurement."""
    per_slot = accountant.requirement.nano // accountant.requirement.window
    return per_slot // 5, per_slot - per_slot // 5


def pegasus(cells: int, accountant: BaselineAccountant, noise: BaselineNoise) -> SlotGroups:
    """Perturb, group, smooth, with θ = 5/g, g the payment of a slot for its test.

    Corrected: every cell has groups of its own, and the noisy comparison is made without absolute values.
    """
    limit = 5.0 * NANO / max(_shares(accountant)[0], 1)
    return SlotGroups(cells, accountant, noise, lambda group, strangeness: limit)


def adapub(cells: int, accountant: BaselineAccountant, noise: BaselineNoise) -> SlotGroups:
    """θ = max(1, π²/ε), π = 0.9·f + 0.1·mean f of the group, f the strangeness of the slot: from noisy values only.

    Corrected, without its pivots: slots really join groups; public code starts a new one in every slot.
    """
    epsilon = accountant.requirement.epsilon

    def limit(group: SlotGroup, strangeness: float) -> float:
        mean = (sum(group.strangeness) + strangeness) / (group.size + 1)
        return max(1.0, (0.9 * strangeness + 0.1 * mean) ** 2 / epsilon)

    return SlotGroups(cells, accountant, noise, limit)
