"""The events of one open slot of a live stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.counts import NONE_REJECTED, Counts, Rejected
from wevent.counting.label_index import Labels
from wevent.counting.roster import Roster
from wevent.streams.decoding import EventColumns

_TEXT_WEIGHT = 64  # bytes of ids that take as much room as an event


class OpenSlot:
    """The events of a slot that is still open; they are in memory only, and no more of them than can still count.

    Order of arrival does not matter: of a user's events the latest counts, of those at the same microsecond the one
    in the cell declared last.

    Args:
        limit: k, how many cells a user may be in.
        compact_above: with how many events (of long ids: fewer) to forget those that cannot count any more.
        in_order: of events at the same microsecond the one added last counts instead.
    """

    def __init__(self, limit: int, *, compact_above: int = 1_000_000, in_order: bool = False) -> None:
        self._in_order = in_order
        self.rejected = NONE_REJECTED
        self._limit = limit
        self._roster: Roster | None = None
        self._parts: list[EventColumns] = []
        self._size = 0
        self._compact_above = self._full = compact_above

    def add(self, batch: EventColumns) -> None:
        """More events of this slot."""
        self._parts.append(batch)
        self._size += _weight(batch)
        if self._size > self._full:
            self._compact()

    def belongs_to(self, roster: Roster) -> None:
        """From now on it is known who can count: events of others need not be kept."""
        self._roster = roster

    def count(self, roster: Roster, cells: int) -> Counts:
        """The slot's counts with this roster."""
        if not self._parts:
            nothing = np.zeros((len(roster.population), cells), dtype=np.int64)
            return Counts(nothing, self.rejected)
        batch = self._sorted()
        counts = roster.count_rows(
            roster.find(batch.users),
            batch.cells,
            cells,
            max_cells_per_user=self._limit,
            unknown=batch.users.__getitem__,
        )
        return Counts(counts.matrix, counts.reasons.plus(self.rejected))

    def dump(self) -> list[Any]:
        """Plain values for `load`."""
        batch = self._joined()
        return [batch.times.tobytes(), batch.users.values(), batch.cells.tobytes(), list(self.rejected)]

    @classmethod
    def load(cls, limit: int, saved: Sequence[Any], cells_declared: int) -> OpenSlot:
        """A slot with the events of `dump`."""
        slot = cls(limit)
        slot.rejected = Rejected(*saved[3])
        if not all(type(number) is int and number >= 0 for number in slot.rejected):
            raise ValueError("numbers of events that are none")
        times, cells = (np.frombuffer(data, dtype=np.int64).copy() for data in (saved[0], saved[2]))
        users = Labels.of_values(list(saved[1]))
        if not len(times) == len(users) == len(cells):
            raise ValueError("columns of different lengths")
        if ((cells < -1) | (cells >= cells_declared)).any():
            raise ValueError("a cell that there is not")
        slot.add(EventColumns(times, users, cells))
        return slot

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
        if self._roster is not None:
            batch = batch.where(self._roster.countable(batch.users))
        self.rejected = self.rejected.plus(Rejected.of(declared, len(batch.times)))
        kept = latest(batch.users.codes(), batch.cells, self._limit)
        self._parts = [EventColumns(batch.times[kept], Labels.joined([batch.users[kept]]), batch.cells[kept])]
        self._size = _weight(self._parts[0])
        self._full = max(self._compact_above, 2 * self._size)


def latest(owners: IntArray, cells: IntArray, limit: int) -> IntArray:
    """Which events, given in time order, hold the last `limit` distinct cells of their owner; ascending."""
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
    """How much room events take, in events with short ids."""
    return len(batch.times) + int(batch.users.texts.sizes.sum()) // _TEXT_WEIGHT
