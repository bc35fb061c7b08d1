"""Same input, same counts: Spark as a stream and at rest, DuckDB, numpy and the spool of the service, on one script."""

from __future__ import annotations

import json
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
    Streamed,
    by_files,
    by_spark_files,
    by_spool,
    count_all,
    late,
    script,
    settings,
    time_us,
    timely,
)
from tests.support.commands import PATIENCE_S
from tests.support.streams import slow_count
from wevent import Population, Requirement, Roster
from wevent.counting.spelling import Spelled
from wevent.spark.folder_source import FolderSource
from wevent.streams.files.file_source import FileSource
from wevent.streams.source import Source
from wevent.streams.uncounted import MALFORMED

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
            Spelled.of(users),
            np.array([population.index(requirement) for requirement in held]),
            population,
            unknown_row=population.index(QUARTER) if self._strangers else None,
            unknown_limit=self._strangers,
            is_stranger=lambda names: ~np.isin(names, [*PEOPLE, "gone"]),
        )


def plain(counted: Any) -> list[Any]:
    """Slot, matrix, and whose events did not count; which cells are unknown is known before slots are."""
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
    spool = by_spool(tmp_path, arrivals, max_cells_per_user=k)
    expected = plain(count_all(spool, rosters))
    assert sum(sum(map(sum, matrix)) for _, matrix, _ in expected) > 20
    if not strangers:
        assert [matrix for _, matrix, _ in expected] == by_the_book(arrivals, rosters, k)
    at_rest = by_spark_files(spark, tmp_path, arrivals, max_cells_per_user=k)
    assert plain(count_all(at_rest, rosters)) == expected
    for engine in ("numpy",) if strangers else ("numpy", "duckdb"):  # DuckDB leaves strangers to numpy
        files = by_files(tmp_path, arrivals, engine, max_cells_per_user=k)
        assert plain(count_all(files, rosters)) == expected, engine
        names = (*MALFORMED, "before", "after", "unknown_cell", "unknown_user")
        assert reasons_of(at_rest, *names) == reasons_of(files, *names)

    streamed = Streamed(spark, tmp_path, arrivals, max_cells_per_user=k)
    query = streamed.start()
    assert plain(count_all(streamed.source, rosters)) == expected
    assert query.awaitTermination(PATIENCE_S)
    streamed.source.uncounted.look()
    names = ("malformed", "no_offset", "before", "after", "unknown_user")
    assert reasons_of(streamed.source, *names) == reasons_of(spool, *names)
    if k == 1:
        assert streamed.source.totals()["late"] == late(arrivals) > 5


def test_text_files_are_read_as_everywhere(spark: SparkSession, tmp_path: Path) -> None:
    events = timely(script(seed=5))
    (tmp_path / "a.ndjson").write_text(
        "".join(json.dumps(event._asdict()) + "\n" for event in events[:100]) + "no record\n"
    )
    rows = [",".join(part or "" for part in event) for event in events[100:] if "\0" not in (event.user or "")]
    (tmp_path / "b.csv").write_text("time,user,cell\n" + "\n".join(rows) + '\ntime,"user\n')
    paths = (str(tmp_path / "a.ndjson"), str(tmp_path / "b.csv"))
    rosters = Rosters(strangers=True)
    chosen = settings(inputs=paths, max_cells_per_user=2)
    elsewhere, here = FileSource(chosen, CLOCK, LAST), FolderSource(spark, chosen, CLOCK, LAST)
    assert list(plain(count_all(here, rosters, 3))) == list(plain(count_all(elsewhere, rosters, 3)))
    assert here.totals()["malformed"] == elsewhere.totals()["malformed"] > 5
