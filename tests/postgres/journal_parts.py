"""Journals in a real database, for tests that take it away under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.support.commands import PATIENCE_S, wait_for
from tests.support.cutting_proxy import CuttingProxy
from tests.support.journals import InDatabase, copy_schema
from tests.support.postgres_server import own_schema, shared_url
from tests.support.publications import publish
from tests.support.synthetic import make_terms, register
from wevent.errors import JournalLocked
from wevent.journal import Journal, PostgresAddress, parse_address
from wevent.journal.postgres import PostgresJournal
from wevent.outputs.lines import ndjson_line
from wevent.verification import verify_journal

LEASE_S = 6 * PATIENCE_S
"""No writer is taken for dead because the machine is busy; see `silence`."""


def place_at(folder: Path, url: str | None = None, *, lease_s: float = LEASE_S, **query: str) -> PostgresAddress:
    """An empty schema of a server, the one that tests share unless told, with a witness folder."""
    side = folder / "side"
    side.mkdir(mode=0o700, exist_ok=True)
    more = "".join(f"&{key}={value}" for key, value in query.items())
    place = parse_address(f"{url or shared_url()}?schema={own_schema()}&witness={side}&lease={lease_s}{more}")
    assert isinstance(place, PostgresAddress)
    return place


class Restorable(InDatabase):
    """A journal whose database is put back as it was, as by point-in-time recovery: it does not know that it is a copy."""

    def remember(self) -> None:
        copy_schema(self.place, self.place.schema, self._backup)


@contextmanager
def proxied(place: PostgresAddress) -> Iterator[tuple[PostgresAddress, CuttingProxy]]:
    """The same place behind a proxy that cuts connections."""
    port = urlsplit(place.conninfo).port
    assert port is not None
    proxy = CuttingProxy(port)
    try:
        conninfo = place.conninfo.replace(f":{port}/", f":{proxy.port}/")
        yield PostgresAddress(conninfo, place.schema, place.folder, place.lease_s), proxy
    finally:
        proxy.close()


@contextmanager
def begun(place: PostgresAddress, users: int = 30, **options: Any) -> Iterator[PostgresJournal]:
    """A new journal with people in the queue, open for writing."""
    with PostgresJournal(place, write=True, **options) as journal:
        journal.begin(make_terms())
        register(journal, users)
        yield journal


@contextmanager
def asked(place: PostgresAddress) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the test's own."""
    with psycopg.connect(place.conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {place.schema}")
        yield connection


def bear_silence(place: PostgresAddress) -> None:
    """From now on the writer may be silent for as long as a test takes."""
    with asked(place) as database:
        database.execute("UPDATE writer SET lease_s = %s", (LEASE_S,))


def silence(place: PostgresAddress) -> None:
    """Let a writer that stands still or is cut off have shown no life for long: nobody waits until its lease is over."""
    with asked(place) as database:
        database.execute("UPDATE lease SET expires = clock_timestamp() - interval '1 day'")


def beats_on(place: PostgresAddress, times: int = 2) -> None:
    """Wait until the writer shows life again, and again."""
    with asked(place) as database:

        def beat() -> object:
            return database.execute("SELECT expires FROM lease").fetchone()

        for _ in range(times):
            before = beat()
            wait_for(lambda before=before: beat() != before, "a beat")  # type: ignore[misc]


def take_over(place: PostgresAddress, prepare: Callable[[PostgresAddress], None] = silence) -> PostgresJournal:
    """Become the writer as soon as that is possible; the one before has been silent for long."""
    taken: list[PostgresJournal] = []

    def is_taken() -> bool:
        prepare(place)
        with suppress(JournalLocked):
            taken.append(PostgresJournal(place, write=True))
        return bool(taken)

    wait_for(is_taken, "the journal")
    return taken[0]


def check_once(journal: Journal, place: PostgresAddress, out: Path, end: int) -> None:
    """Every slot is there once, went out as it is stored, and no window spent more than its epsilon."""
    records = list(journal.releases())
    assert [record.slot for record in records] == list(range(1, end + 1))
    assert out.read_bytes() == b"".join(map(ndjson_line, records))
    report = verify_journal(place)
    assert (report.slots, report.violations) == (end, [])


__all__ = [
    "Restorable",
    "asked",
    "bear_silence",
    "beats_on",
    "begun",
    "check_once",
    "place_at",
    "proxied",
    "publish",
    "silence",
    "take_over",
]
