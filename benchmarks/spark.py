"""Spark on two cores: wevent's counting against the plain group-by of the same rows, and what a cluster is sized by.

Every pair runs in one session, one after the other, several times; ratios are of the best rounds. Plain is what anybody
would write who only wants the histogram: each user's last cell of each slot, then how many are in each cell. wevent's adds
people's classes, cells by declaration, rejects, heartbeats, and the matrix in the driver.
"""

import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import wevent
import wevent.spark
from benchmarks import report
from wevent.spark.event_plan import EventPlan, heartbeats

EVENTS, USERS, CELLS, CLASSES, SLOTS = 4_000_000, 300_000, 100, 25, 10
STREAMED, FILES = 2_000_000, 8
SLOT_S = 60
ROUNDS = 3
START = 1_767_225_600  # a minute


def session(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("wevent benchmark")
    for name, value in {
        "spark.io.encryption.enabled": "true",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedStages": "10000",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def people() -> dict[int, wevent.Requirement]:
    kinds = [wevent.Requirement(20 + 10 * (kind // 5), f"{0.5 + kind % 5 / 5:.1f}") for kind in range(CLASSES)]
    return {user: kinds[user % CLASSES] for user in range(USERS)}


def write_events(path: Path, number: int, first_us: int, length_us: int, seed: int = 1) -> None:
    chance = np.random.default_rng(seed)
    times = np.sort(first_us + chance.integers(0, length_us, number))
    table = {
        "time": pyarrow.array(times, type=pyarrow.timestamp("us", "UTC")),
        "user": chance.integers(0, USERS, number),
        "cell": np.floor(CELLS * chance.random(number) ** 1.5).astype(np.int64),
    }
    pyarrow.parquet.write_table(pyarrow.table(table), path, row_group_size=250_000)


def best(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def shuffled(spark: SparkSession, work: Callable[[], Any]) -> float:
    """Bytes that a piece of work writes to shuffles, as Spark's own page says."""
    before = _shuffle_total(spark)
    work()
    time.sleep(1.0)
    return _shuffle_total(spark) - before


def _shuffle_total(spark: SparkSession) -> int:
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def at_rest(spark: SparkSession, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """A file of events, counted plainly and by wevent."""
    path = folder / "rest.parquet"
    write_events(path, EVENTS, START * 1_000_000, SLOTS * SLOT_S * 1_000_000)
    events, held = spark.read.parquet(str(path)), people()
    window = F.window("time", f"{SLOT_S} seconds")

    def plain() -> list[Any]:
        last = events.groupBy(window, "user").agg(F.max_by("cell", "time").alias("cell"))
        return last.groupBy("window", "cell").count().collect()

    begun, ended = (datetime.fromtimestamp(START + at, UTC).isoformat() for at in (0, SLOTS * SLOT_S))

    def ours() -> list[Any]:
        span = {"slot": f"{SLOT_S}s", "start": begun, "end": ended}
        return wevent.spark.count(events, requirements=held, cells=CELLS, **span).collect()

    plain(), ours()  # both are compiled
    plain_s, ours_s = best(plain), best(ours)
    plain_bytes, ours_bytes = shuffled(spark, plain) / EVENTS, shuffled(spark, ours) / EVENTS
    row = {
        "what": f"at rest: {EVENTS:,} events, {USERS:,} people, {CELLS} cells, {SLOTS} slots",
        "plain, s": f"{plain_s:.2f}",
        "wevent, s": f"{ours_s:.2f}",
        "wevent / plain": f"{ours_s / plain_s:.2f}",
        "events/s per core, plain": f"{EVENTS / plain_s / 2:,.0f}",
        "events/s per core, wevent": f"{EVENTS / ours_s / 2:,.0f}",
    }
    notes = [
        f"Shuffle, bytes per event: plain {plain_bytes:.1f}, wevent {ours_bytes:.1f} (each user's last cell of a slot)."
    ]
    return row, notes


def streaming(spark: SparkSession, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Files that arrive one per batch within one long slot: what taking events in costs, and the state they leave."""
    source = folder / "stream"
    source.mkdir()
    length_s = 6 * 3600
    origin = int(time.time()) // length_s * length_s - length_s  # all of it has begun, none of it ends meanwhile
    for number in range(FILES):
        now_us = int(time.time() * 1e6) - 60_000_000
        write_events(source / f"{number:03d}.parquet", STREAMED // FILES, now_us, 30_000_000, seed=number)
    schema = spark.read.parquet(str(source)).schema
    totals: dict[str, list[float]] = {"plain": [], "wevent": []}
    state: dict[str, tuple[float, float]] = {}
    for turn in range(ROUNDS):
        for name in totals:
            events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
            place = folder / f"checkpoint-{name}-{turn}"
            taken = (
                _plain_stream(events, place) if name == "plain" else _our_stream(spark, events, place, origin, length_s)
            )
            totals[name].append(taken[0])
            state[name] = taken[1:]
    plain_s, ours_s = min(totals["plain"]), min(totals["wevent"])
    row = {
        "what": f"streaming: {STREAMED:,} events in {FILES} batches, state of {USERS:,} people",
        "plain, s": f"{plain_s:.2f}",
        "wevent, s": f"{ours_s:.2f}",
        "wevent / plain": f"{ours_s / plain_s:.2f}",
        "events/s per core, plain": f"{STREAMED / plain_s / 2:,.0f}",
        "events/s per core, wevent": f"{STREAMED / ours_s / 2:,.0f}",
    }
    memory, disk = state["wevent"]
    plainly = state["plain"]
    notes = [
        f"State, bytes per active user of an open slot: in memory {memory:.0f} (plain {plainly[0]:.0f}), in the checkpoint "
        f"{disk:.0f} (plain {plainly[1]:.0f})."
    ]
    return row, notes


def _plain_stream(events: DataFrame, place: Path) -> tuple[float, float, float]:
    window = F.window("time", "6 hours")
    last = events.withWatermark("time", "6 hours").groupBy(window, "user").agg(F.max_by("cell", "time").alias("cell"))
    return _timed(last, place)


def _our_stream(
    spark: SparkSession, events: DataFrame, place: Path, origin: int, length_s: int
) -> tuple[float, float, float]:
    from wevent.settings import StreamSettings
    from wevent.streams.clock import SlotClock

    clock = SlotClock(origin * 1_000_000, length_s * 1_000_000)
    settings = StreamSettings(
        inputs=("-",), cells=wevent.Cells.of(CELLS), slot_us=clock.length_us, start_us=clock.origin_us
    )
    ended = EventPlan(settings, clock).ended(events, heartbeats(spark), None)
    return _timed(ended, place)


def _timed(rows: DataFrame, place: Path) -> tuple[float, float, float]:
    """Run every file through a query; seconds of the batches with events, state bytes per row in memory and on disk."""
    writer = rows.writeStream.outputMode("append").foreachBatch(lambda frame, batch: frame.count())
    query = writer.option("checkpointLocation", str(place)).trigger(processingTime="100 milliseconds").start()
    while sum(progress.numInputRows for progress in query.recentProgress) < STREAMED:
        time.sleep(0.1)
    query.stop()
    busy = [progress for progress in query.recentProgress if progress.numInputRows > 100]
    seconds = sum(progress.durationMs["triggerExecution"] for progress in busy[1:]) / 1000 * len(busy) / (len(busy) - 1)
    operator = busy[-1].stateOperators[0]
    kept = sum(file.stat().st_size for file in (place / "state").rglob("*.delta"))
    shutil.rmtree(place, ignore_errors=True)
    return seconds, operator.memoryUsedBytes / operator.numRowsTotal, kept / (len(busy) * operator.numRowsTotal)


def main() -> None:
    """Measure and write."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        spark = session(folder)
        try:
            rows, notes = [], []
            for measure in (at_rest, streaming):
                row, said = measure(spark, folder)
                print(row, said, flush=True)
                rows.append(row)
                notes += said
        finally:
            spark.stop()
    report.write(
        "spark",
        "Spark on two cores, against the plain group-by",
        rows,
        [
            *notes,
            "",
            f"Spark {pyspark.__version__}, local[2], shuffles encrypted on both sides; best of {ROUNDS} rounds of each. The",
            "machine was shared. Streaming times are of micro-batches with events but the first: keeping each user's last",
            "cell.",
            "What the driver does per slot, against classes and cells, is in driver.md.",
        ],
    )


if __name__ == "__main__":
    main()
