"""A driver in a process of its own, to be killed: publishes a folder of files until a file says that it is enough.

`python -m tests.spark.driver_process FOLDER`
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import wevent.spark
from tests.spark.live import Feed, settings


def main(folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    chosen = {
        "spark.io.encryption.enabled": "true",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("killed")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    query = wevent.spark.publish(
        Feed(folder / "in").stream(spark),
        journal=folder / "run.journal",
        checkpoint=folder / "checkpoint",
        out=folder / "out.ndjson",
        **settings(),
    )
    while query.isActive and not (folder / "enough").exists():
        time.sleep(0.1)
    query.stop()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
