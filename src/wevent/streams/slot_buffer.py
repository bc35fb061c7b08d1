"""Events of one slot, reduced to those that can still count."""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.counts import NONE_REJECTED, Counts, Rejected
from wevent.counting.label_index import Labels
from wevent.counting.roster import Roster
from wevent.streams.decoding import EventColumns

_TEXT_WEIGHT = 64  # bytes of ids that take as much room as an event


class SlotBuffer:
    """Events of one slot: the last cells of each user.

    Order of arrival does not matter: of a user's events the latest counts, of those at the same microsecond the one
    in the cell declared last.

    Args:
        limit: number of cells of a user that count.
        roster: users of the slot; events of others are not kept.
        compact_above: number of events (of long ids: fewer) above which those that cannot count are dropped.
        in_order: of events at the same microsecond the one added last counts instead.
    """

    def __init__(self, limit: int, roster: Roster, *, compact_above: int = 1_000_000, in_order: bool = False) -> None:
        self._in_order = in_order
        self.rejected = NONE_REJECTED
        self._limit = limit
        self._roster = roster
        self._parts: list[EventColumns] = []
        self._size = 0
        self._compact_above = self._full = compact_above

    def add(self, batch: EventColumns) -> None:
        """Add events of this slot."""
        self._parts.append(batch)
        self._size += _weight(batch)
        if self._size > self._full:
            self._compact()

    def count(self, cells: int) -> Counts:
        """Return the counts of the slot."""
        if not self._parts:
            nothing = np.zeros((len(self._roster.population), cells), dtype=np.int64)
            return Counts(nothing, self.rejected)
        batch = self._sorted()
        counts = self._roster.count_rows(
            self._roster.find(batch.users),
            batch.cells,
            cells,
            max_cells_per_user=self._limit,
            unknown=batch.users.__getitem__,
        )
        return Counts(counts.matrix, counts.reasons.plus(self.rejected))

    def _joined(self) -> EventColumns:
        self._parts = [EventColumns.joined(self._parts)]
        return self._parts[0]

    def _sorted(self) -> EventColumns:
        batch = self._joined()
        if self._in_order:
            return batch.by_time()
        if (batch.times[1:] <= batch.times[:-1]).any():
            batch = batch.where(np.lexsort((batch.cells, batch.times)))
        return batch

    def _compact(self) -> None:
        """Keep of every id the last `limit` distinct declared cells: what else there is cannot count any more."""
        batch = self._sorted()
        declared = batch.cells >= 0  # first: an event in an undeclared cell takes nobody's place
        batch = batch.where(declared)
        batch = batch.where(self._roster.countable(batch.users))
        self.rejected = self.rejected.plus(Rejected.of(declared, len(batch.times)))
        kept = latest(batch.users.codes(), batch.cells, self._limit)
        self._parts = [EventColumns(batch.times[kept], Labels.joined([batch.users[kept]]), batch.cells[kept])]
        self._size = _weight(self._parts[0])
        self._full = max(self._compact_above, 2 * self._size)


def latest(owners: IntArray, cells: IntArray, limit: int) -> IntArray:
    """Return the events, given in time order, that hold the last `limit` distinct cells of their owner; ascending."""
    owners, cells = owners[::-1], cells[::-1]  # latest first
    if limit == 1:
        return np.sort(len(owners) - 1 - np.unique(owners, return_index=True)[1])
    _, codes = np.unique(owners, return_inverse=True)
    _, first = np.unique(codes * (int(cells.max(initial=0)) + 1) + cells, return_index=True)
    first.sort()
    order = first[codes[first].argsort(kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    kept = order[np.arange(len(order)) - np.repeat(starts, lengths) < limit]
    kept.sort()
    chosen: IntArray = len(owners) - 1 - kept[::-1]
    return chosen


def _weight(batch: EventColumns) -> int:
    """Return the room that events take, in events with short ids."""
    return len(batch.times) + int(batch.users.texts.sizes.sum()) // _TEXT_WEIGHT
