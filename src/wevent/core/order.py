"""Order of classes by strictness: A is at least as strict as B if w_A ≥ w_B and ε_A ≤ ε_B (spec 15.1).

A user with several requirements is counted in one class that is at least as strict as each of them. All of them hold if no
slot charges a stricter class more than a looser one: rule 3, which the ledger enforces with the two methods here.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from wevent.core.arrays import IntArray, any_true, frozen_copy

_MOST = np.iinfo(np.int64).max


class StrictnessOrder:
    """Strictness among some rows of a ledger. Other rows bind no row and keep their values.

    Args:
        windows: w per row of the ledger.
        epsilons: ε per row, nano-epsilons.
        rows: indices of the rows that the order binds.
    """

    __slots__ = ("_by_window", "_epsilons", "_looser", "_stricter")

    def __init__(self, windows: IntArray, epsilons: IntArray, rows: IntArray) -> None:
        rows = rows[np.lexsort((-epsilons[rows], windows[rows]))]  # every row after all looser ones
        self._stricter, self._looser = _find_covering_pairs(epsilons[rows], rows)
        distinct, columns = np.unique(-epsilons[rows], return_inverse=True)  # stricter to the right
        self._epsilons = len(distinct)
        starts = np.flatnonzero(np.diff(windows[rows], prepend=0)).tolist()
        self._by_window = [(rows[i:j], columns[i:j]) for i, j in pairwise([*starts, len(rows)])]

    def lower(self, offers: IntArray) -> IntArray:
        """Return the offers with each row lowered to the smallest offer among itself and all looser rows."""
        if not self._is_violated(offers):
            return offers
        lowered, smallest = offers.copy(), np.full(self._epsilons, _MOST)  # by ε, of the windows so far
        for rows, columns in self._by_window:
            smallest[columns] = np.minimum(smallest[columns], offers[rows])
            smallest = np.minimum.accumulate(smallest)
            lowered[rows] = smallest[columns]
        return frozen_copy(lowered)

    def raise_charges(self, charges: IntArray) -> IntArray:
        """Return the charges with each row raised to the largest charge among itself and all stricter rows."""
        if not self._is_violated(charges):
            return charges
        raised, largest = charges.copy(), np.zeros(self._epsilons, dtype=np.int64)
        for rows, columns in reversed(self._by_window):
            largest[columns] = np.maximum(largest[columns], charges[rows])
            largest = np.maximum.accumulate(largest[::-1])[::-1]
            raised[rows] = largest[columns]
        return frozen_copy(raised)

    def _is_violated(self, values: IntArray) -> bool:
        return bool(self._looser.size) and any_true(values.take(self._stricter) > values.take(self._looser))


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
