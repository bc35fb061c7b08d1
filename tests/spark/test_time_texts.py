"""One text, one time: Spark reads every text as `records.times` does, as DuckDB and columns of text do."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tests.support.streams import SECOND, settings
from tests.support.time_texts import differing, time_texts
from wevent.spark.columns import instants
from wevent.streams.times import TimeReader


@pytest.mark.parametrize(
    ("timezone_us", "time_unit"), [(None, "s"), (-12_600 * SECOND, "ms"), (0, "us")], ids=["s", "ms", "us"]
)
def test_spark_reads_every_text_as_all_others_do(
    spark: SparkSession, tmp_path: Path, timezone_us: int | None, time_unit: str
) -> None:
    written = sorted(set(time_texts()))
    reader, assumed = TimeReader(timezone_us, time_unit), TimeReader(0, time_unit)
    expected = {text: reader.one(text) for text in written}
    path = str(tmp_path / "events.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"time": pyarrow.array(written, pyarrow.string())}), path)
    chosen = settings([path], timezone_us=timezone_us, time_unit=time_unit)
    micros, unzoned = instants(F.col("time"), T.StringType(), chosen)
    rows = spark.read.parquet(path).select("time", micros.alias("micros"), unzoned.alias("unzoned")).collect()
    assert differing(expected, {row["time"]: row["micros"] for row in rows}) == []
    lacking = {text for text, time in expected.items() if time is None and assumed.one(text) is not None}
    assert {row["time"] for row in rows if row["micros"] is None and row["unzoned"]} == lacking
    assert bool(lacking) == (timezone_us is None)
