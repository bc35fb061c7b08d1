"""What draws cost in every window: the record of an accountant, and its recount."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


class PeerSpending:
    """Draws with the slots they read: a draw costs its budget once in every window that holds one of these slots.

    A release reads its own slot. A run of threshold tests that share their noise reads the slots from its first test to
    its last, and the slot before if tests compare with it; its loss is that of the whole run, however many tests it makes.
    """

    def __init__(self) -> None:
        self._draws: list[tuple[int, int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """First slot, last slot, nano-epsilons."""
        return iter(self._draws)

    def add(self, first: int, last: int, nano: int) -> int:
        """Record a draw that reads the slots from `first` to `last`; its number."""
        self._draws.append((first, last, nano))
        return len(self._draws) - 1

    def stretch(self, number: int, last: int) -> None:
        """The run of this number went on up to slot `last`."""
        first, _, nano = self._draws[number]
        self._draws[number] = first, last, nano

    def worst_window(self, window: int) -> int:
        """The most nano-epsilons that draws cost within any `window` consecutive slots."""
        if not self._draws:
            return 0
        first, last, nano = np.array(self._draws, dtype=np.int64).T
        begins = np.maximum(first - window + 1, 1)  # windows by their first slot
        changes = np.zeros(int(last.max()) + 2, dtype=np.int64)
        np.add.at(changes, begins, nano)
        np.subtract.at(changes, last + 1, nano)
        return int(changes.cumsum().max())
