"""What only the writer's own connections do to the files is no cut; what anybody else does is."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from wevent.errors import StorageFailed
from wevent.journal import sqlite as intact
from wevent.journal.sqlite import FileWatch

LIMIT = 40_000


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(intact, "LOG_LIMIT", LIMIT)
    (tmp_path / "j.witness").write_bytes(b"text")
    return tmp_path / "j"


@pytest.fixture
def connections(path: Path) -> Iterator[list[apsw.Connection]]:
    made = [connect(path) for _ in range(2)]
    made[0].execute("CREATE TABLE t (a)")
    yield made
    for one in made:
        one.close()


def connect(path: Path) -> apsw.Connection:
    one = apsw.Connection(str(path))
    one.execute("PRAGMA journal_mode = WAL").fetchall()
    one.execute(f"PRAGMA journal_size_limit = {LIMIT}").fetchall()
    return one


def write(one: apsw.Connection, pages: int) -> None:
    one.execute("INSERT INTO t VALUES (?)", (os.urandom(4096 * pages),))


@pytest.mark.parametrize("seed", range(6))
def test_commits_and_checkpoints_of_anybody_are_no_cut(
    path: Path, connections: list[apsw.Connection], seed: int
) -> None:
    chance, watch = random.Random(seed), FileWatch(path, path.with_name("j.witness"))
    log, sizes = path.with_name("j-wal"), []
    for _ in range(150):
        one = chance.choice(connections)
        if chance.random() < 0.7:
            write(one, chance.choice([1, 1, 2, 20]))
        elif chance.random() < 0.5:
            one.execute(f"PRAGMA wal_checkpoint({chance.choice(['PASSIVE', 'FULL', 'RESTART'])})").fetchall()
        else:
            third = connect(path)
            third.execute("SELECT count(*) FROM t").fetchall()
            third.close()
        watch.check()
        sizes.append(log.stat().st_size)
    assert any(later < earlier for earlier, later in pairwise(sizes)), "SQLite cut it, too"


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", ".witness"])
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_cut_is_seen(path: Path, connections: list[apsw.Connection], ending: str, keep: float) -> None:
    write(connections[0], 3)
    connections[0].execute("PRAGMA wal_checkpoint").fetchall()
    write(connections[0], 3)
    watch = FileWatch(path, path.with_name("j.witness"))
    watch.check()
    victim = path.with_name("j" + ending)
    data = victim.read_bytes()
    os.truncate(victim, int(len(data) * keep))
    with pytest.raises(StorageFailed, match="cut"):
        watch.check()
    victim.write_bytes(data)


def test_zeros_that_a_power_failure_left_are_no_cut(path: Path, connections: list[apsw.Connection]) -> None:
    write(connections[0], 3)
    log = path.with_name("j-wal")
    os.truncate(log, log.stat().st_size + 3 * 4120)
    watch = FileWatch(path, path.with_name("j.witness"))
    for _ in range(6):
        write(connections[1], 1)
        watch.check()


def test_no_descriptors_are_needed(path: Path, connections: list[apsw.Connection]) -> None:
    watch = FileWatch(path, path.with_name("j.witness"))
    write(connections[0], 4)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        watch.check()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
