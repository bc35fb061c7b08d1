"""Users who are replaced by as many others: sizes stay the same, the journal and the intervals do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wevent
from tests.support.commands import CLOCK, call
from wevent.journal.rebuild import rebuild_publisher

pytestmark = pytest.mark.slow

USERS = 200


def write(folder: Path, first: int) -> None:
    rows = [f"u{user},4,1" for user in range(first, first + USERS)]
    (folder / "users.csv").write_text("\n".join(["user,window,epsilon", *rows]) + "\n")


def publish(folder: Path, minutes: int, *more: str) -> None:
    end = ("--end", f"2026-01-01T00:{minutes:02d}:00Z")
    people = ("--requirements", "users.csv", "--cells", "2", "--journal", "run.journal", "--out", "out.ndjson")
    done = call(folder, "publish", "events.csv", *CLOCK, *end, *people, *more)
    assert done.code == 0, done


def test_a_replaced_population_is_counted_and_survives_a_restart(tmp_path: Path) -> None:
    events = ["time,user,cell"]
    for minute in range(20):
        users = range(USERS) if minute < 12 else range(160, 160 + USERS)
        cell = 0 if minute < 12 else 1
        events += [f"2026-01-01T00:{minute:02d}:01Z,u{user},{cell}" for user in users]
    (tmp_path / "events.csv").write_text("\n".join(events) + "\n")
    write(tmp_path, 0)
    publish(tmp_path, 12)
    write(tmp_path, 160)  # 160 leave, 160 others join
    publish(tmp_path, 20, "--allow-removals")
    with wevent.open_journal(tmp_path / "run.journal") as journal:
        assert [record.group.turnover for record in journal.releases()] == [USERS] * 12 + [USERS + 320] * 8
        publisher = rebuild_publisher(journal.load(), journal.epochs(), None)
    assert publisher.turnover == USERS + 320
    lines = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
    covered = [line["low"][1] <= USERS <= line["high"][1] for line in lines[12:]]
    assert sum(covered) >= 4, "all who count now are in the other cell; an interval misses it now and then"
    assert call(tmp_path, "verify", "run.journal").code == 0
