"""Order of classes by strictness: A is at least as strict as B if w_A ≥ w_B and ε_A ≤ ε_B (spec 15.1).

A user with several requirements is counted in one class that is at least as strict as each of them. All of them hold if no
slot charges a stricter class more than a looser one: rule 3, which the ledger enforces with the two methods here.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from wevent.core.arrays import IntArray, any_true, frozen_copy

_CELLS = 1 << 20  # windows × epsilons of one grid, which bounds memory
_MOST = np.iinfo(np.int64).max


class StrictnessOrder:
    """Strictness among some rows of a ledger. Other rows bind no row and keep their values.

    Args:
        windows: w per row of the ledger.
        epsilons: ε per row, nano-epsilons.
        rows: indices of the rows that the order binds.
    """

    __slots__ = ("_blocks", "_looser", "_stricter", "_width")

    def __init__(self, windows: IntArray, epsilons: IntArray, rows: IntArray) -> None:
        rows = rows[np.lexsort((-epsilons[rows], windows[rows]))]  # every row after all looser ones
        self._stricter, self._looser = _find_covering_pairs(epsilons[rows], rows)
        # a grid of the distinct windows, ascending, and the distinct epsilons, descending: stricter is down and right
        lines = np.unique(windows[rows], return_inverse=True)[1]
        columns = np.unique(-epsilons[rows], return_inverse=True)[1]
        self._width = int(columns.max(initial=0)) + 1
        height = max(1, _CELLS // self._width)
        ends = np.searchsorted(lines, np.arange(0, len(lines) + height, height)).tolist()
        blocks = [slice(*both) for both in pairwise(ends)]
        self._blocks = [(rows[one], lines[one] % height, columns[one]) for one in blocks if one.start < one.stop]

    def lower(self, offers: IntArray) -> IntArray:
        """Return the offers with each row lowered to the smallest offer among itself and all looser rows."""
        return self._scan(offers, np.minimum, _MOST, 1)

    def raise_charges(self, charges: IntArray) -> IntArray:
        """Return the charges with each row raised to the largest charge among itself and all stricter rows."""
        return self._scan(charges, np.maximum, 0, -1)

    def _scan(self, values: IntArray, reduce: np.ufunc, neutral: int, step: int) -> IntArray:
        """Return the values with each row reduced over the rows up and left of it; over those down and right for step −1."""
        if not self._looser.size or not any_true(values.take(self._stricter) > values.take(self._looser)):
            return values
        scanned, edge = values.copy(), np.full(self._width, neutral)
        for rows, lines, columns in self._blocks[::step]:
            grid = np.full((int(lines[-1]) + 1, self._width), neutral)
            grid[lines, columns] = values[rows]
            grid = grid[::step]
            grid[0] = reduce(grid[0], edge)
            grid = reduce.accumulate(grid)
            edge = grid[-1]
            scanned[rows] = reduce.accumulate(grid[:, ::step], axis=1)[::step, ::step][lines, columns]
        return frozen_copy(scanned)


@lru_cache(maxsize=16)  # sizes change more often than classes
def find_order(windows: bytes, epsilons: bytes, charged: bytes) -> StrictnessOrder:
    """Return the order of the charged rows; the arguments are the bytes of arrays with an entry per row."""
    rows = np.flatnonzero(np.frombuffer(charged, np.bool_))
    return StrictnessOrder(np.frombuffer(windows, np.int64), np.frombuffer(epsilons, np.int64), rows)


def _find_covering_pairs(epsilons: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the stricter and the looser row of each pair without a row in between: values ordered there are ordered.

    Rows ascend by window, those of one window descend by ε. From a row back, each looser row with a new smallest ε is next.
    """
    stricter, looser = [], []
    for place in range(len(rows)):
        before = epsilons[:place][::-1]
        before = np.where(before >= epsilons[place], before, _MOST)
        smallest = np.minimum.accumulate(np.append(_MOST, before))
        next_ones = place - 1 - np.flatnonzero(before < smallest[:-1])
        looser.append(rows[next_ones])
        stricter.append(np.full(len(next_ones), rows[place]))
    return np.concatenate(stricter), np.concatenate(looser)
