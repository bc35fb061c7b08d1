"""Counts of live events: each slot is read from the event store when it closes, by the wall clock or by close lines.

An event never closes a slot. Slots close in order and never reopen, whatever the wall clock does.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.errors import JournalUnreachable, StorageFailed
from wevent.events.event_store import EventStore
from wevent.events.pipe import PipeReader
from wevent.events.records import RecordCodec
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.slot_buffer import SlotBuffer
from wevent.streams.source import SlotCounts, Source
from wevent.streams.steady_clock import SlotDeadlines, wall_clock_us

_log = logging.getLogger("wevent.events.live_source")
_LOOK_S = 0.2  # between looks at the wall clock
_AGAIN_S = 0.5  # between attempts while a fault lasts


class LiveSource(Source):
    """Source over an event store.

    `stop` may be called by any thread; the other methods by the one that publishes.

    Args:
        settings: grace and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        store: where events are.
        pipe: input that this source closes slots for; None: other threads or processes take events in.
        now_us: the wall clock.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        store: EventStore,
        pipe: PipeReader | None = None,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        super().__init__(settings, last)
        self._store, self._pipe = store, pipe
        self._deadlines = SlotDeadlines(clock, settings.grace_us, now_us)
        self._codec = RecordCodec(settings.cells, clock)
        self._stopping = threading.Event()
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
        if self._pipe is not None:
            self._pipe.start()
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
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        if self._pipe is not None:
            return self._pipe.closed_through()
        return max(self._done, self._deadlines.closed(self._deadlines.now()))

    def idle(self, wait_s: float) -> bool:
        if self._pipe is not None and not self._stopping.is_set():
            self._pipe.rest(wait_s)
            return self._stopping.is_set()
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
        if self._pipe is not None:
            self._pipe.begun = max(self._pipe.begun, int(position.get("begun", 0)))

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self._stopping.set()
        try:
            if self._pipe is not None:
                self._pipe.close()
        finally:
            self._store.close()

    def totals(self) -> dict[str, int]:
        totals = Counter(super().totals())
        if self._pipe is not None:
            totals.update(self._pipe.totals())
        return dict(totals)

    def first_malformed(self) -> list[str]:
        return [] if self._pipe is None else self._pipe.first_malformed()

    def _position(self, slot: int) -> dict[str, Any]:
        position = super()._position(slot)
        return position if self._pipe is None else {**position, "begun": self._pipe.begun}

    def _skip(self, through: int) -> None:
        """Close slots that are committed, and delete what is left of them."""
        if self._pipe is not None:
            self._pipe.skip(through)
        self._close(through)
        self.forget(through)

    def _wait_for(self, slot: int) -> bool:
        """Wait until a slot is closed; returns whether it is, False after `stop` and at the end of the input."""
        if self._pipe is not None:
            return self._pipe.wait_for(slot, self._stopping)
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
                return self._read(slot, roster).count(len(self._settings.cells))
            except StorageFailed as fault:
                if not fault.passing or isinstance(fault, JournalUnreachable):
                    raise
                if not is_waiting:
                    _log.warning("publishing waits until the fault is over: %s", fault)
                is_waiting = True
            if self.idle(_AGAIN_S):
                return None

    def _read(self, slot: int, roster: Roster) -> SlotBuffer:
        """Return the events of the records of a slot."""
        buffer, others = self._store.read(slot, lambda records: self._fill(roster, records))
        for record in others:  # of a replica or an earlier run with other cells
            if not self._codec.is_known(record):
                self._codec.learn(record, self._store.meaning)
            self._add(buffer, record)
        return buffer

    def _fill(self, roster: Roster, records: Iterator[bytes]) -> tuple[SlotBuffer, list[bytes]]:
        """Return the events of records, and the records whose meaning is not known yet."""
        buffer, others = SlotBuffer(self._settings.max_cells_per_user, roster), []
        for record in records:
            if self._codec.is_known(record):
                self._add(buffer, record)
            else:
                others.append(record)
        return buffer, others

    def _add(self, buffer: SlotBuffer, record: bytes) -> None:
        events = self._codec.decode(record)
        if events is not None and len(events.times):
            buffer.add(events)
