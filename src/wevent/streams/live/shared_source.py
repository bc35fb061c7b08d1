"""Counts from batches that the replicas of a service have taken in: read when their slot has closed, by whoever closes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from wevent.counting.roster import Roster
from wevent.errors import StorageFailed
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.live.closing_clock import ClosingClock
from wevent.streams.live.event_store import EventStore
from wevent.streams.live.open_slot import OpenSlot
from wevent.streams.live.shared_records import SharedRecords
from wevent.streams.live.steady_clock import wall_clock_us
from wevent.streams.source import SlotCounts, Source


class SharedSource(Source):
    """Closes slots by the wall clock after a grace, and counts what all replicas have kept of them.

    `stop` may be called by any thread; the other methods by the one that publishes.

    Args:
        settings: grace and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        store: where events are kept.
        now_us: the wall clock.
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
        self._store = store
        self._closing = ClosingClock(clock, settings.grace_us, now_us)
        self._records = SharedRecords(settings.cells, clock)
        self._stopping = threading.Event()
        self._done = 0  # slots up to this one are counted
        self._forgotten = 0  # and nothing of these is left

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as they close, at most `most`; ends after `stop`.

        Raises:
            JournalUnreachable: if the database does not answer for as long as there is patience.
            StorageFailed: if the first of them cannot be closed; at a later one it ends.
        """
        if self._done < first - 1:
            self._close(first - 1)
            self.forget(first - 1)
        for slot in self._slots(first, most):
            if not self._closing.wait_for(slot, self._stopping):
                return
            try:
                self._close(slot)
            except StorageFailed:
                if slot == first:
                    raise
                return  # of the slots before something was drawn: they are committed, and nothing undoes a draw (spec 10)
            counts = self._read(slot, roster).count(roster, len(self._settings.cells))
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        """The last slot that has closed by the wall clock."""
        return max(self._done, self._closing.closed(self._closing.now()))

    def idle(self, wait_s: float) -> bool:
        """Wait; events go on being received by other threads. After `stop` no longer: the store has what was counted."""
        return self._stopping.wait(wait_s)

    def forget(self, through: int) -> None:
        """Slots up to this one are committed: their events, and the ids of batches that came in them, are removed."""
        if through > self._forgotten:
            self._store.forget(through)
            self._forgotten = through

    def resume(self, position: Any) -> None:
        """Continue after a stored position; whatever is left of slots up to it goes before anything is sent again.

        Raises:
            InvalidSettings: if numbers as times meant something else.
        """
        super().resume(position)
        through = int(position["slot"])
        self._close(through)
        self.forget(through)

    def stop(self) -> None:
        self._stopping.set()

    def _close(self, slot: int) -> None:
        self._store.close_slot(slot)
        self._done = slot

    def _read(self, slot: int, roster: Roster) -> OpenSlot:
        """A slot with the events of its records."""
        opened, other = self._store.read(slot, lambda records: self._opened(roster, records))
        for record in other:  # of a replica that was started with other cells
            if not self._records.knows(record):
                self._records.learn(record, self._store.meaning)
            self._add(opened, record)
        return opened

    def _opened(self, roster: Roster, records: Iterator[bytes]) -> tuple[OpenSlot, list[bytes]]:
        """The events of records; those whose cells are not known yet are left."""
        opened, other = OpenSlot(self._settings.max_cells_per_user), []
        opened.belongs_to(roster)
        for record in records:
            if self._records.knows(record):
                self._add(opened, record)
            else:
                other.append(record)
        return opened, other

    def _add(self, opened: OpenSlot, record: bytes) -> None:
        spooled = self._records.read(record)
        if spooled is not None and len(spooled.events.times):
            opened.add(spooled.events)
