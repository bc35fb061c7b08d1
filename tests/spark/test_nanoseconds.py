"""Parquet as pandas writes it, in nanoseconds, and as old programs do, in INT96: Spark counts what the others count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from tests.support.commands import CLOCK as TOLD
from tests.support.commands import PEOPLE, call, slots_of, write_stream
from tests.support.streams import DAY, SECOND, nonzero, plain, roster, settings
from wevent.spark.event_plan import EventPlan
from wevent.spark.input_files import READING, FolderSource, copy_session, read_files
from wevent.streams import SlotClock
from wevent.streams.duckdb_tables import TableReader
from wevent.streams.file_source import FileSource, open_readers

CLOCK = SlotClock(DAY, 60 * SECOND)
HOUR = 3600 * SECOND
MOMENTS = [
    (DAY + 60 * SECOND * slot) * 1000 + nanos for slot in range(4) for nanos in (-1000, -999, -1, 0, 1, 999, 30 * 10**9)
]
EDGES = [0, -1, 2**63 - 1, -(2**63) + 1, -(2**63), None]


def write(path: Path, times: list[int | None], kind: Any, name: str = "time", **how: Any) -> str:
    """Users in turn, cells in turn; beside them a column in nanoseconds that nobody asked for."""
    columns = {
        name: pyarrow.array(times, kind),
        "user": [place % 5 + 1 for place in range(len(times))],
        "cell": [place % 4 for place in range(len(times))],
        "stored": pyarrow.array([0] * len(times), pyarrow.timestamp("ns")),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **how)
    return str(path)


def readings(spark: SparkSession, paths: list[str], **how: Any) -> Iterator[tuple[Any, dict[str, int]]]:
    """What Spark and DuckDB make of some files: every slot's counts, and what was not counted."""
    for source in (FolderSource(spark, settings(paths, **how), CLOCK, 3), FileSource(settings(paths, **how), CLOCK, 3)):
        counted = [one for slot in range(1, 4) for one in plain(source.count(roster(), slot, 1))]
        totals = nonzero(source)
        del totals["events"]  # to Spark those outside the clock are events, too
        yield [one[:2] for one in counted], totals


@pytest.mark.parametrize(("zone", "offset_us"), [("UTC", None), ("Europe/Berlin", None), (None, 0), (None, -HOUR)])
def test_nanoseconds(spark: SparkSession, tmp_path: Path, zone: str | None, offset_us: int | None) -> None:
    times = [moment + (offset_us or 0) * 1000 for moment in MOMENTS]
    path = write(tmp_path / "a.parquet", [*times, *EDGES], pyarrow.timestamp("ns", zone), "`a.b` {c}")
    how: dict[str, Any] = {"time_column": "`a.b` {c}", "timezone_us": offset_us}
    here, elsewhere = readings(spark, [path], **how)
    assert elsewhere == here
    assert sum(sum(map(sum, matrix)) for _, matrix in here[0]) > 9
    assert (here[1]["before"], here[1]["after"], here[1]["malformed"]) == (6, 4, 3)


def test_every_kind_of_time_in_one_run(spark: SparkSession, tmp_path: Path) -> None:
    """Naive ones in an offset, of which those of the old kind are instants to Spark."""
    kinds = [("ns", None), ("ns", "UTC"), ("us", "UTC"), ("ms", None), ("us", None)]
    paths = []
    for number, (unit, zone) in enumerate(kinds):
        parts = {"ns": 1, "us": 1000, "ms": 10**6}[unit]
        times = [moment // parts + (HOUR * 1000 // parts if zone is None else 0) for moment in MOMENTS[number::5]]
        paths.append(write(tmp_path / f"{number}.parquet", [*times, None], pyarrow.timestamp(unit, zone)))
    old = [moment + HOUR * 1000 for moment in MOMENTS[::3]]
    paths.append(write(tmp_path / "5.parquet", [*old], pyarrow.timestamp("ns"), use_deprecated_int96_timestamps=True))
    here, elsewhere = readings(spark, paths, timezone_us=HOUR, max_cells_per_user=4)
    assert elsewhere == here
    assert sum(sum(map(sum, matrix)) for _, matrix in here[0]) > 9


def test_units_are_told_apart_by_the_files(spark: SparkSession, tmp_path: Path) -> None:
    """Not by DuckDB, to whose older versions instants in nanoseconds are instants: Spark would read them as another unit."""
    fine = write(tmp_path / "a.parquet", [*MOMENTS], pyarrow.timestamp("ns", "UTC"))
    coarse = write(tmp_path / "b.parquet", [moment // 1000 for moment in MOMENTS], pyarrow.timestamp("us", "UTC"))
    chosen = settings([fine, coarse])
    one, other = open_readers(chosen)
    assert isinstance(one, TableReader)
    assert isinstance(other, TableReader)
    other.expressions = one.expressions
    session = copy_session(spark, READING)
    read = read_files(session, EventPlan(chosen, CLOCK), [one, other], 3)
    slots = sorted(row["slot"] for row in read.collect())
    assert slots == sorted(2 * [CLOCK.slot_of(moment // 1000) for moment in MOMENTS])


def test_the_command_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    write_stream(tmp_path, 2)
    write(tmp_path / "fine.parquet", [*MOMENTS], pyarrow.timestamp("ns", "UTC"))
    files = ("--end", "2026-01-01T00:03:00Z", "--journal", "run.journal", "--out", "out.ndjson")
    done = call(tmp_path, "publish", "fine.parquet", *TOLD, *files, *PEOPLE, "--engine", "spark")
    assert done.code == 0, done
    assert slots_of(tmp_path / "out.ndjson") == [1, 2, 3]
