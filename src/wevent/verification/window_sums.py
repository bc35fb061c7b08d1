"""Adding up what a class was charged, window by window: plain sums, exact, without tolerance (spec 1 and 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NANO = 1_000_000_000
"""Charges are whole billionths of epsilon."""


class Overspent(NamedTuple):
    """A window that holds more than it may; `slot` is its last slot."""

    slot: int
    spend: int
    limit: int


class WindowSums:
    """The spend of every window of one class, fed slot by slot in stretches.

    Args:
        window: w, in slots.
        limit: ε in nano-epsilons.

    Attributes:
        worst: the largest spend of any window so far.
    """

    def __init__(self, window: int, limit: int) -> None:
        self.window, self.limit = window, limit
        self.worst = 0
        self._next: int | None = None
        self._tail = np.zeros(0, dtype=np.int64)  # the charges of the last w − 1 slots

    def feed(self, first: int, charges: npt.NDArray[np.int64]) -> list[Overspent]:
        """Add the charges of slots first, first + 1, …; slots that were left out charged nothing.

        A charge above the limit is a finding by itself and is counted as limit + 1, so that no sum can overflow.
        """
        gap = 0 if self._next is None else min(first - self._next, self.window)
        before = np.concatenate((self._tail, np.zeros(gap, dtype=np.int64)))[-(self.window - 1) :]
        before = before if self.window > 1 else before[:0]
        sums = np.concatenate(([0], np.cumsum(np.concatenate((before, np.minimum(charges, self.limit + 1))))))
        ends = np.arange(len(before) + 1, len(sums))
        spends = sums[ends] - sums[np.maximum(ends - self.window, 0)]
        self._tail = np.concatenate((before, charges))[-(self.window - 1) :] if self.window > 1 else self._tail
        self._next = first + len(charges)
        self.worst = max(self.worst, int(spends.max(initial=0)))
        over = np.flatnonzero(spends > self.limit)
        return [Overspent(first + int(index), int(spends[index]), self.limit) for index in over.tolist()]
