"""Counts from micro-batches: Spark's thread hands over slots that have ended and waits until they are committed.

Two threads meet here. Spark's own calls `SparkSource.take` with a batch, and runs what is to be counted; the loop's calls
`count`, as of any source. `take` returns when the slots of its batch are committed, so Spark calls no batch done before:
after a crash it runs again, with the same rows, and its committed slots are skipped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wevent.counting.roster import Counts, Rejected, Roster
from wevent.errors import ServiceStopping
from wevent.settings import StreamSettings
from wevent.spark.class_counts import ClassCounter
from wevent.spark.event_plan import OBSERVED, slots_ahead
from wevent.streams.clock import SlotClock
from wevent.streams.source import MALFORMED, Rejections, SlotCounts, Source

_POLL_S = 0.2  # how long to wait at most before looking again whether the query goes on
_PAUSE_MS = 20
_INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling sleep: java.lang.InterruptedException"
"""By these words Spark knows that a query was stopped, and did not fail; it looks for them in what Python says."""


class SparkSource(Source):
    """Counts the slots that micro-batches bring.

    Attributes:
        uncounted: totals of events that were not counted; private.
        alive: `True` while the query runs.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock, last: int | None) -> None:
        super().__init__(settings, last)
        self.settings, self.clock, self.last = settings, clock, last
        self._changed = threading.Condition()  # of everything below
        self._stopping = threading.Event()
        self._ended: BaseException | None = None  # what ended the loop
        self._done = 0  # slots up to this one are committed
        self._closed = 0  # slots up to this one have ended, by the batch in hand
        self._wanted: tuple[Roster, int, int] | None = None
        self._roster: Roster | None = None  # that slots were counted with
        self._counted: dict[int, Counts] = {}
        self._uncounted = self.uncounted = QueryTotals(slots_ahead(settings, clock))
        self.alive: Callable[[], bool] = lambda: True

    def take(
        self, through: int, counting: Callable[[Roster, int, int], dict[int, Counts]], pause: Callable[[], None]
    ) -> None:
        """Have the slots of a batch committed; in the thread of the query.

        Args:
            through: the last slot that has ended by the batch.
            counting: counts its slots, first to last, or as many of them as can be counted at once.
            pause: waits a little in that thread, and raises if Spark wants it back.
        """
        last = through if self.last is None else min(through, self.last)
        with self._changed:
            self._closed = max(self._closed, through)
        while True:
            with self._changed:
                if self._done >= last:
                    return
                if self._stopping.is_set():
                    fix = "Start the query again: its slots are counted then."
                    raise self._ended or ServiceStopping("The publisher has stopped.", fix)
                wanted = self._wanted if self._wanted is not None and self._wanted[1] <= last else None
            if wanted is None:
                pause()
                continue
            roster, first, end = wanted
            counted = counting(roster, first, min(end, last))
            with self._changed:
                self._roster, self._counted = roster, counted
                if self._wanted is wanted:  # or the loop has another roster by now
                    self._wanted = None
                self._changed.notify_all()

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as batches bring them, at most `most`; ends with the batch, or after `stop`."""
        slots = self._slots(first, most)
        for slot in slots:
            counts = self._wait_for(roster, slot, slots[-1], beginning=slot == first)
            if counts is None:
                return
            self.uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        """Return the last slot that has ended, by the batch in hand."""
        with self._changed:
            return max(self._closed, self._done)

    def idle(self, wait_s: float) -> bool:
        """Wait; the batch is not done before its slots are committed, so one that is given up is run again."""
        return self._stopping.wait(wait_s) or not self.alive()

    def forget(self, through: int) -> None:
        """End the batch of slots up to this one, which are committed."""
        with self._changed:
            self._done = max(self._done, through)
            self._counted = {slot: counts for slot, counts in self._counted.items() if slot > through}
            self._changed.notify_all()

    def resume(self, position: Any) -> None:
        """Continue after a stored position: what batches bring for slots up to it was committed."""
        super().resume(position)
        self.forget(int(position["slot"]))

    def stop(self) -> None:
        """Make `count` end; safe from other threads."""
        self._stopping.set()

    def finish(self, error: BaseException | None = None) -> None:
        """Make `take` wait for the loop no longer, which is over."""
        self._ended = error
        self._stopping.set()

    def _wait_for(self, roster: Roster, slot: int, end: int, *, beginning: bool) -> Counts | None:
        """Return the counts of a slot; None after `stop`, or if the batch that had others does not have this slot."""
        with self._changed:
            if beginning:
                self._done = max(self._done, slot - 1)
            if self._roster is not roster or slot not in self._counted:
                self._wanted = roster, slot, end
                self._changed.notify_all()
            while self._roster is not roster or slot not in self._counted:
                if self._stopping.is_set() or not (beginning or slot <= self._closed):
                    return None
                if not self._changed.wait(_POLL_S) and not self.alive():
                    return None
            self._wanted = None
            return self._counted.pop(slot)


class QueryTotals(Rejections):
    """Totals of events of a stream that were not counted, from the progress of its query and from the loop.

    The query's thread, the loop's and the caller's share it: one of them at a time changes or reads it.

    Attributes:
        query: the query whose progress is read, as Java has it.
    """

    def __init__(self, ahead: int) -> None:
        super().__init__()
        self._ahead = ahead
        self._lock = threading.RLock()  # a signal handler may ask in the thread that has it
        self.query: Any = None
        self._batch = -1
        self._ended: int | None = None  # slots up to this one had ended for the batch before

    def reject(self, reasons: Rejected) -> None:
        with self._lock:
            super().reject(reasons)

    def totals(self) -> dict[str, int]:
        with self._lock:
            return super().totals()

    def look(self) -> None:
        """Add the batch that was done last, unless it was added."""
        progress = None if self.query is None else self.query.lastProgress()
        if progress is not None:
            self.add(msgspec.json.decode(progress.json()))

    def add(self, progress: dict[str, Any]) -> None:
        """Add the progress of a batch, in Spark's JSON, unless it was added."""
        with self._lock:  # whether it was is asked and answered by one thread at a time
            if progress["batchId"] <= self._batch:
                return
            self._batch = progress["batchId"]
            observed = progress.get("observedMetrics", {}).get(OBSERVED)
            if observed:
                malformed = [observed[name] for name in MALFORMED]
                self.events += observed["rows"] - sum(malformed)
                self.malform(malformed)
                self.outside(observed["before"], observed["after"])
                self.reject(Rejected(unknown_cell=observed["unknown_cell"]))
            times = progress.get("eventTime", {})
            dropped = sum(operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"])
            if dropped and "max" in times:
                beat = _slot(times["max"]) - self._ahead - 1
                dropped -= int(
                    self._ended is None or beat <= self._ended
                )  # a heartbeat in a slot that had ended before
            self.late += max(0, dropped)
            self._ended = _slot(times["watermark"]) if "watermark" in times else None


def _slot(time: str) -> int:
    """Return the slot that Spark takes for a second."""
    return int(datetime.fromisoformat(time).timestamp())


def take_rows(source: SparkSource, counter: ClassCounter, rows: DataFrame, batch: int) -> None:
    """Have the slots of a micro-batch committed; in the thread of the query.

    Rows are kept in Spark meanwhile; spilled to disk, they are encrypted as shuffles are. If the query is stopped meanwhile,
    few words replace what Java says of it: Spark searches Python's message with a stack frame for every letter. A stack trace
    of Java has too many letters: the thread of the query would die.

    Raises:
        WeventError: what ended the loop.
        InterruptedError: if the query is stopped.
    """
    sleep: Any = rows.sparkSession._jvm.java.lang.Thread.sleep  # type: ignore[union-attr]

    def pause() -> None:
        """Wait a little where Spark can interrupt it."""
        try:
            sleep(_PAUSE_MS)
        except Py4JJavaError:
            raise InterruptedError(_INTERRUPTED) from None

    source.uncounted.look()
    try:
        folded = rows.persist()
        try:
            source.take(ended_through(rows), partial(counter.count, folded), pause)
        finally:
            folded.unpersist()
    except (Py4JError, PySparkException):
        if source.alive():
            raise
        raise InterruptedError(_INTERRUPTED) from None


def ended_through(rows: DataFrame) -> int:
    """Return the last slot that has ended by a micro-batch, by its heartbeat; 0 if none came out.

    Reading it is what makes Spark do the batch, also where nothing has ended.
    """
    beat = F.max(F.when(F.col("user").isNull(), F.col("slot")))
    found = rows.agg(beat.alias("beat"), F.max("slot").alias("slot")).first()
    assert found is not None, "a sum has a row"
    through: int = max(found["beat"] or 0, 0)
    assert (found["slot"] or 0) <= through, "no slot ends before its heartbeat says so"
    return through
