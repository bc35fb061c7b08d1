"""A Python without psycopg: whatever wants a journal in a database says how to get it, in the same words."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from wevent.errors import InvalidJournal
from wevent.journal import PostgresAddress, examine_database, is_begun, open_journal, share_journal
from wevent.verification import verify_journal

PLACE = PostgresAddress("postgresql://ann@db/city")
PSYCOPG = "psycopg"
IMPLEMENTED = (
    "connection",
    "lease",
    "postgres",
)

WAYS: list[Callable[[PostgresAddress], object]] = [open_journal, share_journal, examine_database, verify_journal]


@pytest.fixture(autouse=True)
def without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (PSYCOPG, *(f"wevent.journal.{name}" for name in IMPLEMENTED)):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_says_what_to_install(way: Callable[[PostgresAddress], object]) -> None:
    with pytest.raises(InvalidJournal) as said:
        way(PLACE)
    assert str(said.value) == ("Journals in PostgreSQL need psycopg. Run pip install 'wevent[postgres]'.")
    assert said.value.path == str(PLACE)


def test_whether_there_is_a_journal_is_left_to_whoever_opens_it() -> None:
    assert is_begun(PLACE)
