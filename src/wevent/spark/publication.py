"""`wevent.spark.publish`: a streaming DataFrame becomes a query that publishes it.

The loop and the journal are those of `wevent publish`, in a thread of the driver. Query and loop end together.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from wevent.core.requirements import Requirement
from wevent.counting.labels import Cells
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import PostgresAddress, is_begun, open_journal
from wevent.outputs import KeptOutput
from wevent.publishing.configuration import in_memory, load_settings, people_of
from wevent.publishing.loop import DueMoments
from wevent.publishing.session import Moment, RunCallbacks, RunReport, run
from wevent.settings import RunOptions, Settings
from wevent.settings.values import SECOND_US, parse_length
from wevent.spark.batch_source import SparkSource, take_rows
from wevent.spark.checkpoint import Checkpoint, shortest_retention
from wevent.spark.class_counts import ClassCounter
from wevent.spark.event_plan import EventPlan, heartbeats
from wevent.spark.input_files import ENCRYPTION, refuse_unencrypted
from wevent.streams.clock import SlotClock

AVAILABLE_NOW = "available now"
"""Trigger that takes all that is there, publishes the slots that are over, and ends."""

_SHARE = 8  # of a slot, by default
_LEAST_US, _MOST_US = SECOND_US // 2, 10 * SECOND_US
_LATE = 2  # triggers: one until a batch knows that the slot is over, one until the next brings it
_STEPS = 4  # moments per slot for releases that missed their own: Spark waits for them, and must not miss the next


def publish(
    stream: DataFrame,
    *,
    journal: Path | str | PostgresAddress,
    checkpoint: Path | str,
    trigger: str | timedelta | None = None,
    config: Path | str | None = None,
    slot: str | timedelta | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    cells: int | str | Path | Sequence[Any] | Cells | None = None,
    requirements: Path | str | Mapping[Any, Requirement] | Any | None = None,
    out: Path | str | None = None,
    options: RunOptions | None = None,
    unencrypted: bool = False,
    **settings: Any,
) -> SparkPublication:
    """Publish a stream that Spark reads: Kafka, files, Delta or any other streaming DataFrame.

    Spark reads, keeps each user's last cell of an open slot, and counts. The wall clock and a grace end slots; events do not.
    A thread of the driver runs the loop and the journal: every slot is drawn once, stored, then released. After a crash or a
    stop, start it again with the same journal and checkpoint.

    Args:
        stream: with columns for time, user and cell (`time_column`, … name them). Rows that are no events are skipped.
        journal: the journal, made if it does not exist: a file, or postgresql://…
        checkpoint: folder of Spark's state, with the events of open slots; one for each journal.
        trigger: time between two batches, such as "5s" (default: an eighth of a slot). "available now" takes all that is
            there, publishes the slots that are over, and ends.
        config: a TOML file with settings, as of `wevent publish --config`; its inputs are not used.
        slot: length of a slot, such as "10min".
        start: start of slot 1 (default: now).
        end: end of the last slot. The query then stops by itself and removes its checkpoint.
        cells: the declared cells: a number, labels, or a file of them.
        requirements: requirements of users: a file, a frame (not of Spark), or a mapping. A journal with users needs none.
        out: output beside the journal: a .ndjson, .csv or .parquet file, or "-" for standard output.
        options: options of the run.
        unencrypted: let Spark write shuffles and spills, which hold events, without encryption.
        **settings: other settings by key, on top of the file's: mechanism, grace, release_delay, timezone, time_column, …

    Returns:
        The query; `awaitTermination` raises wevent's own error if the loop fails.

    Raises:
        WeventError: one clear sentence; nothing was started.
    """
    if options is not None and not isinstance(options, RunOptions):
        problem = f"options is of the type {type(options).__name__}, not RunOptions."
        raise InvalidSettings(problem, "Write options=wevent.RunOptions(reconfigure=True).", key="options")
    session = _session_of(stream)
    _refuse_watermark(stream)
    named = {"slot": slot, "start": start, "end": end, "cells": cells, "journal": journal, "out": out}
    chosen = _settings(config, {**settings, **named}, requirements)
    every_us, chosen = with_trigger(trigger, chosen)
    if not unencrypted:
        refuse_unencrypted(
            session,
            f"Start Spark with --conf {ENCRYPTION}=true (a running session cannot be changed), or say unencrypted=True if "
            "these disks are encrypted otherwise.",
        )
    kept = Checkpoint(session, str(checkpoint))
    chosen = _going_on(chosen, kept)
    loop = LoopThread(stream, every_us, kept, chosen, options or RunOptions())
    return SparkPublication(loop.begin(), loop, kept)


def with_trigger(trigger: str | timedelta | None, settings: Settings) -> tuple[int | None, Settings]:
    """Return the time between two batches, None for `AVAILABLE_NOW`; and settings in which releases are due late enough.

    By default the time is an eighth of a slot, within bounds, and releases are due a trigger later than Spark may be late.
    """
    if trigger == AVAILABLE_NOW:
        return None, settings
    every_us = min(_MOST_US, max(_LEAST_US, settings.slot_us // _SHARE))
    if trigger is not None:
        every_us = parse_length(trigger, "trigger")
    if every_us <= 0:
        raise InvalidSettings(
            f"The trigger {trigger!r} is no time: every batch has a heartbeat, and without a pause batches would never end.",
            "Write for example 5s.",
            key="trigger",
        )
    least = settings.grace_us + _LATE * every_us
    if settings.release_delay_us is None:
        return every_us, replace(settings, release_delay_us=least + every_us)
    if settings.release_delay_us < least:
        raise InvalidSettings(
            f"Spark may close a slot {least / SECOND_US:g} s late, the grace and {_LATE} triggers, and release_delay is "
            f"{settings.release_delay_us / SECOND_US:g} s.",
            "Make release_delay longer, or the trigger shorter.",
            key="release_delay",
        )
    return every_us, settings


def moments_of(every_us: int | None, settings: Settings, clock: SlotClock) -> DueMoments | None:
    """Return the moments of releases; None where the operator decides, by starting the query."""
    if every_us is None or settings.release_delay_us is None:
        return None
    return DueMoments(clock, settings.release_delay_us, step_us=-(-clock.length_us // _STEPS))


class LoopThread(InheritableThread):
    """The session of `wevent publish`, in a thread of the driver, and the query that feeds it.

    Attributes:
        source: where batches go, once it has begun.
        query: the query, once it has begun.
        report: result of the run, once it is over.
        error: error that ended it, if any.
    """

    def __init__(
        self,
        stream: DataFrame,
        every_us: int | None,
        checkpoint: Checkpoint,
        settings: Settings,
        options: RunOptions,
    ) -> None:
        super().__init__(target=self._publish, name="wevent publisher", daemon=True)
        self._stream, self._every_us, self._checkpoint = stream, every_us, checkpoint
        self._settings, self._options = settings, options
        self._ready = threading.Event()
        self.counter: ClassCounter | None = None
        self.source: SparkSource | None = None
        self.query: StreamingQuery | None = None
        self.report: RunReport | None = None
        self.error: BaseException | None = None

    def begin(self) -> StreamingQuery:
        """Start the loop; return the query, which it starts when everything was checked and the first slot is waited for.

        Raises:
            WeventError: as of `wevent.publishing.session.run`; the journal is closed then.
        """
        self.start()
        self._ready.wait()
        if self.error is not None:
            self.join()
            raise self.error
        assert self.query is not None, "a loop that has begun has a query"
        return self.query

    def end(self) -> None:
        """Let it end, and wait for that: the journal is closed then."""
        if self.source is not None:
            self.source.stop()
        if threading.current_thread() is not self:
            self.join()

    def _publish(self) -> None:
        """Publish; after the last slot of a stream with an end, stop the query and remove its checkpoint."""
        output = KeptOutput() if self._settings.out is None else None
        watch = RunCallbacks(begun=lambda first, last: self._start_query())
        due_of = partial(moments_of, self._every_us)
        try:
            self.report = run(self._settings, self._options, watch, output, self._open, due_of=due_of)
        except BaseException as error:  # noqa: BLE001
            self.error = error
        try:
            if self.source is not None:
                self.source.finish(self.error)
            last = None if self.source is None else self.source.last
            is_last = self.report is not None and last is not None and self.report.summary.last >= last
            if self.query is not None and is_last:
                self.query.stop()
                self._checkpoint.remove()
        except BaseException as error:  # noqa: BLE001
            self.error = self.error or error
        finally:
            if self.counter is not None:
                self.counter.release()
            self._ready.set()

    def _open(self, settings: Settings, clock: SlotClock, last: int | None) -> SparkSource:
        self.source = SparkSource(settings, clock, last)
        return self.source

    def _start_query(self) -> None:
        """Start the query of a loop that waits for its first slot."""
        source, checkpoint, session = self.source, self._checkpoint, self._stream.sparkSession
        assert source is not None, "a loop that has begun has a source"
        assert self._settings.journal is not None, "a publication has a journal"
        plan = EventPlan(source.settings, source.clock)
        self.counter = ClassCounter(plan)
        ended = plan.ended(self._stream, heartbeats(session), source.last)
        with open_journal(self._settings.journal) as journal:
            identity = journal.identity
        checkpoint.claim(identity, source.settings, source.clock)
        writer = ended.writeStream.outputMode("append").foreachBatch(partial(take_rows, source, self.counter))
        writer = writer.option("checkpointLocation", checkpoint.place)
        if self._every_us is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{max(1, self._every_us // 1_000)} milliseconds")
        try:
            with shortest_retention(session, source.clock.length_us):
                query = writer.start()
        except (Py4JJavaError, PySparkException) as error:
            raise checkpoint.fault(error) or error from None
        source.uncounted.query = query._jsq
        source.alive = lambda: bool(query.isActive)
        self.query = query
        self._ready.set()


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
        failure, done = None, None
        try:
            done = super().awaitTermination(timeout)
        except StreamingQueryException as error:
            failure = error
        if failure is not None or timeout is None or done:
            self._loop.end()
            if self._loop.error is not None:
                raise self._loop.error
        if failure is not None:
            raise self._checkpoint.fault(failure, self._jsq.exception().get()) or failure
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


def _settings(config: Path | str | None, given: dict[str, Any], requirements: Any) -> Settings:
    """Return the settings of a stream whose events Spark reads."""
    people = requirements if in_memory(requirements) else None
    named = {**given, "inputs": "-", "requirements": None if people is not None else requirements}
    chosen = load_settings(config, named, ("journal",))
    for key, unfit in (
        ("slot_column", chosen.slot_column is not None),
        ("close_slots_by", chosen.close_slots_by != "clock"),
        ("strict", chosen.strict),
        ("start", chosen.start_auto),
    ):
        if unfit:
            raise InvalidSettings(
                f"There is {key} in the settings, and the wall clock closes the slots of a stream of Spark.",
                f"Leave {key} out; for files there is `wevent publish --engine spark`.",
                key=key,
            )
    return chosen if people is None else replace(chosen, requirements=None, people=people_of(people, chosen))


def _going_on(settings: Settings, checkpoint: Checkpoint) -> Settings:
    """Restore the start of a run that ended before its first slot was out: its events are in the checkpoint."""
    if settings.journal is None or settings.start_us is not None or not is_begun(settings.journal):
        return settings
    with open_journal(settings.journal) as journal:
        if journal.is_new or not checkpoint.belongs_to(journal.identity):
            return settings
        terms = journal.head().epoch.terms
    return replace(settings, start_us=terms.origin_us) if terms.length_us == settings.slot_us else settings


def _session_of(stream: Any) -> SparkSession:
    """Return the session of a streaming DataFrame of this process."""
    if not isinstance(stream, DataFrame) or not stream.isStreaming:
        what = "a DataFrame that is not streaming" if isinstance(stream, DataFrame) else type(stream).__name__
        raise InvalidInput(
            f"The events are in {what}, not in a streaming DataFrame of Spark.",
            "Read them with spark.readStream; for what is at rest there are wevent.spark.count and wevent.publish.",
            path=None,
        )
    if getattr(stream.sparkSession, "_jvm", None) is None:
        raise InvalidInput(
            "The session is one of Spark Connect, and the journal is written where the driver is.",
            "Run the program there (spark-submit, or a job on the cluster).",
            path=None,
        )
    return stream.sparkSession


def _refuse_watermark(stream: Any) -> None:
    """Refuse a stream whose events would move a watermark: Spark takes the least of several, or the greatest (spec 1)."""
    plans = [stream._jdf.queryExecution().analyzed()]  # as Java has them
    for plan in plans:
        if plan.nodeName() == "EventTimeWatermark":
            raise InvalidInput(
                "The stream has a watermark (withWatermark), which events would move, and slots end by the wall clock.",
                "Leave it out, with what needs it: an event that comes twice counts once, and late ones are dropped here.",
                path=None,
            )
        children = plan.children()
        plans += [children.apply(place) for place in range(children.size())]
