"""An application of its own: first one that encrypts nothing, then one whose query is stopped in the middle of a batch.

`python -m tests.spark.stopped_process FOLDER` prints what came of it, a line of JSON each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import wevent
import wevent.spark
from tests.spark.live import Feed, settings
from tests.support.commands import CLOCK, PEOPLE, call, wait_for, write_stream


def session(*, encrypted: bool) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
    found = builder.config("spark.io.encryption.enabled", str(encrypted).lower()).getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def unencrypted(folder: Path) -> None:
    """What a session says of itself afterwards changes nothing."""
    spark = session(encrypted=False)
    spark = SparkSession.builder.config("spark.io.encryption.enabled", "true").getOrCreate()
    assert spark.conf.get("spark.io.encryption.enabled") == "true"
    where = {"journal": folder / "run.journal", "checkpoint": folder / "checkpoint"}
    try:
        wevent.spark.publish(Feed(folder / "in").stream(spark), **where, **settings())
    except wevent.InvalidSettings as error:
        print(json.dumps({"publish": str(error), "left": sorted(path.name for path in folder.iterdir())}), flush=True)
    write_stream(folder, 2)
    end = ("--end", "2026-01-01T00:02:00Z", "--journal", "folder.journal", "--engine", "spark")
    done = call(folder, "publish", "events.csv", *CLOCK, *end, *PEOPLE)
    print(json.dumps({"code": done.code, "said": done.err}), flush=True)
    allowed = wevent.spark.publish(Feed(folder / "in").stream(spark), **where, **settings(), unencrypted=True)
    allowed.stop()
    print(json.dumps({"allowed": (folder / "run.journal").exists()}), flush=True)
    spark.stop()


def stopped(folder: Path) -> None:
    """A batch that takes long, and a stop while it does."""
    spark, feed, slow = session(encrypted=True), Feed(folder / "events"), folder / "slow"

    def linger(text: str) -> str:
        slow.touch()
        time.sleep(3)
        return text

    stream = feed.stream(spark).withColumn("cell", F.udf(linger)("cell"))
    where = {"journal": folder / "stopped.journal", "checkpoint": folder / "stopped"}
    query = wevent.spark.publish(stream, **where, **settings())
    feed.send_now("u1", "u2")
    wait_for(slow.exists, "the batch")
    query.stop()
    failed = query.exception()
    print(json.dumps({"active": query.isActive, "exception": None if failed is None else str(failed)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    unencrypted(Path(sys.argv[1]))
    stopped(Path(sys.argv[1]))
