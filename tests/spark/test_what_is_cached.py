"""Who is registered is kept by Spark while it counts, and no longer: old rosters go when another one comes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import wevent.spark
from tests.spark.live import Feed, settings
from tests.support.commands import slots_of, wait_for
from wevent.publishing.registrations import Asked, register


def cached(spark: SparkSession) -> int:
    """How many frames the application keeps."""
    context: Any = spark.sparkContext
    return len(context._jsc.getPersistentRDDs())


def test_rosters_are_let_go(spark: SparkSession, tmp_path: Path) -> None:
    before, feed, out = cached(spark), Feed(tmp_path / "in"), tmp_path / "out.ndjson"
    query = wevent.spark.publish(
        feed.stream(spark), journal=tmp_path / "run.journal", checkpoint=tmp_path / "checkpoint", out=out, **settings()
    )
    most = 0
    for number in range(3):
        register(tmp_path / "run.journal", f"new{number}", Asked("1", "50"))
        released = len(slots_of(out))

        def another(released: int = released) -> bool:
            nonlocal most
            feed.send_now("u1", "u2")
            time.sleep(0.3)  # every file costs Spark a task
            most = max(most, cached(spark) - before)
            return len(slots_of(out)) > released

        wait_for(another, "a release", 300)
    assert 0 < most <= 2, "a roster, and the rows of a batch"
    query.stop()
    wait_for(lambda: cached(spark) == before, "the last roster to be let go", 30)
