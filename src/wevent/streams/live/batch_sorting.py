"""What becomes of a batch: its events by slot, and what its sender is told.

What a sender is told is a function of their batch, the clock and public settings alone: whether people are registered, and
what others sent, never shows (spec 1, 10).
"""

from __future__ import annotations

import hashlib
import threading
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.counts import Rejected
from wevent.counting.label_index import Labels
from wevent.errors import BatchConflict
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import PIECE_BYTES, PROBLEMS, EventColumns, LineSplitter, time_reader
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.rejections import MALFORMED, Rejections

_NOTHING = np.empty(0, dtype=np.int64)
_NO_EVENTS = EventColumns(_NOTHING, Labels(_NOTHING), _NOTHING)

BatchKey = tuple[str, str]
"""A sender and the id of one of its batches."""


class ReadBatch(NamedTuple):
    """A batch as it came.

    Attributes:
        key: whose it is, and its id.
        digest: of its content.
        events: its well-formed events.
        malformed: how many of its lines have each of `PROBLEMS`.
    """

    key: BatchKey
    digest: bytes
    events: EventColumns
    malformed: IntArray


class SortedBatch(NamedTuple):
    """What becomes of a batch that is received at a moment.

    Attributes:
        answer: what its sender is told.
        home: the slot that is open then: its end is the end of what is known of the batch.
        parts: its events by slot, in order; of `home` in any case, unless it comes after the last slot.
        rejected: how many events are not among them, by reason.
        events: how many well-formed events it has.
    """

    answer: BatchResult
    home: int
    parts: dict[int, EventColumns]
    rejected: dict[str, int]
    events: int

    def note(self, uncounted: Rejections) -> None:
        """Add to the operator's totals of the run; which are private."""
        uncounted.events += self.events
        uncounted.late += self.rejected["late"]
        uncounted.outside(self.rejected["before"], self.rejected["after"])
        uncounted.reject(Rejected(unknown_cell=self.rejected["unknown_cell"]))
        uncounted.malform(self.rejected[reason] for reason in MALFORMED)


class BatchSorter:
    """Reads batches and sorts them into slots; from any thread.

    Args:
        settings: names and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock, last: int | None) -> None:
        self._settings, self._clock, self._last = settings, clock, last
        self._decoders = threading.local()

    def read(self, sender: str, batch: str | None, lines: bytes) -> ReadBatch:
        """A batch of whole lines, each with its end.

        Args:
            sender: whose batch ids these are.
            batch: the id; None: its content is its id.
            lines: the batch.
        """
        digest = hashlib.blake2b(lines, digest_size=16).digest()
        splitter, decoder = LineSplitter(), self._decoder()
        pieces = (lines[place : place + PIECE_BYTES] for place in range(0, max(len(lines), 1), PIECE_BYTES))
        events: list[EventColumns] = []
        malformed = np.zeros(len(PROBLEMS), dtype=np.int64)
        for piece in pieces:  # a batch of tiny lines takes far more memory decoded than sent
            decoded = decoder.decode(splitter.feed(piece))
            events.append(decoded.batch)
            malformed += np.bincount(decoded.problems, minlength=len(PROBLEMS))
        key = sender, digest.hex() if batch is None else batch
        return ReadBatch(key, digest, EventColumns.joined(events), malformed)

    def sort(self, batch: ReadBatch, begun: int, closed: int) -> SortedBatch:
        """What becomes of events that are received while these slots are open.

        Args:
            batch: the events.
            begun: the last slot that has begun.
            closed: the last slot that is closed.
        """
        rejected: dict[str, int] = dict(zip(MALFORMED, batch.malformed.tolist(), strict=True))
        slots, events = self._countable(batch.events, begun, closed, rejected)
        answer = BatchResult(len(slots), {reason: number for reason, number in rejected.items() if number})
        home = max(closed + 1, begun)
        parts = {slot: events.where(slots == slot) for slot in np.unique(slots).tolist()}
        if self._last is None or home <= self._last:  # nothing would remove what is kept of a slot that never comes
            parts.setdefault(home, _NO_EVENTS)
        return SortedBatch(answer, home, dict(sorted(parts.items())), rejected, len(batch.events.times))

    def _decoder(self) -> ObjectDecoder:
        """Of this thread: decoders remember the shape of lines."""
        if not hasattr(self._decoders, "own"):
            settings = self._settings
            self._decoders.own = ObjectDecoder(settings.columns, settings.cells, time_reader(settings))
        decoder: ObjectDecoder = self._decoders.own
        return decoder

    def _countable(
        self, events: EventColumns, begun: int, closed: int, rejected: dict[str, int]
    ) -> tuple[IntArray, EventColumns]:
        """The events of open slots in declared cells, with their slots; why the others are not among them."""
        slots = (events.times - self._clock.origin_us) // self._clock.length_us + 1
        begun = begun if self._last is None else min(begun, self._last)
        before = slots < 1
        late = ~before & (slots <= closed)
        after = ~(before | late) & (slots > begun)  # a clock that is behind what was closed makes no second reason
        unknown = ~(before | after | late) & (events.cells < 0)
        reasons = {"before": before, "after": after, "late": late, "unknown_cell": unknown}
        rejected |= {reason: int(np.count_nonzero(which)) for reason, which in reasons.items()}
        kept = ~(before | after | late | unknown)
        return (slots, events) if kept.all() else (slots[kept], events.where(kept))


def batch_conflict() -> BatchConflict:
    """The error for a batch id that stands for other content."""
    return BatchConflict(
        "a batch id that is new, or stands for the same content as before",
        "one that stands for other content",
        "Give every batch an id of its own, and send it unchanged when you send it again.",
    )
