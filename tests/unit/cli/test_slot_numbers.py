"""Data with slot numbers instead of times: no command invents a time for them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.commands import Done, call, run
from wevent import read_releases

pytestmark = pytest.mark.slow

PEOPLE = ("--requirements", "users.csv", "--cells", "2", "--journal", "run.journal")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "users.csv").write_text("user,window,epsilon\n" + "".join(f"{user},3,1\n" for user in range(40)))
    rows = [f"{slot},{user},{(slot + user) % 2}\n" for slot in range(12) for user in range(40)]
    (tmp_path / "events.csv").write_text("slot,user,cell\n" + "".join(rows))
    return tmp_path


def publish(folder: Path, end: int, out: str = "out.ndjson") -> Done:
    return call(folder, "publish", "events.csv", "--slot-column", "slot", "--end", str(end), *PEOPLE, "--out", out)


def test_nothing_says_1970(folder: Path) -> None:
    for end in (5, 10):
        assert publish(folder, end).code == 0
    for command in (
        ("status", "run.journal"),
        ("status", "run.journal", "--json"),
        ("status", "run.journal", "--statement"),
        ("releases", "run.journal"),
        ("releases", "run.journal", "--format", "csv"),
        ("verify", "run.journal", "--json"),
        ("doctor", "run.journal"),
    ):
        done = run(folder, *command)
        assert not re.search(r"(?<![\d.])1970", done.out + done.err), command
    facts = json.loads(run(folder, "status", "run.journal", "--json").out)
    assert (facts["slot"], facts["slot_start"]) == (10, None)
    assert "slot 10\n" in run(folder, "status", "run.journal").out
    statement = json.loads(run(folder, "status", "run.journal", "--statement").out)
    assert (statement["slot_origin"], statement["slot_length_us"]) == (None, None)


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_slots_without_times_in_every_format(folder: Path, ending: str) -> None:
    assert publish(folder, 6, f"out.{ending}").code == 0
    table = read_releases(folder / f"out.{ending}")
    assert set(table.columns["slot"]) == set(range(1, 7))
    assert set(table.columns["start"]) == set(table.columns["end"]) == {None}
    assert publish(folder, 8, f"out.{ending}").code == 0


def test_resuming_with_times_names_what_differs(folder: Path) -> None:
    assert publish(folder, 5).code == 0
    (folder / "timed.csv").write_text("time,user,cell\n")
    clock = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T01:00:00Z")
    done = call(folder, "publish", "timed.csv", *clock, *PEOPLE, "--out", "out.ndjson")
    assert done.code == 2
    assert "start ('slot numbers' in the journal, '2026-01-01T00:00:00Z' now)" in done.err
    assert "1970" not in done.err
