"""Whoever stands in the way of a slot that closes is ended, or is named: nobody waits for ever, nothing is drawn twice."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.postgres.replica_parts import Clock, asked, lines, new_place, replicas, roster
from wevent.errors import StorageFailed
from wevent.events import postgres_store
from wevent.events.postgres_store import IntakeLock
from wevent.journal.address import PostgresAddress
from wevent.journal.connection import connect

_NOTHING = sql.SQL("SET LOCAL work_mem TO '1MB'")


@pytest.fixture
def place(tmp_path: Path) -> PostgresAddress:
    return new_place(tmp_path)


@contextmanager
def a_role(place: PostgresAddress, grant: str = "") -> Iterator[PostgresAddress]:
    """The same place for a role of its own that is no superuser."""
    name, password = f"r_{secrets.token_hex(4)}", secrets.token_hex(8)
    with asked(place) as database:
        database.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        database.execute(f"GRANT USAGE ON SCHEMA {place.schema} TO {name}")
        database.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {place.schema} TO {name}")
        if grant:
            database.execute(f"GRANT {grant} TO {name}")
        start, _, rest = place.conninfo.partition("://")
        yield replace(place, conninfo=f"{start}://{name}:{password}@{rest.partition('@')[2]}")
        database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}", prepare=False)


@contextmanager
def standing_still(place: PostgresAddress) -> Iterator[psycopg.Connection[Any]]:
    """A session that took the lock with others, and does nothing more."""
    with suppress(psycopg.OperationalError), asked(place) as stuck:
        stuck.execute("SET idle_in_transaction_session_timeout TO '1h'")  # of a test that would fail
        stuck.execute("BEGIN")
        IntakeLock(place.schema, str(place)).shared(stuck)
        yield stuck


def test_who_may_not_be_ended_is_named(place: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_store, "STANDSTILL_S", 1)
    monkeypatch.setattr(postgres_store, "GIVE_UP_S", 2.5)
    with a_role(place) as ours, standing_still(place) as stuck, closing(connect(ours, "test")) as connection:
        process = stuck.info.backend_pid
        with pytest.raises(StorageFailed, match=rf"process {process} of role wevent.*GRANT pg_signal_backend") as said:
            IntakeLock(ours.schema, str(ours)).alone(connection, _NOTHING)
        assert said.value.path == str(ours)
        assert stuck.execute("SELECT 1").fetchone() == (1,), "it was not ended"
        stuck.execute("COMMIT")
        IntakeLock(ours.schema, str(ours)).alone(connection, _NOTHING)


def test_a_role_with_the_right_ends_those_of_other_roles(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long they have had it the server does not say to it."""
    monkeypatch.setattr(postgres_store, "STANDSTILL_S", 1)
    with (
        a_role(place, "pg_signal_backend") as ours,
        a_role(place) as theirs,
        standing_still(theirs) as stuck,
        closing(connect(ours, "test")) as connection,
    ):
        IntakeLock(ours.schema, str(ours)).alone(connection, _NOTHING)
        with pytest.raises(psycopg.OperationalError):
            stuck.execute("SELECT 1")


def test_one_that_may_not_be_ended_keeps_nobody_from_ending_the_others(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "STANDSTILL_S", 1)
    monkeypatch.setattr(postgres_store, "GIVE_UP_S", 5)
    monkeypatch.setattr(postgres_store, "time", SimpleNamespace(monotonic=itertools.count().__next__))  # five attempts
    with (
        a_role(place) as ours,
        standing_still(place) as theirs,
        standing_still(ours) as own,
        closing(connect(ours, "test")) as connection,
    ):
        with pytest.raises(StorageFailed, match=f"process {theirs.info.backend_pid} of role wevent;"):
            IntakeLock(ours.schema, str(ours)).alone(connection, _NOTHING)
        with pytest.raises(psycopg.OperationalError):
            own.execute("SELECT 1")


def test_what_was_drawn_before_a_slot_that_cannot_be_closed_is_not_undone(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots that share a transaction: the later one is left to the next, so that nothing is drawn again (spec 10)."""
    monkeypatch.setattr(postgres_store, "STANDSTILL_S", 1)
    monkeypatch.setattr(postgres_store, "GIVE_UP_S", 0.0)
    now = Clock(3)
    with replicas(place, now, 1) as (one,):
        one.receiver.receive("a", "1", lines((1, 7, "north")))
        now.seconds = 30
        counting = one.source.count(roster(), 1, 2)
        assert next(counting).slot == 1
        with standing_still(place):
            assert list(counting) == []
        with standing_still(place), pytest.raises(StorageFailed, match="The intake of the journal could not be locked"):
            list(one.source.count(roster(), 2, 2))
        assert [counted.slot for counted in one.source.count(roster(), 2, 1)] == [2]
