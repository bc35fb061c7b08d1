"""`wevent publish FOLDER --engine spark`: input files as a DataFrame, counted by `wevent.spark.class_counts`.

Rows and lines are read as the other engines read them: Parquet by Spark's own expressions, text by the same decoders in
Spark's Python workers. Rows of Spark have no order: among events at the same microsecond the cell declared last wins.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, reduce
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow
import pyarrow.parquet
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from wevent.counting.counts import Counts, Rejected
from wevent.counting.roster import Roster
from wevent.errors import InvalidEvents, InvalidInput, InvalidSettings
from wevent.settings import StreamSettings
from wevent.spark.class_counts import ClassCounter, int_columns
from wevent.spark.columns import of_nanoseconds, shifted
from wevent.spark.event_plan import COUNTS, WHY, EventPlan
from wevent.spark.spark_session import activate, copy_session, session_for_files
from wevent.streams.clock import SlotClock
from wevent.streams.duckdb_tables import TableReader
from wevent.streams.file_source import Reader, open_readers
from wevent.streams.inputs import InputFile, open_decoder
from wevent.streams.rejections import MALFORMED
from wevent.streams.source import SlotCounts, Source

READING = {
    "spark.sql.caseSensitive": "true",  # as for every other engine, user and User are two
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # or a file that has any is refused
}
"""Settings of a session in which files are read."""

_CANCEL_S = 0.2
_LINES = 20_000  # decoded at once
_TEXT_SCHEMA = "user string, slot bigint, moment bigint, why int"

TextRow = tuple[str | None, int | None, int | None, int]


def open_folder(settings: StreamSettings, clock: SlotClock, last: int | None) -> FolderSource:
    """Open files that a Spark on this machine counts, or the one that its configuration names.

    Raises:
        InvalidSettings: for live lines, or without an end.
        InvalidInput, InvalidEvents: as of `wevent.streams.file_source.open_readers`.
    """
    if settings.is_live or settings.frame is not None or last is None:
        raise InvalidSettings(
            "The engine spark counts files up to a declared end, not live lines or frames.",
            "Streams and frames of Spark are for wevent.spark.publish and wevent.spark.count.",
            key="engine",
        )
    return FolderSource(session_for_files(), settings, clock, last)


class FolderSource(Source):
    """Counts the slots 1 to `last` of a declared clock from the settings' files, many slots in a job.

    Args:
        session: where Spark runs; it is left as it is, and nothing is kept there after the last slot, `stop` or an error.
        settings: which files, which columns.
        clock: when slots begin.
        last: the last slot.

    Raises:
        InvalidInput: for missing or damaged files, unknown formats, missing columns.
        InvalidEvents: for columns of times without an offset when none is declared.
    """

    def __init__(self, session: SparkSession, settings: StreamSettings, clock: SlotClock, last: int) -> None:
        self._plan = EventPlan(settings, clock)
        readers = open_readers(settings)  # checks what is declared, as for every other engine
        self._paths = [reader.file.path for reader in readers]
        super().__init__(settings, last, len(self._paths))
        self._caller, self._session = session, copy_session(session, READING)
        self._end = last
        self._tag = f"wevent-{uuid4().hex}"  # of its own jobs: others may run in the same application
        self._counter = ClassCounter(self._plan)
        self._folded: DataFrame | None = None
        self._held: tuple[Roster | None, dict[int, Counts]] = None, {}  # counted already: a job counts many slots
        self._sizes: dict[tuple[int, int], int] = {}  # rows by slot and reason, 0 for no slot
        self._working = False
        with self._jobs():
            self._rows = read_files(self._session, self._plan, readers, last)

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in self._slots(first, most):
            if not self._stopped and (self._held[0] is not roster or slot not in self._held[1]):
                with self._jobs():
                    self._held = roster, self._counted(roster, slot)
            if self._stopped:
                return
            counts = self._held[1].pop(slot)
            if slot == self._end:
                self._release()
            unknown_cell = self._sizes.get((slot, WHY["unknown_cell"]), 0)
            counts = Counts(counts.matrix, counts.reasons.plus(Rejected(unknown_cell=unknown_cell)))
            self._uncounted.events += self._sizes.get((slot, COUNTS), 0) + unknown_cell
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def stop(self) -> None:
        """End `count`: a job that runs is cancelled, and slots that were counted before are not returned.

        A signal may come while this thread waits for Java, which hears one thread at a time: another thread cancels.
        """
        super().stop()
        threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        """Cancel the running job, repeatedly, since the next one may be about to start; then drop events and roster."""
        while self._working:
            with suppress(Py4JError, AttributeError):  # Java, or the context, was stopped
                self._session.sparkContext.cancelJobsWithTag(self._tag)
            time.sleep(_CANCEL_S)
        self._release()

    def _release(self) -> None:
        """Drop events and roster from Spark."""
        folded, self._folded, self._held = self._folded, None, (None, {})
        with suppress(PySparkException, Py4JError):  # Java may have been stopped
            self._counter.release()
            if folded is not None:
                folded.unpersist()

    @contextmanager
    def _jobs(self) -> Iterator[None]:
        """Run jobs that `stop` cancels; after an error Spark keeps nothing.

        Raises:
            InvalidInput: if Spark or Arrow cannot read a file.
        """
        self._working = True
        try:
            self._session.sparkContext.addJobTag(self._tag)
            yield
        except BaseException as error:
            self._release()
            if isinstance(error, Exception):  # a signal may have torn a call of Java: answers are mixed up then
                self._leave()
            if not isinstance(error, PySparkException | Py4JError | pyarrow.ArrowException | OSError):
                raise
            if not self._stopped:  # or the job was cancelled
                names = ", ".join(repr(file) for file in self._paths[:3])
                problem = f"Spark cannot read the input files {names} ({type(error).__name__})."
                fix = "Check that none is cut off or still being written, and that Spark knows its types."
                raise InvalidInput(problem, fix, path=self._paths[0]) from None
        else:
            self._leave()
        finally:
            self._working = False

    def _leave(self) -> None:
        """Restore the caller's thread."""
        with suppress(Py4JError, AttributeError):  # Java, or the context, was stopped meanwhile
            self._caller.sparkContext.removeJobTag(self._tag)
            activate(self._caller)

    def _counted(self, roster: Roster, first: int) -> dict[int, Counts]:
        """Count slots from the first on, as many as one job may."""
        if not self._sizes:
            self._sizes = self._survey()
        if self._folded is None:  # sorted: a job skips rows of other slots
            folded = self._plan.folded(self._rows.where(F.col("why") == COUNTS))
            self._folded = folded.sortWithinPartitions("slot").persist()
        return self._counter.count(self._folded, roster, first, self._end)

    def _survey(self) -> dict[tuple[int, int], int]:
        """Return the number of rows by slot and reason; note those that are malformed or outside the clock."""
        slot = F.when(F.col("why").isin(COUNTS, WHY["unknown_cell"]), F.col("slot")).otherwise(0)
        found = int_columns(self._rows.groupBy(slot.alias("slot"), "why").count())
        keys = zip(found["slot"].tolist(), found["why"].tolist(), strict=True)
        sizes = dict(zip(keys, found["count"].tolist(), strict=True))
        self._uncounted.malform([sizes.get((0, WHY[name]), 0) for name in MALFORMED])
        self._uncounted.outside(sizes.get((0, WHY["before"]), 0), sizes.get((0, WHY["after"]), 0))
        if self._uncounted.malformed and self._settings.strict:
            fix = "`wevent check` says where; or leave strict out to count and skip them."
            raise InvalidEvents("Some events are malformed, and strict allows only well-formed events.", fix)
        return sizes


def read_files(session: SparkSession, plan: EventPlan, readers: Sequence[Reader], last: int) -> DataFrame:
    """Return all rows of these files, as `EventPlan.read` returns those of a frame.

    Args:
        session: where Spark runs, with the settings `READING`.
        plan: how events are read.
        readers: the files.
        last: the last slot.

    Raises:
        PySparkException, ArrowException, OSError: if Spark or Arrow cannot make out what is in a file.
    """
    parts: list[DataFrame] = []
    alike: dict[tuple[str, ...], list[InputFile]] = {}  # files that are read in the same way
    for reader in readers:
        if isinstance(reader, TableReader):
            alike.setdefault(tuple(reader.expressions), []).append(reader.file)
        else:
            parts.append(_text_part(session, plan, reader.file, last))
    for files in alike.values():
        parts += _parquet_parts(session, plan, files, last)
    if len({part.schema["user"].dataType for part in parts}) > 1:
        parts = [part.withColumn("user", F.col("user").cast("string")) for part in parts]
    return reduce(DataFrame.unionByName, parts)


def _parquet_parts(
    session: SparkSession, plan: EventPlan, files: Sequence[InputFile], last: int
) -> Iterator[DataFrame]:
    """Return a part for each type of times: read together, Spark takes nanoseconds for microseconds, and says nothing."""
    name, alike = plan.settings.columns["time"], dict[Any, list[str]]()
    for file in files:
        alike.setdefault(_type_of(file, name), []).append(_address(file))
    for kind, addresses in alike.items():
        events = _with_instants(session.read.parquet(*addresses), name, kind, plan.settings.timezone_us or 0)
        yield plan.read(events, F.lit(last))


def _type_of(file: InputFile, name: str) -> Any:
    """Return the type of a column by Arrow, which sees the unit of times."""
    with open(file.path, "rb") as opened:
        kind = pyarrow.parquet.read_schema(opened).field(name).type
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _with_instants(events: DataFrame, name: str, kind: Any, timezone_us: int) -> DataFrame:
    """Read times as the other engines do where Spark does not.

    To Spark nanoseconds are whole numbers here, and times of the old kind (INT96), which have no offset, instants in UTC.
    """
    if not pyarrow.types.is_timestamp(kind):
        return events
    place = events.columns.index(name)
    found, column = events.schema.fields[place].dataType, F.col(str(place))
    offset_us = timezone_us if kind.tz is None else 0
    if isinstance(found, T.LongType):
        read = of_nanoseconds(column, offset_us)
    elif isinstance(found, T.TimestampType) and offset_us:
        read = shifted(column, offset_us)
    else:
        return events
    numbered = events.toDF(*map(str, range(len(events.columns))))  # by place: names may have anything in them
    return numbered.withColumn(str(place), read).toDF(*events.columns)


def _address(file: InputFile) -> str:
    """Return the address of a file of this machine, which is no glob and not in Spark's own file system."""
    path = os.path.abspath(file.path)
    for sign in "\\{}[]*?":
        path = path.replace(sign, "\\" + sign)
    return f"file://{path}"


def _text_part(session: SparkSession, plan: EventPlan, file: InputFile, last: int) -> DataFrame:
    """Return the lines of a file, decoded in Spark's Python workers."""
    lines = session.read.option("lineSep", "\n").text(_address(file))
    lines = lines.select(F.col("value").cast("binary"), F.col("_metadata.file_block_start"))
    sent = replace(plan.settings, inputs=(), frame=None)  # can go to a worker
    decoded = lines.rdd.mapPartitions(partial(_decode, file, sent, plan.clock, last))
    return session.createDataFrame(decoded, _TEXT_SCHEMA, verifySchema=False)


def _decode(
    file: InputFile, settings: StreamSettings, clock: SlotClock, last: int, rows: Iterable[Any]
) -> Iterator[TextRow]:
    """Decode the lines of a partition, each with the start of its block in the file."""
    decoder = open_decoder(file, settings)
    lines = _after_header(rows) if file.columns else (line for line, _ in rows)
    while chunk := list(islice(lines, _LINES)):
        decoded = decoder.decode(b"".join(bytes(line) + b"\n" for line in chunk))
        for problem in decoded.problems.tolist():
            yield None, None, None, problem + 1
        events, since = decoded.batch, decoded.batch.times - clock.origin_us
        slots = since // clock.length_us + 1
        outside = (slots < 1, slots > last, events.cells < 0)
        whys = np.select(outside, (WHY["before"], WHY["after"], WHY["unknown_cell"]), COUNTS)
        moments = since % clock.length_us * len(settings.cells) + events.cells
        numbers = (column.tolist() for column in (slots, moments, whys))
        yield from zip(map(str, events.users.values()), *numbers, strict=True)


def _after_header(rows: Iterable[Any]) -> Iterator[bytes]:
    """Return all lines but the header: the first line of the block that starts at 0."""
    headed = True
    for line, start in rows:
        if headed and start == 0:
            headed = False
        else:
            yield line
