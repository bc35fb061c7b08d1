"""Same input, same counts: Spark as a stream and at rest, DuckDB, numpy and the spool of the service, on one script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.spark.arrivals import (
    CELLS,
    CLOCK,
    LAST,
    PEOPLE,
    Arrival,
    Raw,
    Streamed,
    by_files,
    by_log,
    by_spark_files,
    count_all,
    late,
    script,
    settings,
    time_us,
    timely,
    write_parquet,
)
from tests.support.commands import PATIENCE_S
from tests.support.streams import slow_count
from wevent import Population, Requirement, Roster
from wevent.counting.string_column import StringColumn
from wevent.spark.input_files import FolderSource
from wevent.streams.file_source import FileSource
from wevent.streams.inputs import within_folders
from wevent.streams.source import Source

HALF, ONE, QUARTER = Requirement(6, 0.5), Requirement(4, 1), Requirement(6, 0.25)
STRANGERS = 2


class Rosters:
    """Rosters of all slots: bob leaves in slot 2, eve joins in slot 3, and neither they nor "gone" are ever strangers."""

    def __init__(self, *, strangers: bool) -> None:
        self._strangers = STRANGERS if strangers else 0
        self._made = {slot: self._roster(slot) for slot in range(1, LAST + 1)}

    def __call__(self, slot: int) -> Roster:
        return self._made[slot]

    def _roster(self, slot: int) -> Roster:
        users = [user for user in PEOPLE if (user != "eve" or slot >= 3) and (user != "bob" or slot < 2)]
        held = [(HALF, ONE)[len(user) % 2] for user in users]
        population = Population({HALF: held.count(HALF), ONE: held.count(ONE), QUARTER: self._strangers})
        return Roster(
            StringColumn.from_texts(users),
            np.array([population.index(requirement) for requirement in held]),
            population,
            unknown_row=population.index(QUARTER) if self._strangers else None,
            unknown_limit=self._strangers,
            is_stranger=lambda names: ~np.isin(names, [*PEOPLE, "gone"]),
        )


def plain(counted: Any) -> list[Any]:
    """Slot, matrix, and whose events did not count; of a stream, which cells are unknown is known before slots are."""
    return [(slot, matrix, reasons._replace(unknown_cell=0)) for slot, matrix, reasons in counted]


def by_the_book(arrivals: list[Arrival], rosters: Rosters, k: int) -> list[Any]:
    """Registered people's counts, one event after the other."""
    events = [(time_us(event), event.user, event.cell) for event in timely(arrivals)]
    sound = [event for event in events if event[0] is not None and event[1] and event[2] and "\0" not in event[1]]
    return [
        slow_count([event for event in sound if CLOCK.slot_of(event[0]) == slot], rosters(slot), CELLS, k)[0].tolist()
        for slot in range(1, LAST + 1)
    ]


def reasons_of(source: Source, *names: str) -> dict[str, int]:
    return {name: source.totals()[name] for name in names}


@pytest.mark.parametrize(("k", "strangers"), [(1, True), (3, False)])
def test_every_engine_counts_the_same(spark: SparkSession, tmp_path: Path, k: int, strangers: bool) -> None:
    arrivals, rosters = script(seed=k), Rosters(strangers=strangers)
    spool = by_log(tmp_path, arrivals, max_cells_per_user=k)
    expected = plain(count_all(spool, rosters))
    assert sum(sum(map(sum, matrix)) for _, matrix, _ in expected) > 20
    if not strangers:
        assert [matrix for _, matrix, _ in expected] == by_the_book(arrivals, rosters, k)
    at_rest = by_spark_files(spark, tmp_path, arrivals, max_cells_per_user=k)
    counted = list(count_all(at_rest, rosters))
    assert plain(counted) == expected
    files = by_files(tmp_path, arrivals, max_cells_per_user=k)
    assert list(count_all(files, rosters)) == counted
    assert at_rest.totals() == files.totals()

    streamed = Streamed(spark, tmp_path, arrivals, max_cells_per_user=k)
    query = streamed.start()
    assert plain(count_all(streamed.source, rosters)) == expected
    assert query.awaitTermination(PATIENCE_S)
    streamed.source.uncounted.look()
    names = ("malformed", "no_offset", "before", "after", "unknown_user")
    assert reasons_of(streamed.source, *names) == reasons_of(spool, *names)
    if k == 1:
        assert streamed.source.totals()["late"] == late(arrivals) > 5


def as_ndjson(folder: Path, events: list[Raw]) -> str:
    lines = [json.dumps(event._asdict()).encode() for event in events]
    lines[3] = lines[3] + b"\r"
    lines[20:20] = [b"no record", b"", b"[]", b'{"time": 1', b'{"user": "anna"}', b"\xff\xfe", b'{"user": "a\0"}']
    (folder / "a.ndjson").write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines))
    return str(folder / "a.ndjson")


def as_csv(folder: Path, events: list[Raw]) -> str:
    rows = [",".join(part or "" for part in event).encode() for event in events]
    rows[20:20] = [b'time,"user', b"", b"2026-01-01T00:00:01Z,anna", b"2026-01-01T00:00:01Z,anna,north,1", b"\xff,1,1"]
    (folder / "b.csv").write_bytes(b"\r\n".join([b"time,user,cell", *rows]) + b"\r\n")
    return str(folder / "b.csv")


def as_parquet(folder: Path, events: list[Raw]) -> str:
    """A folder, as programs write many parts at once."""
    (folder / "parts").mkdir()
    for part in range(2):
        write_parquet(folder / "parts" / f"{part}.parquet", events[part::2])
    (folder / "parts" / "_SUCCESS").touch()
    return str(folder / "parts")


@pytest.mark.parametrize(
    ("write", "k", "strangers"), [(as_ndjson, 1, True), (as_csv, 2, False), (as_parquet, 1, False)]
)
def test_messy_files_are_counted_and_rejected_as_by_the_default_engine(
    spark: SparkSession, tmp_path: Path, write: Callable[[Path, list[Raw]], str], k: int, strangers: bool
) -> None:
    """Wrong lines, unknown cells and users, events outside the clock; from the first slot on, and resumed."""
    given = write(tmp_path, [event for arrival in script(seed=5) for event in arrival.events])
    inputs = tuple(within_folders([given]))
    rosters, chosen = Rosters(strangers=strangers), settings(inputs=inputs, max_cells_per_user=k)
    default, here = FileSource(chosen, CLOCK, LAST), FolderSource(spark, chosen, CLOCK, LAST)
    assert list(count_all(here, rosters, 3)) == list(count_all(default, rosters, 3))
    totals = here.totals()
    assert totals == default.totals()
    assert all(totals[name] for name in ("unknown_user", "unknown_cell", "before", "after", "no_user", "no_time"))
    assert bool(totals["no_record"]) == (write is not as_parquet)
    resumed = []
    for source in (FileSource(chosen, CLOCK, LAST), FolderSource(spark, chosen, CLOCK, LAST)):
        source.resume({"slot": 2, "time_unit": "s", "files": len(inputs)})
        counted = [(one.slot, one.counts.matrix.tolist()) for one in source.count(rosters(3), 3, 2)]
        resumed.append((counted, source.totals()))
    assert resumed[0] == resumed[1]
    assert resumed[0][1]["events"] < totals["events"], "of the slots that were counted"
