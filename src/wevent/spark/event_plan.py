"""From events to each user's last cell of each slot, at rest and streaming.

Rows are decoded in Spark's Python workers by the readers of every other input (`streams`); the rest is Spark's own
expressions. No record can end a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import pyarrow
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.sql.window import Window

from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidInput, InvalidSettings
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import Decoded
from wevent.streams.duckdb_tables import TableReader, connect, load_frame
from wevent.streams.file_source import open_readers
from wevent.streams.inputs import require_columns
from wevent.streams.source import MALFORMED

COUNTS = 0
WHY = {name: number for number, name in enumerate((*MALFORMED, "before", "after", "unknown_cell"), start=1)}
"""The number of each reason why an event does not count, in the names of `wevent.streams.source`."""
OBSERVED = "wevent"
"""The name under which a query's progress says what became of its rows; private."""
_MOST_MOMENTS = 1 << 62
_EVENTS = "user string, slot bigint, moment bigint, why int"
_ARROW = pyarrow.schema(
    [("user", pyarrow.string()), ("slot", pyarrow.int64()), ("moment", pyarrow.int64()), ("why", pyarrow.int32())]
)
_CHUNK = 1 << 20  # texts of one Arrow chunk: they stay within 32-bit offsets


@dataclass(frozen=True)
class RowDecoder:
    """Decoder of rows in a Python worker of Spark, which gets no other settings than these."""

    settings: StreamSettings
    clock: SlotClock

    def read_columns(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Decode columns time, user and cell; the column `last` is the last slot an event of the batch may lie in."""
        settings = replace(self.settings, time_column="time", user_column="user", cell_column="cell")
        connection = None
        for batch in batches:
            connection = connection or connect()
            table = load_frame(pyarrow.Table.from_batches([batch]), ["time", "user", "cell"], connection=connection)
            last = batch["last"][0].as_py() if len(batch) else 0
            for piece in TableReader(table, settings).pieces():
                yield self._rows(piece.decoded, last)

    def read_files(
        self, paths: Sequence[str], last: int, batches: Iterable[pyarrow.RecordBatch]
    ) -> Iterator[pyarrow.RecordBatch]:
        """Decode the files whose numbers are in a column."""
        for number in (number for batch in batches for number in batch[0].to_pylist()):
            for reader in open_readers(replace(self.settings, inputs=(paths[number],))):
                for piece in reader.pieces():
                    yield self._rows(piece.decoded, last)

    def _rows(self, decoded: Decoded, last: int) -> pyarrow.RecordBatch:
        times, users, cells = decoded.batch
        since = times - self.clock.origin_us
        slots = since // self.clock.length_us + 1
        outside = (slots < 1, slots > last, cells < 0)
        whys = np.select(outside, (WHY["before"], WHY["after"], WHY["unknown_cell"]), COUNTS)
        moments = since % self.clock.length_us * len(self.settings.cells) + cells
        names = arrow_texts(StringColumn.from_texts([str(user) for user in users.values()])).combine_chunks()
        malformed = pyarrow.nulls(len(decoded.problems), pyarrow.int64())
        columns = (
            [names, malformed.cast(pyarrow.string())],
            [pyarrow.array(slots), malformed],
            [pyarrow.array(moments), malformed],
            [pyarrow.array(np.append(whys, decoded.problems + 1).astype(np.int32))],
        )
        return pyarrow.RecordBatch.from_arrays([pyarrow.concat_arrays(parts) for parts in columns], schema=_ARROW)


def arrow_texts(texts: StringColumn) -> pyarrow.ChunkedArray:
    """Return texts as Arrow text, without a Python string for each."""
    chunks = []
    for start in range(0, len(texts), _CHUNK):
        part = texts.where(slice(start, start + _CHUNK)).tight()
        offsets = np.concatenate(([0], np.cumsum(part.sizes))).astype(np.int32)
        buffers = pyarrow.py_buffer(offsets), pyarrow.py_buffer(np.ascontiguousarray(part.data))
        chunks.append(pyarrow.StringArray.from_buffers(len(part), *buffers))
    return pyarrow.chunked_array(chunks, type=pyarrow.string())


class EventPlan:
    """The plan by which events are read and folded.

    The moment of an event is its time and its cell in one number, the larger the later: of a user's events of a slot the one
    with the largest moment is the last. Of equal times the cell declared last wins, as live.

    Raises:
        InvalidSettings: for settings that only an input with an order can have, or slots too long for Spark's numbers.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock) -> None:
        self.settings, self.clock = settings, clock
        self._limit = settings.max_cells_per_user
        wanted = {one.name: getattr(settings, one.name) for one in fields(StreamSettings)}  # no others go to workers
        self._decoder = RowDecoder(StreamSettings(**{**wanted, "inputs": (), "frame": None}), clock)
        self._place = F.pmod(F.col("moment"), F.lit(len(settings.cells))).alias("place")
        if settings.slot_column is not None:
            raise InvalidSettings(
                "Rows in Spark have no order: with slot_column, which event of a slot came last is not known.",
                "Give a column of times.",
                key="slot_column",
            )
        if clock.length_us * len(settings.cells) >= _MOST_MOMENTS:
            raise InvalidSettings(
                f"Slots of {clock.length_us // 1_000_000:,} s and {len(settings.cells):,} cells are too many to number.",
                "Declare shorter slots or fewer cells.",
                key="slot",
            )

    def read(self, events: DataFrame, last: Column, now_us: Column | None = None) -> DataFrame:
        """Return every event as user, slot, moment, and why it does not count (0: it does).

        Args:
            events: with the columns that the settings name.
            last: the last slot an event may lie in; it may be made of the column `now_us`.
            now_us: when its batch began, in columns of the events.

        Raises:
            InvalidInput, InvalidEvents: for columns that cannot be those of events.
        """
        return _chosen(events, self.settings, last, now_us).mapInArrow(self._decoder.read_columns, _EVENTS)

    def read_files(self, session: SparkSession, paths: Sequence[str], last: int) -> DataFrame:
        """Return the events of files as `read` does; a task reads a whole file."""
        numbers = session.range(len(paths), numPartitions=len(paths))
        return numbers.mapInArrow(partial(self._decoder.read_files, paths, last), _EVENTS)

    def folded(self, read: DataFrame, slot: str = "slot") -> DataFrame:
        """Fold rows of `read` that count: the last one of a slot, user (with k > 1 also cell), and the number of events."""
        keys = [slot, "user"] if self._limit == 1 else [slot, "user", self._place]
        return read.groupBy(*keys).agg(F.max("moment").alias("moment"), F.count(F.lit(1)).alias("events"))

    def last_cells(self, folded: DataFrame) -> DataFrame:
        """Return slot, user, place and events, a row for each of a user's last k cells of a slot."""
        place = self._place
        if self._limit > 1:
            newest = Window.partitionBy("slot", "user").orderBy(F.desc("moment"))
            ranked = F.row_number().over(newest)
            place = F.when(ranked <= self._limit, place).alias(
                "place"
            )  # the others' events count as events all the same
        return folded.select("slot", "user", place, "events")

    def ended(self, events: DataFrame, beats: DataFrame, last: int | None, now_us: Column | None = None) -> DataFrame:
        """Return slot, user, moment and events, folded, of ended slots of a stream; heartbeats have no user.

        Rows come out when their slot has ended: the wall clock closes slots, and no event can (spec 1). Event time, as Spark
        sees it, is the number of the slot, as if slots were seconds. Two heartbeats come with every batch. The first lies
        ahead of every slot that has begun and sets the watermark by the batch's moment. So exactly the slots end whose end
        plus the grace has passed. The second lies in the last of these: its row comes out with them.

        An event of a slot that has not begun at the batch's moment is rejected first; one of a slot that has ended is dropped
        by Spark as late. A batch that is run again has the same moment.

        Args:
            events: a stream with the columns that the settings name.
            beats: a stream with a row in every batch.
            last: the last slot; None: no end.
            now_us: when a batch began, in columns of both; None: Spark knows.
        """
        now_us = batch_moment_us() if now_us is None else now_us
        begun = slot_number(F.col("now_us"), self.clock)
        read = self.read(events, begun if last is None else F.least(begun, F.lit(last)), now_us)
        reasons = [F.count_if(F.col("why") == number).alias(name) for name, number in WHY.items()]
        counted = read.observe(OBSERVED, F.count(F.lit(1)).alias("rows"), *reasons).where(F.col("why") == COUNTS)
        arriving = counted.select(F.timestamp_seconds("slot").alias("seen"), "user", "moment")
        ahead = slots_ahead(self.settings, self.clock)
        graced = slot_number(now_us - F.lit(self.settings.grace_us), self.clock)
        beating = beats.select(F.explode(F.array(graced + F.lit(ahead), graced - F.lit(1))).alias("slot")).select(
            F.timestamp_seconds("slot").alias("seen"),
            F.lit(None).cast(arriving.schema["user"].dataType).alias("user"),
            F.lit(0).cast("bigint").alias("moment"),
        )
        both = arriving.unionByName(beating).withWatermark("seen", f"{ahead + 1} seconds")
        return self.folded(both, "seen").withColumn("slot", F.unix_seconds("seen")).drop("seen")


def heartbeats(session: SparkSession) -> DataFrame:
    """Return a stream with a row per micro-batch."""
    source = session.readStream.format("rate-micro-batch")
    return source.option("rowsPerBatch", 1).option("numPartitions", 1).load()


def slots_ahead(settings: StreamSettings, clock: SlotClock) -> int:
    """Return the number of slots that a grace reaches over: so far ahead lies the first heartbeat of a batch."""
    return -(-settings.grace_us // clock.length_us)


def slot_number(micros: Column, clock: SlotClock) -> Column:
    """Return the slot of a time, also before the first one; whole numbers all the way."""
    since = micros - F.lit(clock.origin_us)
    length = F.lit(clock.length_us)
    return F.call_function("div", since - F.pmod(since, length), length) + F.lit(1)


def batch_moment_us() -> Column:
    """Return when the micro-batch began, by the driver's clock, in µs since 1970.

    One moment for all rows of a batch; it is in the offset log, so a batch that is run again has the same one.
    """
    return F.unix_micros(F.current_timestamp())


def _chosen(events: DataFrame, settings: StreamSettings, last: Column, now_us: Column | None) -> DataFrame:
    """Return the columns that the settings name as time, user and cell, beside the last slot.

    By place: names of a frame are the user's. They may have dots and backticks in them, differ by case alone, or be what
    columns are called in here.
    """
    wanted = list(settings.columns.values())
    require_columns("the DataFrame", events.columns, wanted)
    places = {name: events.columns.index(name) for name in wanted}
    found = StructType([events.schema.fields[place] for place in places.values()])
    try:
        sample = events.sparkSession.createDataFrame([], found).toArrow()
    except PySparkException as error:
        raise InvalidInput(
            f"The DataFrame has a column that cannot be read ({type(error).__name__}).",
            "Times, ids and labels need plain types.",
            path=None,
        ) from None
    TableReader(load_frame(sample, wanted, name="the DataFrame"), settings)  # refuses columns of other types
    more = [] if now_us is None else [now_us]
    numbered = events.select("*", *more).toDF(*map(str, range(len(events.columns))), *(["now_us"] if more else []))
    raw = [F.col(str(places[name])).alias(role) for role, name in settings.columns.items()]
    return numbered.select(*raw, last.cast("bigint").alias("last"))
