"""A stream with a script: what arrives when, in which order; and every way in which it can be counted."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.live_events import BatchSource
from tests.support.streams import DAY, SECOND, Wall
from wevent import Cells, Roster
from wevent.settings import StreamSettings
from wevent.settings.values import format_time
from wevent.spark.batch_source import SparkSource, ended_through, take_rows
from wevent.spark.class_counts import ClassCounter
from wevent.spark.event_plan import EventPlan
from wevent.spark.input_files import FolderSource
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource
from wevent.streams.source import Source
from wevent.streams.times import TimeReader

SLOT = 60 * SECOND
CLOCK = SlotClock(DAY + 123_457, SLOT)  # not on a whole millisecond
LAST = 4
GRACE = 10 * SECOND
PEOPLE = ("anna", "7", "007", "eve", "bob", "12", "käthe", "x" * 256)
STRANGERS = ("zoe", "13", "Anna", "aaron", "0x7")
CELLS = ("north", "south", "0", "ö")


class Raw(NamedTuple):
    """An event as it may stand in an input: any part of it may be no event."""

    time: str | None
    user: str | None
    cell: str | None


@dataclass(frozen=True)
class Arrival:
    """What arrives at a moment."""

    now_us: int
    events: tuple[Raw, ...]


def settings(**changes: Any) -> StreamSettings:
    given: dict[str, Any] = {"cells": Cells.of(list(CELLS)), "slot_us": SLOT, "start_us": CLOCK.origin_us}
    return StreamSettings(**{"inputs": ("-",), "grace_us": GRACE, **given, **changes})


def script(seed: int, cells: tuple[str, ...] = CELLS) -> list[Arrival]:
    """Shuffled, duplicated, late, malformed, from the far future, of people and cells that nobody knows."""
    chance = random.Random(seed)
    arrivals: list[Arrival] = []
    for slot in range(1, LAST + 2):  # every other time the slot before has closed
        now_us = CLOCK.start_of(slot) + (55, 5, 25)[slot % 3] * SECOND
        events = [_event(chance, now_us, cells) for _ in range(60)]
        events += chance.choices(events, k=5)
        if arrivals:
            events += chance.choices([event for arrival in arrivals for event in arrival.events], k=10)
        chance.shuffle(events)
        arrivals.append(Arrival(now_us, tuple(events)))
    return arrivals


def _event(chance: random.Random, now_us: int, cells: tuple[str, ...]) -> Raw:
    back = chance.choice((SLOT // 4, SLOT, 3 * SLOT))
    time = format_time(now_us - chance.randrange(-SLOT // 20, back))
    user = chance.choice((*PEOPLE, *PEOPLE, *STRANGERS, "gone"))
    cell = chance.choice((*cells, *cells, "nowhere"))
    odd = chance.randrange(40)
    if odd < 8:
        time = (
            "2999-01-01T00:00:00Z",
            "2019-12-31T23:00:00-05:00",
            "yesterday",
            None,
            time.removesuffix("Z"),
            f"{(now_us - chance.randrange(SLOT)) // 1000 / 1000}",
            "99999999999",
            "NaN",
        )[odd]
    if 8 <= odd < 13:
        user = ("", None, "x" * 257, "an\0na", "ﷺ" * 90)[odd - 8]
    if 13 <= odd < 15:
        cell = ("", None)[odd - 13]
    return Raw(time, user, cell)


def time_us(event: Raw) -> int | None:
    """When an event was, by the book."""
    return None if event.time is None else TimeReader(None, "s").one(event.time)


def timely(arrivals: list[Arrival]) -> list[Raw]:
    """What has come while its slot had begun and not closed, by the book; and what is malformed."""
    kept = []
    for arrival in arrivals:
        begun, closed = CLOCK.slot_of(arrival.now_us), CLOCK.slot_of(arrival.now_us - GRACE) - 1
        for event in arrival.events:
            when = time_us(event)
            if when is None or closed < CLOCK.slot_of(when) <= begun:
                kept.append(event)
    return kept


def late(arrivals: list[Arrival]) -> int:
    """How many rows Spark drops as late: of each arrival a user's events of one slot once."""
    dropped = set()
    for number, arrival in enumerate(arrivals):
        closed = CLOCK.slot_of(arrival.now_us - GRACE) - 1
        for event in arrival.events:
            when, user = time_us(event), event.user or ""
            if when is not None and 0 < len(user.encode()) <= 256 and "\0" not in user and event.cell in CELLS:
                slot = CLOCK.slot_of(when)
                if 1 <= slot <= closed:
                    dropped.add((number, slot, user))
    return len(dropped)


def write_parquet(path: Path, events: list[Raw]) -> str:
    columns = zip(*events, strict=True)
    names = ("time", "user", "cell")
    table = {name: pyarrow.array(column, pyarrow.string()) for name, column in zip(names, columns, strict=True)}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return str(path)


def by_files(folder: Path, arrivals: list[Arrival], **changes: Any) -> FileSource:
    """Everything that came in time, in files."""
    events = timely(arrivals)
    paths = [write_parquet(folder / f"files-{part}.parquet", events[part::2]) for part in range(2)]
    return FileSource(settings(inputs=tuple(paths), **changes), CLOCK, LAST)


def by_spark_files(spark: SparkSession, folder: Path, arrivals: list[Arrival], **changes: Any) -> FolderSource:
    events = timely(arrivals)
    paths = [write_parquet(folder / f"spark-{part}.parquet", events[part::3]) for part in range(3)]
    return FolderSource(spark, settings(inputs=tuple(paths), **changes), CLOCK, LAST)


def by_log(folder: Path, arrivals: list[Arrival], **changes: Any) -> BatchSource:
    """Batches as the service takes them in."""
    wall = Wall(CLOCK.origin_us)
    source = BatchSource(settings(**changes), CLOCK, LAST, folder=folder / "log.events", now_us=wall)
    source.resume({"slot": 0, "time_unit": "s"})
    for number, arrival in enumerate(arrivals):
        wall.now_us = arrival.now_us
        lines = "".join(json.dumps(event._asdict()) + "\n" for event in arrival.events)
        source.receive("platform", str(number), lines.encode())
    wall.now_us = CLOCK.start_of(LAST + 2)
    return source


class Streamed:
    """A query whose batches are a script: each arrival is a micro-batch, whose moment is the arrival's.

    Before each come two batches with nothing but a heartbeat: Spark drops what is late by the batch before the last one.

    Args:
        spark: where it runs.
        folder: for its input and its checkpoint.
        arrivals: the script.
        **changes: of the settings.
    """

    def __init__(self, spark: SparkSession, folder: Path, arrivals: list[Arrival], **changes: Any) -> None:
        self._spark, self._folder = spark, folder
        chosen = settings(**changes)
        self._plan = EventPlan(chosen, CLOCK)
        self.source = SparkSource(chosen, CLOCK, LAST)
        self._counter = ClassCounter(self._plan)
        self.ended: list[int] = []
        self._write(arrivals)

    def _write(self, arrivals: list[Arrival]) -> None:
        place = self._folder / "arriving"
        place.mkdir()
        end = Arrival(CLOCK.start_of(LAST + 2), ())
        batches = [batch for arrival in (*arrivals, end) for batch in (*[replace(arrival, events=())] * 2, arrival)]
        for number, arrival in enumerate(batches):
            rows = [{"beat": False, **event._asdict()} for event in arrival.events] + [{"beat": True}]
            file = place / f"{number:04d}.json"
            file.write_text("".join(json.dumps({"now_us": arrival.now_us, **row}) + "\n" for row in rows))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def start(self) -> StreamingQuery:
        """Hand every batch to the source."""
        return self._start(partial(take_rows, self.source, self._counter))

    def watch(self) -> StreamingQuery:
        """Only write down what ends when."""
        return self._start(self._look)

    def _start(self, take: Callable[[Any, int], None]) -> StreamingQuery:
        schema = "now_us bigint, beat boolean, time string, user string, cell string"
        read = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        events, beats = (read.json(str(self._folder / "arriving")) for _ in range(2))
        rows = self._plan.ended(events.where("not beat"), beats.where("beat"), LAST, F.col("now_us"))
        writer = rows.writeStream.outputMode("append").foreachBatch(take)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(availableNow=True)
        query = writer.start()
        self.source.uncounted.query = query._jsq
        self.source.alive = lambda: bool(query.isActive)
        return query

    def _look(self, rows: Any, batch: int) -> None:
        self.ended.append(ended_through(rows))


def count_all(source: Source, roster_of: Callable[[int], Roster], at_once: int = 1) -> Iterator[tuple[int, Any, Any]]:
    """Slot after slot as the loop asks for them, committed as it commits them: slot, matrix, rejected."""
    first = 1
    while first <= LAST:
        counted = list(source.count(roster_of(first), first, at_once))
        assert counted, f"slot {first} did not come"
        for one in counted:
            yield one.slot, one.counts.matrix.tolist(), one.counts.reasons
        first = counted[-1].slot + 1
        source.forget(first - 1)
