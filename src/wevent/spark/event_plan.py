"""From a DataFrame of events to each user's last cell of each slot, at rest and streaming.

Everything is Spark's own expressions: no row passes through Python, and none can end the query.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType
from pyspark.sql.window import Window

from wevent.errors import InvalidSettings
from wevent.settings import StreamSettings
from wevent.spark.columns import identities, instants, with_places
from wevent.streams.clock import SlotClock
from wevent.streams.inputs import require_columns
from wevent.streams.rejections import MALFORMED

COUNTS = 0
WHY = {name: number for number, name in enumerate((*MALFORMED, "before", "after", "unknown_cell"), start=1)}
"""The number of each reason why an event does not count, in the names of `wevent.streams.rejections`."""
OBSERVED = "wevent"
"""The name under which a query's progress says what became of its rows; private."""
_MOST_MOMENTS = 1 << 62


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
        """
        clock, names, cells = self.clock, self.settings.columns, self.settings.cells
        raw, kinds = _chosen(events, names, now_us)
        micros, unzoned = instants(F.col("raw_time"), kinds["time"], self.settings)
        users, _ = identities(F.col("raw_user"), kinds["user"], names["user"])
        labels, numbered = identities(F.col("raw_cell"), kinds["cell"], names["cell"])
        rows = with_places(raw.withColumns({"user": users, "micros": micros}), labels, numbered, cells)
        slot = slot_number(F.col("micros"), clock)
        no_time = F.when(unzoned, WHY["no_offset"]).otherwise(WHY["no_time"])
        why = F.when(F.col("user").isNull(), WHY["no_user"]).when(labels.isNull(), WHY["no_cell"])
        why = why.when(F.col("micros").isNull(), no_time).when(slot < 1, WHY["before"]).when(slot > last, WHY["after"])
        why = why.when(F.col("place").isNull(), WHY["unknown_cell"]).otherwise(COUNTS)
        since = F.pmod(F.col("micros") - F.lit(clock.origin_us), F.lit(clock.length_us))
        moment = since * F.lit(len(cells)) + F.col("place")
        return rows.select("user", slot.alias("slot"), moment.alias("moment"), why.alias("why"))

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


def _chosen(
    events: DataFrame, names: Mapping[str, str], now_us: Column | None
) -> tuple[DataFrame, dict[str, DataType]]:
    """Return the columns that the settings name, and no other, as raw_time, …; and their types.

    By place: names of a frame are the user's. They may have dots and backticks in them, differ by case alone, or be what
    columns are called in here.
    """
    require_columns("the DataFrame", events.columns, list(names.values()))
    places = {role: events.columns.index(name) for role, name in names.items()}
    more = [] if now_us is None else [now_us]
    numbered = events.select("*", *more).toDF(*map(str, range(len(events.columns) + len(more))))
    raw = [F.col(str(place)).alias(f"raw_{role}") for role, place in places.items()]
    raw += [F.col(str(len(events.columns))).alias("now_us") for _ in more]
    return numbered.select(*raw), {role: events.schema.fields[place].dataType for role, place in places.items()}
