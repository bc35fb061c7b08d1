"""Live sources for tests: input as a script has it, events in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from wevent.events.live_source import LiveSource, PipeSource
from wevent.events.receiver import BatchReceiver
from wevent.events.records import RecordCodec, StoredBatch
from wevent.events.segment_log import SegmentLog
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock

Result = TypeVar("Result")


class MemoryStore:
    """An event store that forgets nothing but what it is told to forget."""

    def __init__(self) -> None:
        self.patience_s = 0.0
        self.records: dict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
        self.closed = self.destroyed = 0

    def find(self, batches: Sequence[StoredBatch]) -> list[tuple[int, bytes]]:
        found = dict(record for records in self.records.values() for record in records)
        return [(index, found[name]) for index, (name, _) in enumerate(batches) if name in found]

    def put(self, batches: Sequence[StoredBatch]) -> tuple[bool, int]:
        if any(slot <= self.closed for _, records in batches for slot in records):
            return False, self.closed
        for name, records in batches:
            for slot, record in records.items():
                self.records[slot].append((name, record))
        return True, self.closed

    def close_slot(self, slot: int) -> None:
        self.closed = max(self.closed, slot)

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        return use(record for _, record in self.records.get(slot, ()))

    def destroy(self, through: int) -> None:
        self.destroyed = max(self.destroyed, through)

    def forget(self, through: int) -> None:
        self.destroy(through)
        self.close_slot(through)
        for slot in [slot for slot in self.records if slot <= through]:
            del self.records[slot]

    def close(self) -> None:
        pass


class ScriptedPipeSource(PipeSource):
    """Source that reads the pieces of a script in the thread of the test, whenever it would wait."""

    def _start(self) -> None:
        pass

    def _rest(self, wait_s: float) -> None:
        if self._has_ended or self._gathered:
            self._write()
        else:
            piece = self._inbox.get(wait_s)
            wait_s = 0.0
            if piece is not None:
                self._take(piece)
        super()._rest(wait_s)


def pipe_source(
    settings: StreamSettings,
    clock: SlotClock,
    last: int | None,
    *,
    inbox: Any,
    now_us: Callable[[], int],
    store: MemoryStore | SegmentLog | None = None,
    source: type[ScriptedPipeSource] = ScriptedPipeSource,
) -> ScriptedPipeSource:
    """A source over a pipe, in the thread of the test."""
    store = MemoryStore() if store is None else store
    return source(settings, clock, last, inbox=inbox, store=store, now_us=now_us)


class BatchSource(LiveSource):
    """What a service has of events: batches are taken in and counted over one event log."""

    def __init__(
        self, settings: StreamSettings, clock: SlotClock, last: int | None, *, folder: Path, now_us: Callable[[], int]
    ) -> None:
        self.log = SegmentLog(folder, RecordCodec(settings.cells, clock).stream)
        super().__init__(settings, clock, last, store=self.log, now_us=now_us)
        self.receiver = BatchReceiver(settings, clock, last, intake=self.log, now_us=now_us)
        self.receive = self.receiver.receive

    def totals(self) -> dict[str, int]:
        counted = super().totals()
        return {name: number + counted[name] for name, number in self.receiver.totals().items()}

    def close(self) -> None:
        self.receiver.close()
        super().close()
