"""`wevent.spark.publish`: a streaming DataFrame becomes a query that publishes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wevent.core.requirements import Requirement
from wevent.counting.cells import Cells
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import PostgresPlace, is_begun, open_journal
from wevent.publishing.configuration import in_memory, load_settings, people_of
from wevent.publishing.loop import DueMoments
from wevent.publishing.session import Moment, settings_files
from wevent.settings import RunOptions, Settings
from wevent.settings.values import SECOND_US, parse_length
from wevent.spark.batch_source import SparkSource, ended_through, interruptible, pause_in
from wevent.spark.checkpoint import Checkpoint, retention
from wevent.spark.class_counts import ClassCounter, persisted
from wevent.spark.event_plan import Closing, heartbeats
from wevent.spark.spark_session import ENCRYPTION, configured, refuse_unencrypted
from wevent.spark.streaming_query import LoopThread, SparkPublication
from wevent.streams.clock import SlotClock

AVAILABLE_NOW = "available now"
"""Trigger that takes all that is there, publishes the slots that are over, and ends."""

_SHARE = 8  # of a slot, by default
_LEAST_US, _MOST_US = SECOND_US // 2, 10 * SECOND_US
_LATE = 2  # triggers: one until a batch knows that the slot is over, one until the next brings it
_STEPS = 4  # moments per slot for releases that missed their own: Spark waits for them, and must not miss the next
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
    source = loop.begin()
    try:
        assert chosen.journal is not None, "a publication has a journal"
        with open_journal(chosen.journal) as opened:
            identity = opened.identity
        return _start(session, stream, pace, loop, source, kept, identity)
    except BaseException:
        loop.end()
        raise


@dataclass(frozen=True)
class Pace:
    """Schedule of batches and releases: Spark closes a slot up to two triggers late.

    Attributes:
        every_us: time between two batches. None takes what is there now, and no more.
    """

    every_us: int | None

    @classmethod
    def of(cls, trigger: str | timedelta | None, settings: Settings) -> Pace:
        """Return the pace for a trigger: a duration, or `AVAILABLE_NOW`; by default an eighth of a slot, within bounds.

        Raises:
            InvalidSettings: for something else, or if releases are due before Spark can have closed their slot.
        """
        if trigger == AVAILABLE_NOW:
            return cls(None)
        every_us = min(_MOST_US, max(_LEAST_US, settings.slot_us // _SHARE))
        if trigger is not None:
            every_us = parse_length(trigger, "trigger")
        if every_us <= 0:
            raise InvalidSettings(
                "a trigger of some time: every batch has a heartbeat, and without a pause there would be no end of them",
                f"{trigger!r}",
                "Write for example 5s.",
                key="trigger",
            )
        least = settings.grace_us + _LATE * every_us
        if settings.due_us is not None and settings.due_us < least:
            raise InvalidSettings(
                f"due to be at least the grace and {_LATE} triggers, {least / SECOND_US:g} s: so late may Spark close a slot",
                f"{settings.due_us / SECOND_US:g} s",
                "Make due longer, or the trigger shorter.",
                key="due",
            )
        return cls(every_us)

    @property
    def spark(self) -> dict[str, Any]:
        """The arguments of Spark's `trigger`."""
        if self.every_us is None:
            return {"availableNow": True}
        return {"processingTime": f"{max(1, self.every_us // 1_000)} milliseconds"}

    def settled(self, settings: Settings) -> Settings:
        """Return settings in which releases are due a trigger later than Spark may be late."""
        if self.every_us is None or settings.due_us is not None:
            return settings
        return replace(settings, due_us=settings.grace_us + (_LATE + 1) * self.every_us)

    def due_moments(self, settings: Settings, clock: SlotClock) -> DueMoments | None:
        """Return the moments of releases; None where the operator decides, by starting the query."""
        if self.every_us is None or settings.due_us is None:
            return None
        return DueMoments(clock, settings.due_us, step_us=-(-clock.length_us // _STEPS))


def _start(
    session: SparkSession,
    stream: DataFrame,
    pace: Pace,
    loop: LoopThread,
    source: SparkSource,
    checkpoint: Checkpoint,
    journal: str,
) -> SparkPublication:
    """Start the query of a loop that has begun.

    Raises:
        StorageFailed: if its checkpoint is damaged.
    """
    closing = Closing(source.settings, source.clock, source.last)
    counter = ClassCounter(closing.plan)
    loop.afterwards = counter.release
    ended = closing.ended(stream, heartbeats(session))
    checkpoint.claim(journal, source.settings, source.clock)

    def take(rows: DataFrame, batch: int) -> None:
        """Take a micro-batch, in the thread of the query."""
        source.uncounted.look()
        with interruptible(source.alive), persisted(rows) as folded:
            source.take(ended_through(rows), partial(counter.count, folded), pause_in(rows.sparkSession))

    def finish() -> None:
        """Stop the query and remove its checkpoint: the last slot is out."""
        started.stop()
        checkpoint.remove()

    writer = ended.writeStream.outputMode("append").foreachBatch(take)
    writer = writer.option("checkpointLocation", checkpoint.place).trigger(**pace.spark)
    try:
        with configured(session, retention(source.clock.length_us)):
            started = writer.start()
    except (Py4JJavaError, PySparkException) as error:
        raise checkpoint.fault(error) or error from None
    source.uncounted.follow(started._jsq)
    source.alive = lambda: bool(started.isActive)
    loop.when_ended(finish)
    return SparkPublication(started, loop, checkpoint)


def _settings(config: Path | str | None, given: dict[str, Any], requirements: Any) -> Settings:
    """Return the settings of a stream whose events Spark reads.

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
    """Restore the start of a run that ended before its first slot was out: its events are in the checkpoint."""
    if settings.journal is None or settings.start_us is not None or not is_begun(settings.journal):
        return settings
    with open_journal(settings.journal) as journal:
        if journal.is_new or not checkpoint.belongs_to(journal.identity):
            return settings
        terms = journal.head().epoch.terms
    return replace(settings, start_us=terms.origin_us) if terms.length_us == settings.slot_us else settings


def _session_of(stream: Any) -> SparkSession:
    """Return the session of a streaming DataFrame of this process.

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
    """Return whether a plan, as Java has it, has a watermark somewhere."""
    children = plan.children()
    return plan.nodeName() == "EventTimeWatermark" or any(
        _has_watermark(children.apply(place)) for place in range(children.size())
    )
