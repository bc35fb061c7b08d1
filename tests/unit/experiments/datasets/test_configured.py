"""The stream of a configuration has the counts that publishing has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.support.streams import DAY, SECOND, settings
from wevent.counting.roster import Roster
from wevent.errors import InvalidSettings
from wevent.experiments.datasets.event_file import configured_stream
from wevent.settings.values import format_time
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource
from wevent.streams.requirements_file import read_requirements

LAST = 6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("k", [1, 2])
def test_counts_are_those_of_publishing(tmp_path: Path, kind: str, k: int) -> None:
    generator = np.random.default_rng(3)
    rows = [
        f"{format_time(DAY + int(second) * SECOND)},{user},{cell}"
        for second, user, cell in generator.integers((-30, 0, 0), (60 * LAST + 30, 12, 5), (500, 3)).tolist()
    ]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["time,user,cell", *rows, "malformed"]) + "\n")
    if kind == "parquet":
        path.write_text("\n".join(["time,user,cell", *rows]) + "\n")
        target = tmp_path / "events.parquet"
        duckdb.execute(f"COPY (FROM read_csv('{path}', all_varchar = true)) TO '{target}' (FORMAT parquet)")
        path = target
    people = tmp_path / "people.csv"
    people.write_text("user,window,epsilon\n" + "".join(f"{user},{4 + user % 2},1\n" for user in range(10)))
    chosen = settings([str(path)], 4, end_us=DAY + 60 * LAST * SECOND, max_cells_per_user=k)
    stream = configured_stream(chosen, read_requirements(people))
    roster = Roster.from_columns(range(10), [4 + user % 2 for user in range(10)], [1.0] * 10)
    counted = [
        one.counts.matrix for one in FileSource(chosen, SlotClock(DAY, 60 * SECOND), LAST).count(roster, 1, LAST)
    ]
    np.testing.assert_array_equal(stream.count(np.arange(10) % 2, 2), np.array(counted))
    assert len(configured_stream(chosen).user_labels) == 12
    assert stream.times == (EPOCH + timedelta(microseconds=DAY), timedelta(minutes=1))


def test_numbered_slots_have_no_times(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("slot,user,cell\n1,ann,0\n")
    chosen = settings([str(tmp_path / "events.csv")], 4, slot_column="slot", slot_us=1, start_us=0, end_us=3)
    assert configured_stream(chosen).times == (None, None)


def test_live_lines_are_no_stream_to_experiment_on() -> None:
    with pytest.raises(InvalidSettings, match="Live lines"):
        configured_stream(settings(["-"]))
