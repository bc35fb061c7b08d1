"""No event's time closes a slot (spec 1): Spark's watermark is the heartbeats' alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.arrivals import CLOCK, GRACE, SLOT, Arrival, Raw, Streamed
from tests.support.commands import PATIENCE_S, wait_for
from tests.support.streams import SECOND
from wevent.settings.values import format_time
from wevent.spark.event_plan import batch_moment_us, heartbeats

MOMENTS = [CLOCK.start_of(1) + offset * SECOND for offset in (69, 71, 200)]


def event(time_us: int) -> Raw:
    return Raw(format_time(time_us), "anna", "north")


def ended(spark: SparkSession, folder: Path, arrivals: list[Arrival]) -> list[tuple[int, str]]:
    """What each batch says has ended, and Spark's watermark in it."""
    folder.mkdir()
    streamed = Streamed(spark, folder, arrivals)
    query = streamed.watch()
    assert query.awaitTermination(PATIENCE_S)
    marks = [progress.eventTime["watermark"] for progress in query.recentProgress]
    return list(zip(streamed.ended, marks, strict=True))


def test_no_time_of_an_event_moves_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    quiet = [Arrival(now_us, ()) for now_us in MOMENTS]
    hostile = []
    for arrival in quiet:
        rest = CLOCK.start_of(CLOCK.slot_of(arrival.now_us) + 1) - 1 - arrival.now_us
        ahead = (-1, 0, 1, rest, rest + 1, SLOT, 10 * SLOT, 10**9 * SECOND, -10 * SLOT)
        hostile.append(replace(arrival, events=tuple(event(arrival.now_us + more) for more in ahead)))
    found = ended(spark, tmp_path / "hostile", hostile)
    assert found == ended(spark, tmp_path / "quiet", quiet)
    told = [slot for slot, _ in found if slot]
    assert told == [1, 3, 4]  # 69 s is within the grace; at 200 s slot 3 has ended; the last heartbeats end slot 4
    assert GRACE == 10 * SECOND


def test_a_batch_has_one_heartbeat_whose_moment_the_offset_log_keeps(spark: SparkSession, tmp_path: Path) -> None:
    """What the closing of slots rests on, in the Spark that is installed."""
    seen: list[list[int]] = []

    def take(rows: Any, batch: int) -> None:
        seen.append([row["now"] for row in rows.collect()])

    beating = heartbeats(spark).select(batch_moment_us().alias("now"))
    query = beating.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).start()
    wait_for(lambda: len(seen) >= 4, "batches")
    query.stop()
    for batch in range(3):
        log = (tmp_path / "offsets" / str(batch)).read_text().splitlines()
        assert seen[batch] == [json.loads(log[1])["batchTimestampMs"] * 1000]
