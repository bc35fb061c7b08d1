"""A query that publishes: Spark's `StreamingQuery`, which ends together with the loop and the journal behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from wevent.outputs import KeptOutput
from wevent.publishing.session import DueFactory, RunReport, Watch, run
from wevent.settings import RunOptions, Settings
from wevent.spark.batch_source import SparkSource
from wevent.spark.checkpoint import Checkpoint
from wevent.streams.clock import SlotClock


class LoopThread(threading.Thread):
    """The session of `wevent publish`, in a thread of the driver, fed by a query.

    Args:
        settings: of the stream.
        options: options of the run.
        read: files that the settings were read from, and what each is.
        due_of: when releases go out.

    Attributes:
        source: where batches go, once it has begun.
        report: result of the run, once it is over.
        error: error that ended it, if any.
        afterwards: called when it is over, also after an error.
    """

    def __init__(
        self, settings: Settings, options: RunOptions, read: Iterable[tuple[str, Path]], *, due_of: DueFactory
    ) -> None:
        super().__init__(name="wevent publisher", daemon=True)
        self._settings, self._options, self._read, self._due_of = settings, options, list(read), due_of
        self._ready = threading.Event()
        self._armed = threading.Event()
        self._then: Callable[[], None] = lambda: None
        self.source: SparkSource | None = None
        self.report: RunReport | None = None
        self.error: BaseException | None = None
        self.afterwards: Callable[[], None] = lambda: None

    def begin(self) -> SparkSource:
        """Start it; return where batches go when everything was checked and the first slot is waited for.

        Raises:
            WeventError: as of `wevent.publishing.session.run`.
        """
        self.start()
        self._ready.wait()
        if self.error is not None:
            raise self.error
        assert self.source is not None, "a loop that has begun has a source"
        return self.source

    def run(self) -> None:
        """Publish; an error is kept for the caller of `begin`."""
        output = KeptOutput() if self._settings.out is None else None
        watch = Watch(begun=lambda first, last: self._ready.set())
        try:
            self.report = run(self._settings, self._options, self._read, watch, output, self._open, due_of=self._due_of)
        except BaseException as error:  # noqa: BLE001
            self.error = error
        finally:
            if self.source is not None:
                self.source.finish(self.error)
            self._ready.set()
        try:
            try:
                if self.ended:
                    self._armed.wait()
                    self._then()
            finally:
                self.afterwards()
        except BaseException as error:  # noqa: BLE001
            self.error = self.error or error

    @property
    def ended(self) -> bool:
        """`True` once the last slot of a stream with an end is out."""
        last = None if self.source is None else self.source.last
        return self.report is not None and last is not None and self.report.summary.last >= last

    def when_ended(self, then: Callable[[], None]) -> None:
        """Set what to do once the last slot is out, in this thread, also if it is out already."""
        self._then = then
        self._armed.set()

    def end(self) -> None:
        """Let it end, and wait for that: the journal is closed then."""
        self._armed.set()
        if self.source is not None:
            self.source.stop()
        if threading.current_thread() is not self:
            self.join()

    def _open(self, settings: Settings, clock: SlotClock, last: int | None) -> SparkSource:
        self.source = SparkSource(settings, clock, last)
        return self.source


class SparkPublication(StreamingQuery):
    """A query that publishes; made by `wevent.spark.publish`.

    It is a `StreamingQuery` in every respect. `stop` also ends the loop and closes the journal. If the loop fails, so
    does the query, and `awaitTermination` raises wevent's own error. A stream with an `end` stops by itself after its last
    slot.
    """

    def __init__(self, query: StreamingQuery, loop: LoopThread, checkpoint: Checkpoint) -> None:
        super().__init__(query._jsq)
        self._loop, self._checkpoint = loop, checkpoint

    def stop(self) -> None:
        """Stop the query, then the loop; the journal is closed when this returns. Open slots stay in the checkpoint.

        Raises:
            Py4JJavaError: if the query did not stop within `spark.sql.streaming.stopTimeout`; the loop did all the same.
        """
        try:
            super().stop()
        finally:
            self._loop.end()

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Wait until it ends, or for so many seconds; returns whether it has.

        Raises:
            WeventError: what ended the loop, if something did.
            StorageFailed: if its checkpoint has gone or is damaged.
            StreamingQueryException: if Spark failed otherwise.
        """
        try:
            done = super().awaitTermination(timeout)
        except StreamingQueryException as error:
            self._loop.end()
            if self._loop.error is not None:
                raise self._loop.error from None
            fault = self._checkpoint.fault(error, self._jsq.exception().get())
            if fault is not None:
                raise fault from None
            raise
        if timeout is None or done:
            self._loop.end()
            if self._loop.error is not None:
                raise self._loop.error
        return done

    @property
    def report(self) -> RunReport | None:
        """Result of the run, once it is over; its totals are private."""
        report = self._loop.report
        return None if report is None else replace(report, totals=self.totals)

    @property
    def totals(self) -> dict[str, int]:
        """Events of this run that were not counted so far, by reason: private, for the operator only.

        As of the last batch that is done. Late events of one user in one slot and batch are one.
        """
        assert self._loop.source is not None, "a loop that has begun has a source"
        self._loop.source.uncounted.look()
        return self._loop.source.totals()
