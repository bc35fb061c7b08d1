"""Journals in a real database, for tests that take it away under them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.support.cutting_proxy import CuttingProxy
from tests.support.postgres_server import own_schema, shared_url
from tests.support.publications import publish
from tests.support.synthetic import make_terms, register
from wevent.auditing import audit_journal
from wevent.journal import Journal, PostgresPlace, journal_place
from wevent.journal.postgres.postgres_journal import PostgresJournal
from wevent.outputs.lines import ndjson_line


def place_at(folder: Path, url: str | None = None, *, lease_s: float = 3, **query: str) -> PostgresPlace:
    """An empty schema of a server, the one that tests share unless told, with a side folder."""
    side = folder / "side"
    side.mkdir(mode=0o700, exist_ok=True)
    more = "".join(f"&{key}={value}" for key, value in query.items())
    place = journal_place(f"{url or shared_url()}?schema={own_schema()}&side={side}&lease={lease_s}{more}")
    assert isinstance(place, PostgresPlace)
    return place


@contextmanager
def proxied(place: PostgresPlace) -> Iterator[tuple[PostgresPlace, CuttingProxy]]:
    """The same place behind a proxy that cuts connections."""
    port = urlsplit(place.conninfo).port
    assert port is not None
    proxy = CuttingProxy(port)
    try:
        conninfo = place.conninfo.replace(f":{port}/", f":{proxy.port}/")
        yield PostgresPlace(conninfo, place.schema, place.side, place.lease_s), proxy
    finally:
        proxy.close()


@contextmanager
def begun(place: PostgresPlace, users: int = 30, **options: Any) -> Iterator[PostgresJournal]:
    """A new journal with people in the queue, open for writing."""
    with PostgresJournal(place, write=True, **options) as journal:
        journal.begin(make_terms())
        register(journal, users)
        yield journal


@contextmanager
def asked(place: PostgresPlace) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the test's own."""
    with psycopg.connect(place.conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {place.schema}")
        yield connection


def check_once(journal: Journal, place: PostgresPlace, out: Path, end: int) -> None:
    """Every slot is there once, went out as it is stored, and no window spent more than its epsilon."""
    records = list(journal.releases())
    assert [record.slot for record in records] == list(range(1, end + 1))
    assert out.read_bytes() == b"".join(map(ndjson_line, records))
    report = audit_journal(place)
    assert (report.slots, report.violations) == (end, [])


__all__ = ["asked", "begun", "check_once", "place_at", "proxied", "publish"]
