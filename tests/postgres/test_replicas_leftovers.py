"""Of events nothing can be read in the database's files: data, write-ahead log, the archive of that, what it logs, whether
their slot is committed or not; and what could make them readable is gone with the commit (spec 1)."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.replica_parts import key_slots
from tests.postgres.replica_services import Load, Replicas
from tests.service.leftovers import all_bytes, has_times
from tests.support.commands import wait_for
from tests.support.postgres_server import PostgresServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """One that archives its log, and writes down every statement."""
    archive = "test ! -f ../archive/%f && mkdir -p ../archive && cp %p ../archive/%f"
    own = PostgresServer({"archive_mode": "on", "archive_command": archive, "log_statement": "all",
                          "log_min_messages": "info", "log_min_error_statement": "info",
                          "log_parameter_max_length": "-1"})  # fmt: skip
    yield own
    own.remove()


def test_nothing_of_events_is_in_the_files_of_the_database(tmp_path: Path, server: PostgresServer) -> None:
    replicas = Replicas(tmp_path / "both", server.url())
    try:
        for service in replicas.services:
            replicas.start(service)
        load = Load(replicas)
        replicas.goes_on(4)
        _flush(server)
        replicas.goes_on(2)
        _flush(server)
        files = _files(server)
        batches = load.sent()
        _check_files(files, load, [batch.id for batch in batches])
        load.finish()
        assert [slot for slot in key_slots(replicas.place) if slot <= replicas.committed()] == []
        _flush(server)
        server.stop("fast")
        _check_files(_files(server), load, [batch.id for batch in load.sent()])
    finally:
        replicas.close()


def test_the_search_finds_what_is_there(server: PostgresServer) -> None:
    """The same ids in a table that does not hide them: in its files, and in the log, which outlive the table."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE plain (user_id text, digest bytea, moment bytea)")
        row = ("mkabcd-7-0-3", hashlib.md5(b"mkabcd-7-0-4").digest(), (1_800_000_000_000_000).to_bytes(8, "little"))
        connection.execute("INSERT INTO plain VALUES (%s, %s, %s)", row)
        connection.execute("DROP TABLE plain")
    _flush(server)
    found = _files(server)
    where = {name.split("/")[0] for name, data in found.items() if b"mkabcd-7-0-3" in data}
    assert {"archive", "data", "log"} <= where
    assert any(digest in data for data in found.values() for digest in _trivial([b"mkabcd-7-0-4"]))
    assert any(has_times(data, 1_800_000_000_000_000, 1_800_000_000_000_001) for data in found.values())


def _flush(server: PostgresServer) -> None:
    """Everything to files: pages, and the log so far to the archive."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
        assert row is not None
    wait_for(lambda: (server.folder / "archive" / str(row[0])).exists(), "the archive")
    time.sleep(0.1)


def _files(server: PostgresServer) -> dict[str, bytes]:
    """Of the cluster, without the empty ends of log segments."""
    return {name: data.rstrip(b"\0") for name, data in all_bytes(server.folder).items()}


def _check_files(files: dict[str, bytes], load: Load, batches: list[str]) -> None:
    assert any(name.startswith("archive/") for name in files)
    assert any(name.startswith("data/pg_wal/") for name in files)
    marks = re.compile(rf"(?:mk|id){load.run}-".encode())
    users = {event.user for batch in load.sent() for event in batch.events if event.user.startswith("mk")}
    digests = _trivial([one.encode() for one in (*sorted(users)[:4], *batches[:4])])
    last = max(event.slot for batch in load.sent() for event in batch.events)
    begin_us, end_us = load.clock.origin_us + 1, load.clock.end_us(last)  # the origin is public
    for name, data in files.items():
        assert not marks.search(data), f"{name} has ids"
        assert not has_times(data, begin_us, end_us), f"{name} has times of events"
        assert not has_times(_swapped(data), begin_us, end_us), f"{name} has times of events"
    everything = b"\0".join(files.values())
    assert not [digest for digest in digests if digest in everything], "digests that anybody can make"


def _swapped(data: bytes) -> bytes:
    """Numbers the other way round: the whole reversed."""
    return data[::-1]


def _trivial(ids: list[bytes]) -> list[bytes]:
    """What a lazy program would write instead of an id: digests without a key, as bytes or as text."""
    kinds = ("md5", "sha1", "sha256", "blake2b", "sha3_256")
    digests = [hashlib.new(kind, one).digest() for kind in kinds for one in ids]
    digests += [hashlib.blake2b(one, digest_size=size).digest() for size in (16, 32) for one in ids]
    return [*digests, *(digest.hex().encode() for digest in digests)]
