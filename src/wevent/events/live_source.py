"""Counts of live events: each slot is read from the event store when it closes, by the wall clock or by close lines.

An event never closes a slot. Slots close in order and never reopen, whatever the wall clock does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wevent.counting.labels import Labels
from wevent.counting.roster import NONE_REJECTED, Counts, Rejected, Roster, last_events
from wevent.errors import JournalUnreachable, StorageFailed
from wevent.events.records import EventStore, RecordCodec
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock, SlotDeadlines, wall_clock_us
from wevent.streams.decoding import EventColumns
from wevent.streams.source import SlotCounts, Source

_log = logging.getLogger("wevent.events.live_source")
_LOOK_S = 0.2  # between looks at the wall clock
_AGAIN_S = 0.5  # between attempts while a fault lasts
_TEXT_WEIGHT = 64  # bytes of ids that take as much room as an event


class LiveSource(Source):
    """Source over an event store that other threads or processes fill.

    `stop` may be called by any thread; the other methods by the one that publishes. Without a last slot it has no end.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        store: EventStore,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        super().__init__(settings, last)
        self._clock, self._store = clock, store
        self._deadlines = SlotDeadlines(clock, settings.grace_us, now_us)
        self._codec = RecordCodec(settings.cells, clock)
        self._stopping = threading.Event()
        self._changed = threading.Condition()  # of totals, and what else threads share
        self._done = 0  # slots up to this one are counted
        self._forgotten = 0  # and nothing of these is left

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as they close, at most `most`; ends with the input, or after `stop`.

        Raises:
            JournalUnreachable: if the database does not answer in time.
            StorageFailed: if the first of them cannot be closed; at a later one it ends.
        """
        if self._done < first - 1:
            self._skip(first - 1)
        for slot in self._slots(first, most):
            if not self._wait_for(slot):
                return
            try:
                self._close(slot)
            except StorageFailed:
                if slot == first:
                    raise
                return  # draws of the slots before are committed: nothing undoes a draw (spec 10)
            counts = self._count(slot, roster)
            if counts is None:
                return
            with self._changed:
                self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        return max(self._done, self._deadlines.closed(self._deadlines.now()))

    def idle(self, wait_s: float) -> bool:
        return self._stopping.wait(wait_s)

    def destroy(self, through: int) -> None:
        self._store.destroy(through)

    def forget(self, through: int) -> None:
        if through > self._forgotten:
            self._store.forget(through)
            self._forgotten = through

    def resume(self, position: Any) -> None:
        super().resume(position)
        self._skip(int(position["slot"]))

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self._stopping.set()
        self._store.close()

    def _skip(self, through: int) -> None:
        """Close slots that are committed, and delete what is left of them."""
        self._close(through)
        self.forget(through)

    def _wait_for(self, slot: int) -> bool:
        """Wait until a slot is closed; returns whether it is, False after `stop` and at the end of the input."""
        while not self._stopping.is_set() and (left_s := self._deadlines.left_s(slot)) > 0:
            self._stopping.wait(min(_LOOK_S, left_s))
        return not self._stopping.is_set()

    def _close(self, slot: int) -> None:
        self._store.close_slot(slot)
        self._done = slot

    def _count(self, slot: int, roster: Roster) -> Counts | None:
        """Count a closed slot; waits for a disk that refuses for a while. None if `stop` was called meanwhile."""
        is_waiting = False
        while True:
            try:
                self._codec.learn(self._store.meanings(self._codec.columns))
                buffer = self._store.read(slot, lambda records: self._fill(roster, records))
                return buffer.count(len(self._settings.cells))
            except StorageFailed as fault:
                if not fault.passing or isinstance(fault, JournalUnreachable):
                    raise
                if not is_waiting:
                    _log.warning("publishing waits until the fault is over: %s", fault)
                is_waiting = True
            if self.idle(_AGAIN_S):
                return None

    def _fill(self, roster: Roster, records: Iterator[bytes]) -> SlotBuffer:
        """Return the events of records."""
        buffer = SlotBuffer(self._settings.max_cells_per_user, roster)
        for record in records:
            events = self._codec.decode(record)
            if events is not None and len(events.times):
                buffer.add(events)
        return buffer


class SlotBuffer:
    """Events of one slot, reduced to those that can still count: the last cells of each user.

    Order of arrival does not matter: of a user's events the latest counts, of those at the same microsecond the one
    in the cell declared last.

    Args:
        limit: number of cells of a user that count.
        roster: users of the slot.
        compact_above: number of events (of long ids: fewer) above which those that cannot count are dropped.
    """

    def __init__(self, limit: int, roster: Roster, *, compact_above: int = 1_000_000) -> None:
        self._limit, self._roster = limit, roster
        self._rejected = NONE_REJECTED
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
        batch = self._sorted()
        counts = self._roster.count_rows(
            self._roster.find(batch.users),
            batch.cells,
            cells,
            max_cells_per_user=self._limit,
            unknown=batch.users.__getitem__,
        )
        return Counts(counts.matrix, counts.reasons.plus(self._rejected))

    def _sorted(self) -> EventColumns:
        self._parts = [EventColumns.joined(self._parts)]
        batch = self._parts[0]
        if (batch.times[1:] <= batch.times[:-1]).any():
            batch = batch.where(np.lexsort((batch.cells, batch.times)))
        return batch

    def _compact(self) -> None:
        """Keep of every id the last `limit` distinct declared cells: what else there is cannot count any more."""
        batch = self._sorted()
        declared = batch.cells >= 0  # first: an event in an undeclared cell takes nobody's place
        batch = batch.where(declared)
        batch = batch.where(self._roster.countable(batch.users))
        self._rejected = self._rejected.plus(Rejected.of(declared, len(batch.times)))
        kept = batch.where(last_events(batch.users.codes(), batch.cells, self._limit))
        self._parts = [kept._replace(users=Labels.joined([kept.users]))]
        self._size = _weight(self._parts[0])
        self._full = max(self._compact_above, 2 * self._size)


def _weight(batch: EventColumns) -> int:
    """Return the room that events take, in events with short ids."""
    return len(batch.times) + int(batch.users.texts.sizes.sum()) // _TEXT_WEIGHT
