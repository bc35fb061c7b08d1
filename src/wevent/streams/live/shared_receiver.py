"""Batches that any replica of a service takes in: each durable in the store that all share before it is acknowledged.

One thread writes what has come since its last write, in one transaction, and then all who wait for it are answered. Whether
a transaction whose report was lost was stored is found out by reading; nothing is acknowledged before that is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from wevent.errors import JournalUnreachable, ServiceStopping, WeventError
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.live.batch_records import Spooled
from wevent.streams.live.batch_sorting import BatchSorter, ReadBatch, SortedBatch, batch_conflict
from wevent.streams.live.closing_clock import ClosingClock
from wevent.streams.live.event_store import EventIntake, StoredPart
from wevent.streams.live.shared_records import SharedRecords, as_written
from wevent.streams.live.steady_clock import wall_clock_us
from wevent.streams.rejections import Rejections

_AT_ONCE = 256  # batches in a transaction
_EVENTS_AT_ONCE = 200_000  # or so many events: whoever closes a slot waits for the transaction
_LOOK_S = 0.5
_ANSWER_S = 30.0  # so long a sender is kept waiting by a database that stands still with its connections open


@dataclass(eq=False)
class _Waiting:
    """A batch whose sender waits.

    Attributes:
        batch: as it came.
        name: what it is found by.
        received_us: when.
        answer: what its sender will be told.
        again: the same batch, sent again meanwhile.
    """

    batch: ReadBatch
    name: bytes
    received_us: int
    answer: Future[BatchResult] = field(default_factory=Future)
    again: list[_Waiting] = field(default_factory=list)

    def tell(self, answer: BatchResult) -> None:
        for one in (self, *self.again):
            one.answer.set_result(answer)

    def refuse(self, error: BaseException) -> None:
        for one in (self, *self.again):
            one.answer.set_exception(error)


class SharedReceiver:
    """Takes batches in beside other replicas.

    Args:
        settings: grace, names and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        intake: where events are kept; used by a thread of this receiver alone.
        now_us: the wall clock.
        answer_s: how long a sender is kept waiting at most.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        intake: EventIntake,
        now_us: Callable[[], int] = wall_clock_us,
        answer_s: float = _ANSWER_S,
    ) -> None:
        self._intake, self._patience_s, self._answer_s = intake, intake.patience_s, answer_s
        self._closing = ClosingClock(clock, settings.grace_us, now_us)
        self._sorter = BatchSorter(settings, clock, last)
        self._records = SharedRecords(settings.cells, clock)
        self._closed = 0  # the last slot that is known to be closed
        self._declared = False
        self._lock = threading.Condition()  # of everything below
        self._queue: list[_Waiting] = []
        self._stopping = False
        self._uncounted = Rejections()
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        """Take a batch in; returns once its events are durable. From any thread.

        Args:
            sender: whose batch ids these are.
            batch: the id; the same one again has no effect but gets the same answer. None: its content is its id.
            lines: whole lines, each with its end.

        Raises:
            BatchConflict: if the id stands for other content.
            JournalUnreachable: if the database does not answer; whether it was accepted shows when it is sent again.
            StorageFailed: if events cannot be kept; they were not accepted.
            ServiceStopping: after `close`.
        """
        read = self._sorter.read(sender, batch, lines)
        waiting = _Waiting(read, self._records.name(read.key), self._closing.now())
        with self._lock:
            if self._stopping:
                raise _stopping()
            self._queue.append(waiting)
            self._lock.notify()
        try:
            return waiting.answer.result(self._answer_s)
        except TimeoutError:
            with self._lock:
                if waiting in self._queue:  # else it is being written: senders who come again must not fill the memory
                    self._queue.remove(waiting)
            raise _silent() from None

    def totals(self) -> dict[str, int]:
        """Totals of what was received, for the operator only."""
        with self._lock:
            return self._uncounted.totals()

    def close(self) -> None:
        """Refuse further batches; those that are being written are answered."""
        with self._lock:
            self._stopping = True
            self._lock.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._queue and not self._stopping:
                    self._lock.wait(_LOOK_S)
                group = self._next_group()
                if not group:
                    return
            try:
                self._keep(group)
            except BaseException as error:  # noqa: BLE001  whoever waits is told
                for one in group:
                    if not one.answer.done():
                        one.answer.set_exception(error)

    def _next_group(self) -> list[_Waiting]:
        """What is written next; under the lock."""
        number = events = 0
        while number < min(len(self._queue), _AT_ONCE) and (not number or events < _EVENTS_AT_ONCE):
            events += len(self._queue[number].batch.events.times)
            number += 1
        group, self._queue = self._queue[:number], self._queue[number:]
        return group

    def _keep(self, group: list[_Waiting]) -> None:
        """Make batches durable and answer them. Lost connections are borne for a while, then all are refused.

        Raises:
            WeventError: what whoever still waits is told.
        """
        end = time.monotonic() + self._intake.patience_s
        waiting = _once_each(group)
        while waiting:
            try:
                waiting = self._tried(waiting)
                self._intake.patience_s = self._patience_s
            except JournalUnreachable:
                if time.monotonic() >= end:
                    self._intake.patience_s = 0.0  # it is away: nobody waits again until it is back
                    raise
            if time.monotonic() >= end and waiting:
                raise _stopping()

    def _tried(self, waiting: list[_Waiting]) -> list[_Waiting]:
        """Answer batches that are there already, write the others and answer them; those that are still to be written."""
        if not self._declared:
            self._intake.declare(self._records.digest, self._records.meaning)
            self._declared = True
        batches = self._without_known([(one, self._sorted(one)) for one in waiting])
        kept, closed = self._intake.put([part for one, batch in batches for part in self._parts(one, batch)])
        self._closed = max(self._closed, closed)
        if not kept:
            return [one for one, _ in batches]
        with self._lock:
            for _, batch in batches:
                batch.note(self._uncounted)
        for one, batch in batches:
            one.tell(batch.answer)
        return []

    def _without_known(self, batches: list[tuple[_Waiting, SortedBatch]]) -> list[tuple[_Waiting, SortedBatch]]:
        """Batches that nobody has kept yet; the others are answered as they were before."""
        found = self._intake.find([(one.name, batch.parts) for one, batch in batches])
        known = {place: as_written(record) for place, record in found}
        for place, spooled in known.items():
            one = batches[place][0]
            if spooled.digest != one.batch.digest:
                one.refuse(batch_conflict())
            else:
                assert spooled.answer is not None, "every part has it"
                one.tell(spooled.answer)
        return [batch for place, batch in enumerate(batches) if place not in known]

    def _sorted(self, waiting: _Waiting) -> SortedBatch:
        """What becomes of a batch: it was received when it was, whatever kept it from being written at once."""
        moment_us = waiting.received_us
        closed = max(self._closed, self._closing.closed(moment_us))
        return self._sorter.sort(waiting.batch, self._closing.begun(moment_us), closed)

    def _parts(self, waiting: _Waiting, batch: SortedBatch) -> list[StoredPart]:
        digest, key = waiting.batch.digest, waiting.batch.key
        return [
            StoredPart(slot, waiting.name, self._records.written(Spooled(*key, digest, batch.answer, events)))
            for slot, events in batch.parts.items()
        ]


def _once_each(group: list[_Waiting]) -> list[_Waiting]:
    """Batches by their names: one that came twice is written once, and answered twice."""
    first: dict[bytes, _Waiting] = {}
    for one in group:
        before = first.setdefault(one.name, one)
        if before is one:
            continue
        if before.batch.digest == one.batch.digest:
            before.again.append(one)
        else:
            one.refuse(batch_conflict())
    return list(first.values())


def _silent() -> JournalUnreachable:
    return JournalUnreachable(
        "the database to answer",
        "no answer",
        "Send the same batch again later: whether it was accepted shows then.",
        path="",
    )


def _stopping() -> WeventError:
    return ServiceStopping(
        "a service that takes events", "one that is starting or stopping", "Send the same batch again soon."
    )
