"""`wevent.spark.publish`: a streaming DataFrame becomes a query that publishes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from wevent.core.requirements import Requirement
from wevent.counting.cells import Cells
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import PostgresPlace, is_begun, open_journal
from wevent.publishing.api import Moment, in_memory, people_of
from wevent.publishing.configuration import Settings, load_settings
from wevent.publishing.resolve import RunOptions
from wevent.publishing.session import settings_files
from wevent.spark.checkpoint import Checkpoint, CheckpointMark, configured, retention
from wevent.spark.class_counts import ClassCounter
from wevent.spark.encryption import ENCRYPTION, refuse_unencrypted
from wevent.spark.ended_batch import EndedBatch, interruptible, pause_in
from wevent.spark.heartbeats import Closing, heartbeats
from wevent.spark.pacing import Pace
from wevent.spark.progress_totals import ProgressTotals
from wevent.spark.roster_frame import RosterFrames
from wevent.spark.streaming_query import LoopThread, SparkPublication

_ENCRYPTED_OTHERWISE = (
    f"Start Spark with --conf {ENCRYPTION}=true (a running session cannot be changed), or say unencrypted=True if these "
    "disks are encrypted otherwise."
)


def publish(
    stream: DataFrame,
    *,
    journal: Path | str | PostgresPlace,
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
    """Publish a stream that Spark reads: Kafka, files, Delta, anything that is a streaming DataFrame.

    Spark reads, keeps each user's last cell of an open slot, and counts; slots end by the wall clock and a grace, never by an
    event. A slot that has ended is counted with the registry's roster and goes through the same loop and journal as
    everywhere, in a thread of the driver: drawn once, stored, then emitted. Start it again with the same journal and
    checkpoint after a crash or a stop: it goes on where it was.

    Args:
        stream: with columns for time, user and cell (`time_column`, … name them); rows that are no events are skipped.
        journal: the journal, made if it does not exist: a file, or postgresql://…
        checkpoint: the folder where Spark keeps how far it is; one for each journal. It holds the events of open slots.
        trigger: the time between two batches, such as "5s", an eighth of a slot unless told; or "available now": take what is
            there, publish the slots that are over, and end.
        config: a TOML file with settings, as of `wevent publish --config`; its inputs are not used.
        slot: how long a slot is, such as "10min".
        start: where slot 1 starts; now, unless told.
        end: where the last slot ends: the query then stops by itself, and removes its checkpoint.
        cells: the declared cells: a number, labels, or a file of them.
        requirements: who asks for what: a file, a frame (not of Spark), or a mapping of users to requirements. A journal that
            has people needs none.
        out: where releases are written, too: a .ndjson, .csv or .parquet file, or "-" for standard output.
        options: options of the run.
        unencrypted: whether Spark may write shuffles and spills, which have people's events in them, as they are.
        **settings: other settings by key, on top of the file's: mechanism, grace, due, timezone, time_column, …

    Returns:
        The query; `awaitTermination` raises wevent's own error if the loop fails.

    Raises:
        WeventError: one clear sentence; nothing was started.
    """
    if options is not None and not isinstance(options, RunOptions):
        raise InvalidSettings(
            "RunOptions", type(options).__name__, "Write options=wevent.RunOptions(new_epoch=True).", key="options"
        )
    session = _session_of(stream)
    _refuse_watermark(stream)
    named = {"slot": slot, "start": start, "end": end, "cells": cells, "journal": journal, "out": out}
    chosen = _settings(config, {**settings, **named}, requirements)
    pace = Pace.of(trigger, chosen)
    if not unencrypted:
        refuse_unencrypted(session, _ENCRYPTED_OTHERWISE)
    kept = Checkpoint(session, str(checkpoint))
    chosen = _going_on(chosen, kept)
    loop = LoopThread(
        pace.settled(chosen), options or RunOptions(), settings_files(config, cells), due_of=pace.due_moments
    )
    loop.begin()
    try:
        return _Start(session, loop, kept).query(stream, pace)
    except BaseException:
        loop.end()
        raise


class _Start:
    """What a query is made of, once the loop has begun.

    Args:
        session: where it runs.
        loop: takes its batches.
        checkpoint: its own.
    """

    def __init__(self, session: SparkSession, loop: LoopThread, checkpoint: Checkpoint) -> None:
        assert loop.source is not None, "a loop that has begun has a source"
        assert loop.clock is not None, "and a clock"
        assert loop.agreed is not None, "and settings"
        self._session, self._settings, self._loop = session, loop.agreed, loop
        self._source, self._clock = loop.source, loop.clock
        self._closing = Closing(loop.agreed, loop.clock, loop.last)
        self._counter = ClassCounter(len(loop.agreed.cells), RosterFrames())
        self._progress = ProgressTotals(loop.source.uncounted, self._closing.ahead)
        self._checkpoint = checkpoint
        loop.afterwards = self._counter.release

    def query(self, stream: DataFrame, pace: Pace) -> SparkPublication:
        """Start it."""
        ended = self._closing.ended(stream, heartbeats(self._session))
        self._claim()
        writer = ended.writeStream.outputMode("append").foreachBatch(self._take)
        writer = writer.option("checkpointLocation", self._checkpoint.place).trigger(**pace.spark)
        with configured(self._session, retention(self._clock.length_us)):
            started = self._started(writer)
        self._progress.follow(started._jsq)
        self._source.alive = lambda: bool(started.isActive)
        self._loop.when_ended(lambda: self._finish(started))
        return SparkPublication(started, self._loop, self._progress, self._checkpoint)

    def _started(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start a query.

        Raises:
            StorageFailed: if its checkpoint is damaged.
        """
        try:
            return writer.start()
        except (Py4JJavaError, PySparkException) as error:
            fault = self._checkpoint.fault(error)
            if fault is None:
                raise
            raise fault from None

    def _claim(self) -> None:
        assert self._settings.journal is not None, "a publication has a journal"
        with open_journal(self._settings.journal) as journal:
            identity = journal.identity
        self._checkpoint.claim(CheckpointMark.of(identity, self._settings, self._clock))

    def _take(self, rows: DataFrame, batch: int) -> None:
        """A micro-batch, in the thread of the query."""
        self._progress.look()
        with (
            interruptible(self._source.alive),
            EndedBatch(rows, self._closing.plan, self._counter) as ended,
        ):
            self._source.take(ended, pause_in(rows.sparkSession))

    def _finish(self, started: StreamingQuery) -> None:
        """The last slot is out: no event is needed any more."""
        started.stop()
        self._checkpoint.remove()


def _settings(config: Path | str | None, given: dict[str, Any], requirements: Any) -> Settings:
    """The settings of a stream whose events Spark reads.

    Raises:
        InvalidSettings: for what such a stream cannot have.
    """
    people = requirements if in_memory(requirements) else None
    named = {**given, "inputs": "-", "requirements": None if people is not None else requirements}
    chosen = load_settings(config, named, ("journal",))
    for key, unfit in (
        ("slot_column", chosen.slot_column is not None),
        ("close", chosen.close != "clock"),
        ("strict", chosen.strict),
        ("start", chosen.start_auto),
    ):
        if unfit:
            raise InvalidSettings(
                "slots that the wall clock closes, for a stream of Spark",
                f"{key} in the settings",
                f"Leave {key} out; for files there is `wevent publish --engine spark`.",
                key=key,
            )
    return chosen if people is None else replace(chosen, requirements=None, people=people_of(people, chosen))


def _going_on(settings: Settings, checkpoint: Checkpoint) -> Settings:
    """The settings, with the start of a run that ended before its first slot was out: its events are in the checkpoint."""
    if settings.journal is None or settings.start_us is not None or not is_begun(settings.journal):
        return settings
    with open_journal(settings.journal) as journal:
        if journal.is_new or not checkpoint.belongs_to(journal.identity):
            return settings
        terms = journal.head().epoch.terms
    return replace(settings, start_us=terms.origin_us) if terms.length_us == settings.slot_us else settings


def _session_of(stream: Any) -> SparkSession:
    """The session of a streaming DataFrame of this process.

    Raises:
        InvalidInput: for anything else.
    """
    if not isinstance(stream, DataFrame) or not stream.isStreaming:
        what = "one that is not streaming" if isinstance(stream, DataFrame) else type(stream).__name__
        raise InvalidInput(
            "a streaming DataFrame of Spark",
            what,
            "Read it with spark.readStream; for what is at rest there are wevent.spark.count and wevent.publish.",
            path=None,
        )
    if getattr(stream.sparkSession, "_jvm", None) is None:
        raise InvalidInput(
            "a session whose driver is this process",
            "one of Spark Connect",
            "The journal is written where the driver is: run the program there (spark-submit, or a job on the cluster).",
            path=None,
        )
    return stream.sparkSession


def _refuse_watermark(stream: Any) -> None:
    """Refuse a stream whose events would move a watermark: Spark takes the least of several, or the greatest (spec 1)."""
    if _has_watermark(stream._jdf.queryExecution().analyzed()):
        raise InvalidInput(
            "a stream without a watermark: slots end by the wall clock, and of two watermarks events would move one",
            "one with withWatermark",
            "Leave it out, with what needs it: an event that comes twice counts once, and late ones are dropped here.",
            path=None,
        )


def _has_watermark(plan: Any) -> bool:
    """Whether a plan, as Java has it, has a watermark somewhere."""
    children = plan.children()
    return plan.nodeName() == "EventTimeWatermark" or any(
        _has_watermark(children.apply(place)) for place in range(children.size())
    )
