"""Batches of events: sorted into slots, stored before they are acknowledged, and taken once however often they are sent.

One thread stores what arrived since its last write, in one write, and then answers all senders that wait. The outcome of a
transaction whose report was lost is read before anything is acknowledged.

An answer is a function of the batch, the clock and public settings alone: it does not show whether users are registered, or
other batches (spec 1, 10).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import IntArray
from wevent.errors import BatchConflict, JournalUnreachable, StorageFailed
from wevent.events.records import (
    EventStore,
    RecordCodec,
    StoredBatch,
    note_sorted,
    read_answer,
    service_stopping,
    sort_events,
)
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock, SlotDeadlines, wall_clock_us
from wevent.streams.decoding import PIECE_BYTES, PROBLEMS, EventColumns, LineSplitter, time_reader
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.source import MALFORMED, Rejections

_GROUP_BATCHES = 256
_GROUP_EVENTS = 200_000  # a slot that closes waits for the write of a group
_RACES_S = 5.0  # longest time in which slots close, or other replicas store a batch, between its sorting and its write
_ANSWER_S = 30.0  # longest wait of a sender for a database that stands still with open connections
_NO_EVENTS = EventColumns.joined(())


class _WaitingBatch(NamedTuple):
    """A batch whose sender waits.

    Attributes:
        name: finds the batch when it is sent again.
        digest: of the content.
        events: its well-formed events.
        malformed: number of lines with each of `PROBLEMS`.
        received_us: when it arrived.
        answer: for the sender.
    """

    name: bytes
    digest: bytes
    events: EventColumns
    malformed: IntArray
    received_us: int
    answer: Future[BatchResult]

    def refuse(self, error: BaseException) -> None:
        """Answer the sender with an error, unless it has an answer."""
        if not self.answer.done():
            self.answer.set_exception(error)


class _SortedBatch(NamedTuple):
    """A batch, the number of its rejected events by reason, its answer, and what is stored of it."""

    batch: _WaitingBatch
    rejected: dict[str, int]
    answer: BatchResult
    stored: StoredBatch


class BatchReceiver:
    """Receiver of batches; its thread alone uses `find` and `put` of `intake`.

    Without a last slot the stream has no end.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        intake: EventStore,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        self._clock, self._last = clock, last
        self._intake, self._patience_s = intake, intake.patience_s
        self._deadlines = SlotDeadlines(clock, settings.grace_us, now_us)
        self._codec = RecordCodec(settings.cells, clock)
        self._decoder = ObjectDecoder(settings.columns, settings.cells, time_reader(settings))
        self._closed = 0  # the last slot that is known to be closed
        self._lock = threading.Condition()  # of everything below
        self._queue: list[_WaitingBatch] = []
        self._is_stopping = False
        self._uncounted = Rejections()
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        """Take a batch in; returns once its events are durable. From any thread.

        Args:
            sender: owner of the batch id.
            batch: the id: sent again under it, the batch has no effect but gets the same answer. None: its content is its id.
            lines: whole lines, each with its end.

        Raises:
            BatchConflict: if the id stands for other content.
            JournalUnreachable: if the database does not answer; sending the batch again tells whether it was accepted.
            StorageFailed: if events cannot be stored; they were not accepted.
            ServiceStopping: after `close`.
        """
        waiting = self._decode(sender, batch, lines)
        with self._lock:
            if self._is_stopping:
                raise service_stopping()
            self._queue.append(waiting)
            self._lock.notify()
        try:
            return waiting.answer.result(_ANSWER_S)
        except TimeoutError:
            with self._lock:  # repeated batches must not fill the memory; one that is being written is not in the queue
                self._queue = [batch for batch in self._queue if batch is not waiting]
            raise JournalUnreachable(
                "The database does not answer.",
                "Send the same batch again later: whether it was accepted shows then.",
                path="",
            ) from None

    def totals(self) -> dict[str, int]:
        """Return totals of what was received, for the operator only."""
        with self._lock:
            return self._uncounted.totals()

    def close(self) -> None:
        """Refuse further batches; those that are being written are answered."""
        with self._lock:
            self._is_stopping = True
            self._lock.notify()
        self._thread.join()

    def _decode(self, sender: str, batch: str | None, lines: bytes) -> _WaitingBatch:
        received_us = self._deadlines.now()
        digest = hashlib.blake2b(lines, digest_size=16).digest()
        splitter = LineSplitter()
        events: list[EventColumns] = []
        malformed = np.zeros(len(PROBLEMS), dtype=np.int64)
        for start in range(0, len(lines), PIECE_BYTES):  # a batch of tiny lines takes far more memory decoded than sent
            decoded = self._decoder.decode(splitter.feed(lines[start : start + PIECE_BYTES]))
            events.append(decoded.batch)
            malformed += np.bincount(decoded.problems, minlength=len(PROBLEMS))
        name = self._codec.name(sender, digest.hex() if batch is None else batch)
        return _WaitingBatch(name, digest, EventColumns.joined(events), malformed, received_us, Future())

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._queue or self._is_stopping)
                group = self._next_group()
                if not group:
                    return
            self._store_group(group)

    def _next_group(self) -> list[_WaitingBatch]:
        """Return the batches of the next write, under the lock; one that came twice is left for the write after it."""
        group: dict[bytes, _WaitingBatch] = {}
        events = 0
        for batch in self._queue:
            if len(group) == _GROUP_BATCHES or events >= _GROUP_EVENTS:
                break
            if batch.name not in group:
                group[batch.name] = batch
                events += len(batch.events.times)
        self._queue = [batch for batch in self._queue if group.get(batch.name) is not batch]
        return list(group.values())

    def _store_group(self, group: list[_WaitingBatch]) -> None:
        """Make batches durable and answer them; where the disk refuses a group, each batch is tried alone."""
        try:
            self._store_patiently(group)
        except BaseException as error:  # noqa: BLE001  the senders are told
            is_refused = isinstance(error, StorageFailed) and not isinstance(error, JournalUnreachable)
            for batch in group:
                if is_refused and len(group) > 1:
                    self._store_group([batch])
                else:
                    batch.refuse(error)

    def _store_patiently(self, waiting: list[_WaitingBatch]) -> None:
        """Store batches and answer them; try again for a while after a lost connection. Raise if some have no answer."""
        waiting = [batch for batch in waiting if not batch.answer.done()]
        end = time.monotonic() + self._intake.patience_s
        while waiting:
            if time.monotonic() > end + _RACES_S:
                raise service_stopping()
            try:
                waiting = self._try_to_store(waiting)
                self._intake.patience_s = self._patience_s
            except JournalUnreachable:
                if time.monotonic() >= end:
                    self._intake.patience_s = 0.0  # the database is away: nothing waits again until it is back
                    raise

    def _try_to_store(self, waiting: list[_WaitingBatch]) -> list[_WaitingBatch]:
        """Answer batches that are stored already, store and answer the others; returns those that are not stored."""
        batches = [self._sort(batch) for batch in waiting]
        for index, record in self._intake.find([one.stored for one in batches]):
            self._answer_again(waiting[index], record)
        batches = [one for one in batches if not one.batch.answer.done()]
        is_stored, closed = self._intake.put([one.stored for one in batches])
        self._closed = max(self._closed, closed)
        if not is_stored:
            return [one.batch for one in batches]
        with self._lock:
            for one in batches:
                note_sorted(self._uncounted, len(one.batch.events.times), one.rejected)
                self._uncounted.malform(one.batch.malformed.tolist())
        for one in batches:
            one.batch.answer.set_result(one.answer)
        return []

    def _answer_again(self, batch: _WaitingBatch, record: bytes) -> None:
        """Answer a batch that is stored as it was answered before."""
        digest, answer = read_answer(record)
        if batch.answer.done():  # by another of its records
            return
        if digest == batch.digest:
            batch.answer.set_result(answer)
        else:
            batch.refuse(
                BatchConflict(
                    "The batch id stands for a batch with other content.",
                    "Give every batch an id of its own, and send it unchanged when you send it again.",
                )
            )

    def _sort(self, batch: _WaitingBatch) -> _SortedBatch:
        """Sort the events of a batch by the moment it was received, however long it waited since.

        The slot that was open then has a part in any case: a batch is known until that slot is committed.
        """
        closed = max(self._closed, self._deadlines.closed(batch.received_us))
        begun = self._deadlines.begun(batch.received_us)
        last = begun if self._last is None else min(begun, self._last)
        slots, rejected = sort_events(batch.events, self._clock, last, closed)
        home = max(closed + 1, begun)
        if self._last is None or home <= self._last:  # nothing would delete the part of a slot that never comes
            slots.setdefault(home, _NO_EVENTS)
        accepted = len(batch.events.times) - sum(rejected.values())
        reasons = {**dict(zip(MALFORMED, batch.malformed.tolist(), strict=True)), **rejected}
        answer = BatchResult(accepted, {reason: number for reason, number in reasons.items() if number})
        records = {slot: self._codec.encode(events, batch.digest, answer) for slot, events in sorted(slots.items())}
        return _SortedBatch(batch, rejected, answer, (batch.name, records))
