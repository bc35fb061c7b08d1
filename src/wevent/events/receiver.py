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
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.counts import Rejected
from wevent.errors import BatchConflict, JournalUnreachable, ServiceStopping, StorageFailed, WeventError
from wevent.events.event_store import EventIntake, StoredRecord
from wevent.events.records import BatchPart, RecordCodec, decode_part
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import PIECE_BYTES, PROBLEMS, EventColumns, LineSplitter, time_reader
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.rejections import MALFORMED, Rejections
from wevent.streams.steady_clock import SlotDeadlines, wall_clock_us

_GROUP_BATCHES = 256
_GROUP_EVENTS = 200_000  # a slot that closes waits for the write of a group
_RACES_S = 5.0  # longest time in which slots close, or other replicas store a batch, between its sorting and its write
_LOOK_S = 0.5
_ANSWER_S = 30.0  # longest wait of a sender for a database that stands still with open connections
_NO_EVENTS = EventColumns.joined(())


class SortedEvents(NamedTuple):
    """Events of a batch by slot.

    Attributes:
        parts: the events of each open slot, by slot in order.
        rejected: number of other events by reason.
        accepted: number of events in `parts`.
    """

    parts: dict[int, EventColumns]
    rejected: dict[str, int]
    accepted: int

    def note(self, uncounted: Rejections) -> None:
        """Add the events to the totals of the run, which are private."""
        uncounted.events += self.accepted + sum(self.rejected.values())
        uncounted.late += self.rejected["late"]
        uncounted.outside(self.rejected["before"], self.rejected["after"])
        uncounted.reject(Rejected(unknown_cell=self.rejected["unknown_cell"]))


def sort_events(events: EventColumns, clock: SlotClock, begun: int, closed: int) -> SortedEvents:
    """Sort events into open slots; each of the others has one reason.

    Args:
        events: well-formed events.
        clock: when slots begin.
        begun: the last slot that has begun and will be published.
        closed: the last closed slot.
    """
    slots = (events.times - clock.origin_us) // clock.length_us + 1
    before = slots < 1
    late = ~before & (slots <= closed)
    after = ~(before | late) & (slots > begun)  # a clock that is behind a closed slot gives no second reason
    unknown = ~(before | after | late) & (events.cells < 0)
    reasons = {"before": before, "after": after, "late": late, "unknown_cell": unknown}
    rejected = {reason: int(np.count_nonzero(which)) for reason, which in reasons.items()}
    if any(rejected.values()):
        kept = ~(before | after | late | unknown)
        slots, events = slots[kept], events.where(kept)
    found = np.unique(slots).tolist()
    parts = {slot: events if len(found) == 1 else events.where(slots == slot) for slot in found}
    return SortedEvents(parts, rejected, len(slots))


@dataclass(eq=False)
class _Batch:
    """A batch whose sender waits.

    Attributes:
        name: finds the batch when it is sent again.
        digest: of the content.
        events: its well-formed events.
        malformed: number of lines with each of `PROBLEMS`.
        received_us: when it arrived.
        answer: for the sender.
        again: the same batch, sent again meanwhile.
    """

    name: bytes
    digest: bytes
    events: EventColumns
    malformed: IntArray
    received_us: int
    answer: Future[BatchResult] = field(default_factory=Future)
    again: list[_Batch] = field(default_factory=list)

    def reply(self, answer: BatchResult) -> None:
        """Answer the sender."""
        for one in (self, *self.again):
            one.answer.set_result(answer)

    def refuse(self, error: BaseException) -> None:
        """Answer the sender with an error, unless it has an answer."""
        for one in (self, *self.again):
            if not one.answer.done():
                one.answer.set_exception(error)


class _SortedBatch(NamedTuple):
    """A batch, its events by slot, and its answer."""

    batch: _Batch
    sorted: SortedEvents
    answer: BatchResult


class BatchReceiver:
    """Takes batches in.

    Args:
        settings: grace, names and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        intake: where events are stored; used by a thread of this receiver alone.
        now_us: the wall clock.
        answer_s: longest wait of a sender.
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
        self._settings, self._clock, self._last = settings, clock, last
        self._intake, self._patience_s, self._answer_s = intake, intake.patience_s, answer_s
        self._deadlines = SlotDeadlines(clock, settings.grace_us, now_us)
        self._codec = RecordCodec(settings.cells, clock)
        self._decoders = threading.local()  # decoders remember the shape of lines
        self._closed = 0  # the last slot that is known to be closed
        self._is_declared = False
        self._lock = threading.Condition()  # of everything below
        self._queue: list[_Batch] = []
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
                raise _stopping()
            self._queue.append(waiting)
            self._lock.notify()
        try:
            return waiting.answer.result(self._answer_s)
        except TimeoutError:
            with self._lock:
                if waiting in self._queue:  # otherwise it is being written; repeated batches must not fill the memory
                    self._queue.remove(waiting)
            raise _silent() from None

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

    def _decode(self, sender: str, batch: str | None, lines: bytes) -> _Batch:
        received_us = self._deadlines.now()
        digest = hashlib.blake2b(lines, digest_size=16).digest()
        splitter, decoder = LineSplitter(), self._decoder()
        pieces = (lines[place : place + PIECE_BYTES] for place in range(0, max(len(lines), 1), PIECE_BYTES))
        events: list[EventColumns] = []
        malformed = np.zeros(len(PROBLEMS), dtype=np.int64)
        for piece in pieces:  # a batch of tiny lines takes far more memory decoded than sent
            decoded = decoder.decode(splitter.feed(piece))
            events.append(decoded.batch)
            malformed += np.bincount(decoded.problems, minlength=len(PROBLEMS))
        name = self._codec.name(sender, digest.hex() if batch is None else batch)
        return _Batch(name, digest, EventColumns.joined(events), malformed, received_us)

    def _decoder(self) -> ObjectDecoder:
        """Return the decoder of this thread."""
        if not hasattr(self._decoders, "own"):
            settings = self._settings
            self._decoders.own = ObjectDecoder(settings.columns, settings.cells, time_reader(settings))
        decoder: ObjectDecoder = self._decoders.own
        return decoder

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._queue and not self._is_stopping:
                    self._lock.wait(_LOOK_S)
                group = self._next_group()
                if not group:
                    return
            try:
                self._store_group(group)
            except BaseException as error:  # noqa: BLE001  the senders are told
                for batch in group:
                    batch.refuse(error)

    def _next_group(self) -> list[_Batch]:
        """Return the batches of the next write; under the lock."""
        number = events = 0
        while number < min(len(self._queue), _GROUP_BATCHES) and (not number or events < _GROUP_EVENTS):
            events += len(self._queue[number].events.times)
            number += 1
        group, self._queue = self._queue[:number], self._queue[number:]
        return group

    def _store_group(self, group: list[_Batch]) -> None:
        """Make batches durable and answer them; where the disk refuses a group, each batch is tried alone."""
        waiting = _merge_repeated(group)
        try:
            self._store_patiently(waiting)
        except JournalUnreachable:
            raise
        except StorageFailed:
            if len(waiting) == 1:
                raise
            for batch in waiting:
                try:
                    self._store_patiently([batch])
                except WeventError as error:
                    batch.refuse(error)

    def _store_patiently(self, waiting: list[_Batch]) -> None:
        """Store batches and answer them; tries again for a while after a lost connection.

        Raises:
            WeventError: for batches that have no answer.
        """
        waiting = [batch for batch in waiting if not batch.answer.done()]
        end = time.monotonic() + self._intake.patience_s
        while waiting:
            if time.monotonic() > end + _RACES_S:
                raise _stopping()
            try:
                waiting = self._try_to_store(waiting)
                self._intake.patience_s = self._patience_s
            except JournalUnreachable:
                if time.monotonic() >= end:
                    self._intake.patience_s = 0.0  # the database is away: nothing waits again until it is back
                    raise

    def _try_to_store(self, waiting: list[_Batch]) -> list[_Batch]:
        """Answer batches that are stored already, store and answer the others; returns those that are not stored."""
        if not self._is_declared:
            self._intake.declare(self._codec.digest, self._codec.meaning)
            self._is_declared = True
        batches = self._answer_known([self._sort(batch) for batch in waiting])
        is_stored, closed = self._intake.put([self._records(one) for one in batches])
        self._closed = max(self._closed, closed)
        if not is_stored:
            return [one.batch for one in batches]
        with self._lock:
            for one in batches:
                one.sorted.note(self._uncounted)
                self._uncounted.malform(one.batch.malformed.tolist())
        for one in batches:
            one.batch.reply(one.answer)
        return []

    def _answer_known(self, batches: list[_SortedBatch]) -> list[_SortedBatch]:
        """Answer batches that are stored as they were answered before; returns the others."""
        found = self._intake.find([(one.batch.name, one.sorted.parts) for one in batches])
        known = {index: decode_part(record) for index, record in found}
        for index, part in known.items():
            batch = batches[index].batch
            if part.digest != batch.digest:
                batch.refuse(_conflict())
            else:
                batch.reply(part.answer)
        return [one for index, one in enumerate(batches) if index not in known]

    def _sort(self, batch: _Batch) -> _SortedBatch:
        """Sort the events of a batch by the moment it was received, however long it waited since.

        The slot that was open then has a part in any case: a batch is known until that slot is committed.
        """
        closed = max(self._closed, self._deadlines.closed(batch.received_us))
        begun = self._deadlines.begun(batch.received_us)
        last = begun if self._last is None else min(begun, self._last)
        events = sort_events(batch.events, self._clock, last, closed)
        home = max(closed + 1, begun)
        if self._last is None or home <= self._last:  # nothing would delete the part of a slot that never comes
            events.parts.setdefault(home, _NO_EVENTS)
        rejected = {**dict(zip(MALFORMED, batch.malformed.tolist(), strict=True)), **events.rejected}
        answer = BatchResult(events.accepted, {reason: number for reason, number in rejected.items() if number})
        return _SortedBatch(batch, events, answer)

    def _records(self, one: _SortedBatch) -> list[StoredRecord]:
        encode, batch = self._codec.encode, one.batch
        return [
            StoredRecord(slot, batch.name, encode(BatchPart(batch.digest, one.answer, events)))
            for slot, events in sorted(one.sorted.parts.items())
        ]


def _merge_repeated(group: list[_Batch]) -> list[_Batch]:
    """Return batches with different names: one that came twice is stored once, and answered twice."""
    first: dict[bytes, _Batch] = {}
    for batch in group:
        before = first.setdefault(batch.name, batch)
        if before is batch:
            continue
        if before.digest == batch.digest:
            before.again.append(batch)
        else:
            batch.refuse(_conflict())
    return list(first.values())


def _conflict() -> BatchConflict:
    return BatchConflict(
        "a batch id that is new, or stands for the same content as before",
        "one that stands for other content",
        "Give every batch an id of its own, and send it unchanged when you send it again.",
    )


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
