"""A frame's columns are called what its owner likes: nothing in the plan may be called the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import wevent.spark
from tests.support.commands import PATIENCE_S
from tests.support.streams import DAY, SECOND, settings
from wevent import InvalidInput, Requirement
from wevent.spark.event_plan import EventPlan
from wevent.streams.clock import SlotClock

CLOCK = SlotClock(DAY, 60 * SECOND)
COUNTING: dict[str, Any] = {
    "requirements": {"anna": Requirement(4, 0.5)},
    "slot": "60s",
    "start": datetime(1970, 1, 1, tzinfo=UTC),
    "end": datetime(1970, 1, 1, 0, 3, tzinfo=UTC),
    "cells": ["a", "b"],
}
ODD = (
    "a.b", "a`b", "`", "a b", " ", "1", "0", "*", "a.*", "Time", "TIME", "tıme", "now_us", "Now_Us", "raw_time", "é",
    "e\u0301", "a\nb", '"', "'",
)  # fmt: skip


def test_odd_names(spark: SparkSession) -> None:
    """Each of them once for times, once for users and once for cells, with all others beside it."""
    counted = []
    for number, time in enumerate(ODD):
        user, cell = ODD[(number + 7) % len(ODD)], ODD[(number + 11) % len(ODD)]
        others = [name for name in ODD if name not in (time, user, cell)]
        rows = [(61.0, "anna", "b", *["no"] * len(others)), (62.0, "nobody", "a", *["no"] * len(others))]
        frame = spark.createDataFrame(rows).toDF(time, user, cell, *others)
        columns = {"time_column": time, "user_column": user, "cell_column": cell}
        counted.append(wevent.spark.count(frame, **COUNTING, **columns))
    found = reduce(DataFrame.unionAll, counted).collect()
    assert list(map(tuple, found)) == [(2, 4, 0.5, "b", 1)] * len(ODD)


def test_a_batch_knows_its_moment_whatever_columns_are_called(spark: SparkSession, tmp_path: Path) -> None:
    """Times in a column `now_us` once were the moment of the batch, and of the batch every event."""
    feed, out = tmp_path / "in", tmp_path / "out.ndjson"
    feed.mkdir()
    lines = [
        {"now_us": when, "user": f"u{place}", "User": "no", "cell": 1} for place, when in enumerate((61, 10**12, -1))
    ]
    (feed / "events.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        stream = spark.readStream.schema("now_us double, user string, User string, cell int").json(str(feed))
        query = wevent.spark.publish(
            stream,
            journal=tmp_path / "run.journal",
            checkpoint=tmp_path / "checkpoint",
            out=out,
            slot="1min",
            start=datetime(1970, 1, 1, tzinfo=UTC),
            end=datetime(1970, 1, 1, 0, 3, tzinfo=UTC),
            cells=2,
            requirements={f"u{place}": Requirement(1, 50) for place in range(3)},
            mechanism="uniform",
            trigger="available now",
            time_column="now_us",
        )
        assert query.awaitTermination(PATIENCE_S)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [json.loads(line)["histogram"] for line in out.read_text().splitlines()] == [[0, 0], [0, 1], [0, 0]]
    assert {name: number for name, number in query.totals.items() if number} == {
        "events": 3, "rejected": 2, "before": 1, "after": 1
    }  # fmt: skip


def test_a_name_that_two_columns_have(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1.0, "a", "b", "c")], "time double, user string, cell string, x string")
    twice = frame.toDF("time", "user", "cell", "user")
    with pytest.raises(InvalidInput, match="column 'user' twice"):
        EventPlan(settings(), CLOCK).read(twice, F.lit(1))
    assert EventPlan(settings(), CLOCK).read(frame.toDF("time", "user", "cell", "User"), F.lit(1)).count() == 1
