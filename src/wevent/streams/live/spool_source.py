"""Counts from batches that are handed over one by one and acknowledged: what an HTTP service is fed with.

Slots close by the wall clock after a grace and by nothing else. An event counts if it was received before its slot closed,
by this clock; after a standstill slots that closed meanwhile stay closed. What a sender is told is a function of their
batch, the clock and public settings alone: whether people are registered, and what others sent, never shows (spec 1, 10).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wevent.counting.roster import Roster
from wevent.errors import ServiceStopping
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import EventColumns
from wevent.streams.live.batch_records import Spooled
from wevent.streams.live.batch_sorting import BatchKey, BatchSorter, ReadBatch, batch_conflict
from wevent.streams.live.closing_clock import ClosingClock
from wevent.streams.live.open_slot import OpenSlot
from wevent.streams.live.spool import Spool
from wevent.streams.live.steady_clock import wall_clock_us
from wevent.streams.source import SlotCounts, Source


@dataclass
class _Seen:
    """A batch that came before, as long as the slot lasts that was open then."""

    digest: bytes
    answer: BatchResult | None = None
    slots: set[int] = field(default_factory=set)  # whose files have their part of it
    number: int = 0  # of its last record, to force to disk


class SpoolSource(Source):
    """Counts batches of lines `{"time": …, "user": …, "cell": …}`, each durable before it is acknowledged.

    `receive` may be called by any thread; the other methods by the one that publishes.

    Args:
        settings: grace, names and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        folder: where events of open slots are kept.
        now_us: the wall clock.

    Raises:
        StorageFailed: if the folder cannot be used.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        folder: Path,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        super().__init__(settings, last)
        self._closing = ClosingClock(clock, settings.grace_us, now_us)
        self._sorter = BatchSorter(settings, clock, last)
        self._spool = Spool(folder, settings.cells, clock)
        self._lock = threading.Lock()  # of everything below
        self._stopping = threading.Event()
        self._done = 0  # slots up to this one are counted
        self._open: dict[int, OpenSlot] = {}
        self._seen: dict[BatchKey, _Seen] = {}
        self._awaited: tuple[int, Roster | None] = 0, None  # the slot that is counted next, and who can count in it
        self._loaded = False

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        """Take a batch in; returns once its events are on disk.

        Args:
            sender: whose batch ids these are.
            batch: the id; the same one again has no effect but gets the same answer. None: its content is its id.
            lines: whole lines, each with its end.

        Raises:
            BatchConflict: if the id stands for other content.
            StorageFailed: if events cannot be kept; they were not accepted.
            ServiceStopping: after `stop`.
        """
        read = self._sorter.read(sender, batch, lines)
        self._spool.recover()
        with self._lock:
            self._refuse_when_over()
            seen = self._seen.get(read.key)
            if seen is None:
                seen = _Seen(read.digest)
            elif seen.digest != read.digest:
                raise batch_conflict()
            if seen.answer is None:
                seen.answer = self._take(seen, read)
                self._seen[read.key] = seen
            answer, number = seen.answer, seen.number
        self._spool.force(number)
        return answer

    def probe(self) -> None:
        """Check that batches can be stored.

        Raises:
            StorageFailed: if they cannot.
        """
        self._spool.probe()

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as they close, at most `most`; ends after `stop`."""
        self._load(first - 1)
        self.forget(first - 1)
        for slot in self._slots(first, most):
            with self._lock:
                self._awaited = slot, roster
                if slot in self._open:
                    self._open[slot].belongs_to(roster)
            if not self._wait_for(slot):
                return
            with self._lock:
                self._done = slot  # from here on whatever comes for it is late
                opened = self._open.pop(slot, None) or OpenSlot(self._settings.max_cells_per_user)
            counts = opened.count(roster, len(self._settings.cells))
            with self._lock:
                self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        """The last slot that has closed by the wall clock."""
        with self._lock:
            return self._closed(self._closing.now())

    def idle(self, wait_s: float) -> bool:
        """Wait; events go on being received by other threads. After `stop` no longer: the files have what was counted."""
        return self._stopping.wait(wait_s)

    def forget(self, through: int) -> None:
        """Slots up to this one are committed: their events, and the ids of batches that came in them, are removed."""
        self._spool.forget(through)
        with self._lock:
            self._done = max(self._done, through)
            for slot in [slot for slot in self._open if slot <= through]:
                del self._open[slot]
            for key, seen in list(self._seen.items()):
                seen.slots = {slot for slot in seen.slots if slot > through}
                if not seen.slots:
                    del self._seen[key]

    def resume(self, position: Any) -> None:
        """Continue after a stored position: what comes for slots up to it is late.

        Raises:
            InvalidSettings: if numbers as times meant something else.
        """
        super().resume(position)
        self._load(int(position["slot"]))

    def stop(self) -> None:
        """Refuse further batches and make `count` end with what has closed; safe from signal handlers."""
        self._stopping.set()

    def close(self) -> None:
        """Close the files; what they hold is counted by the next run."""
        self._stopping.set()
        with self._lock:  # whoever was taking a batch in has written it; whoever comes now is refused
            self._spool.close()

    def totals(self) -> dict[str, int]:
        with self._lock:
            return super().totals()

    def _refuse_when_over(self) -> None:
        if self._stopping.is_set() or not self._loaded:
            raise ServiceStopping(
                "a service that takes events", "one that is starting or stopping", "Send the same batch again soon."
            )

    def _closed(self, now_us: int) -> int:
        """The last slot that is closed at a moment; under the lock."""
        return max(self._done, self._closing.closed(now_us))

    def _wait_for(self, slot: int) -> bool:
        """Wait until a slot has closed; whether it has, False after `stop`."""
        return self._closing.wait_for(slot, self._stopping)

    def _load(self, committed: int) -> None:
        """Take back what earlier runs acknowledged, once; files of committed slots are removed."""
        if self._loaded:
            return
        with self._lock:
            self._done = max(self._done, committed)
            for slot, spooled in self._spool.load(committed):
                key = spooled.sender, spooled.batch
                seen = self._seen.setdefault(key, _Seen(spooled.digest))
                seen.slots.add(slot)
                seen.answer = spooled.answer or seen.answer
                self._add(slot, spooled.events)
            self._loaded = True

    def _take(self, seen: _Seen, read: ReadBatch) -> BatchResult:
        """Sort a batch's events into slots, write them down, and say what became of them; under the lock.

        Parts that are written already (a crash came between them) are neither written nor counted again.
        """
        now_us = self._closing.now()
        batch = self._sorter.sort(read, self._closing.begun(now_us), self._closed(now_us))
        for slot, part in batch.parts.items():
            if slot in seen.slots:
                continue
            told = batch.answer if slot == batch.home else None
            seen.number = self._spool.append(slot, Spooled(*read.key, seen.digest, told, part))
            seen.slots.add(slot)
            self._seen[read.key] = seen  # a part is there, whatever becomes of the others
            self._add(slot, part)
        batch.note(self._uncounted)
        return batch.answer

    def _add(self, slot: int, events: EventColumns) -> None:
        """Events of an open slot, in memory; under the lock."""
        if not len(events.times):
            return
        opened = self._open.get(slot)
        if opened is None:
            opened = self._open[slot] = OpenSlot(self._settings.max_cells_per_user)
            if slot == self._awaited[0] and self._awaited[1] is not None:
                opened.belongs_to(self._awaited[1])
        opened.add(events)
