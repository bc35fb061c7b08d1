"""Slots of a stream are closed by the wall clock: heartbeats drive the watermark, and no event can (spec 1).

Event time, as Spark sees it, is the number of the slot, as if slots were seconds. Two heartbeats come with every batch. One
lies so far ahead that no event which has begun can be later: with the batch's own moment it sets the watermark, so that
exactly the slots end whose end plus the grace has passed. The other lies in the last of these: its row comes out of Spark
together with everything up to that slot, and says so.

An event of a slot that has not begun at the batch's moment is rejected first; one of a slot that has ended is dropped by
Spark as late. A batch that is run again has the same moment.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from wevent.spark.event_plan import COUNTS, EventPlan, tally
from wevent.spark.instants import batch_moment_us, slot_number
from wevent.streams.clock import SlotClock
from wevent.streams.stream_settings import StreamSettings

OBSERVED = "wevent"
"""The name under which a query's progress says what became of its rows; private."""


def heartbeats(session: SparkSession) -> DataFrame:
    """A row per micro-batch."""
    source = session.readStream.format("rate-micro-batch")
    return source.option("rowsPerBatch", 1).option("numPartitions", 1).load()


class Closing:
    """Turns a stream into rows that come out when their slot has ended.

    Args:
        settings: columns, times, cells, k and grace.
        clock: when slots begin.
        last: the last slot; None: no end.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock, last: int | None) -> None:
        self.plan = EventPlan(settings, clock)
        self._clock, self._last = clock, last
        self._grace_us = settings.grace_us
        self.ahead = -(-settings.grace_us // clock.length_us)  # slots that a grace reaches over

    def ended(self, events: DataFrame, beats: DataFrame, now_us: Column | None = None) -> DataFrame:
        """slot, user, moment and events (with k > 1 also place), folded, of slots that have ended; heartbeats have no user.

        Args:
            events: a stream with the columns that the settings name.
            beats: a stream with a row in every batch.
            now_us: when a batch began, in columns of both; None: Spark knows.
        """
        now_us = batch_moment_us() if now_us is None else now_us
        arriving = self._arriving(events, now_us)
        columns = [column for column in arriving.columns if column not in ("seen", "moment")]
        nothing = [F.lit(None).cast(arriving.schema[name].dataType).alias(name) for name in columns]
        beating = self._beating(beats, now_us).select("seen", F.lit(0).cast("bigint").alias("moment"), *nothing)
        both = arriving.unionByName(beating).withWatermark("seen", f"{self.ahead + 1} seconds")
        folded = self.plan.fold(both, "seen")
        return folded.withColumn("slot", F.unix_seconds("seen")).drop("seen")

    def _arriving(self, events: DataFrame, now_us: Column) -> DataFrame:
        """Events that may count: of slots that have begun."""
        begun = slot_number(F.col("now_us"), self._clock.origin_us, self._clock.length_us)
        last = begun if self._last is None else F.least(begun, F.lit(self._last))
        read = self.plan.read(events, last, now_us)
        counted = read.observe(OBSERVED, *tally()).where(F.col("why") == COUNTS)
        keys = [name for name in self.plan.keys("slot") if name != "slot"]
        return counted.select(F.timestamp_seconds("slot").alias("seen"), *keys, self.plan.moment().alias("moment"))

    def _beating(self, beats: DataFrame, now_us: Column) -> DataFrame:
        graced = slot_number(now_us - F.lit(self._grace_us), self._clock.origin_us, self._clock.length_us)
        slots = F.array(graced + F.lit(self.ahead), graced - F.lit(1))
        return beats.select(F.explode(slots).alias("slot")).select(F.timestamp_seconds("slot").alias("seen"))
