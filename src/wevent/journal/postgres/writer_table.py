"""The tables `writer` and `pulse`: who may write a journal, since when, and when it was last alive; one row each.

`writer` is locked by every transaction of the writer, `pulse` never by one: a long transaction holds no beat up.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any, NamedTuple

from psycopg import errors, sql

from wevent.journal.contents import Writer
from wevent.journal.postgres.connection import Connection

_TABLES = """
CREATE TABLE IF NOT EXISTS writer (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), fence bigint NOT NULL, instance text NOT NULL, pid bigint NOT NULL,
  host text NOT NULL, since text NOT NULL, lease double precision NOT NULL, transaction text NOT NULL
);
CREATE TABLE IF NOT EXISTS pulse ("only" bigint PRIMARY KEY CHECK ("only" = 1), beat timestamptz NOT NULL);
INSERT INTO writer VALUES (1, 0, '', 0, '', '', 0, '') ON CONFLICT DO NOTHING;
INSERT INTO pulse VALUES (1, '-infinity') ON CONFLICT DO NOTHING
"""
_HOLDER = (
    "SELECT fence, instance, pid, host, since, lease,"
    " CASE WHEN isfinite(beat) THEN extract(epoch FROM clock_timestamp() - beat)::double precision END"
    " FROM writer, pulse"
)
_LOCKED = (
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32) + objid::bigint = %s)"
)


class Holder(NamedTuple):
    """Who wrote a journal last.

    Attributes:
        fence: its fencing number.
        instance: the name of its connections.
        writer: the process.
        lease_s: how long it may be silent.
        silent_s: how long it has been silent; None if it left.
    """

    fence: int
    instance: str
    writer: Writer
    lease_s: float
    silent_s: float | None

    @property
    def is_alive(self) -> bool:
        """Whether it may still be at work: it has not left, and its last beat is younger than its lease.

        One from the future is no sign of life either: the database's clock was set back, and the next beat sets it right.
        """
        return self.silent_s is not None and abs(self.silent_s) < self.lease_s


def lock_key(schema: str, purpose: str = "writer") -> int:
    """The number of an advisory lock; locks of a database are told apart by their numbers only."""
    digest = hashlib.sha256(f"wevent {purpose} {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def try_lock(connection: Connection, schema: str) -> bool:
    """Take the writer's lock for this connection, if nobody has it."""
    return bool(_only(connection, "SELECT pg_try_advisory_lock(%s)", lock_key(schema)))


def unlock(connection: Connection, schema: str) -> None:
    """Let it go; whoever asks from now on may have it."""
    connection.execute("SELECT pg_advisory_unlock(%s)", (lock_key(schema),))


def is_locked(connection: Connection, schema: str) -> bool:
    """Whether somebody has it."""
    return bool(_only(connection, _LOCKED, lock_key(schema)))


def make_tables(connection: Connection, schema: str) -> bool:
    """Make the schema and both tables where they are not there; whether the schema was not. The lock is held."""
    with connection.transaction():
        is_there = _only(connection, "SELECT to_regnamespace(%s) IS NOT NULL", schema)
        if not is_there:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        if not _only(connection, "SELECT to_regclass('writer') IS NOT NULL AND to_regclass('pulse') IS NOT NULL"):
            connection.execute(_TABLES)
    return not is_there


def drop_tables(connection: Connection, schema: str, *, whole: bool) -> None:
    """Remove what `make_tables` made for a journal that was never begun; the lock is held.

    The answer to the COMMIT that began it may have been lost, and that transaction may still be about to end: it is waited
    for, and the tables of a journal that was begun stay.
    """
    with connection.transaction():
        connection.execute("LOCK TABLE writer, pulse")
        if _only(connection, "SELECT to_regclass('head') IS NOT NULL AND to_regclass('facts') IS NOT NULL"):
            return
        connection.execute("DROP TABLE writer, pulse")
        if whole:
            with suppress(errors.DependentObjectsStillExist), connection.transaction():
                connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(schema)))


def read_holder(connection: Connection) -> Holder | None:
    """Who wrote the journal last; None if nobody ever did."""
    try:
        row = connection.execute(_HOLDER).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None
    if row is None or not row[1]:
        return None
    fence, instance, pid, host, since, lease_s, silent_s = row
    return Holder(fence, instance, Writer(pid, host, since), lease_s, silent_s)


def raise_fence(connection: Connection, instance: str, writer: Writer, lease_s: float, above: int) -> int:
    """Be the writer from now on: a fencing number larger than any before, and than `above`. The lock is held.

    A transaction of the writer before holds the row until it ends: it is stored before the number rises, or never.
    """
    with connection.transaction():
        fence = _only(
            connection,
            "UPDATE writer SET fence = greatest(fence, %s) + 1, instance = %s, pid = %s, host = %s, since = %s,"
            " lease = %s, transaction = '' RETURNING fence",
            above,
            instance,
            *writer,
            lease_s,
        )
        connection.execute("UPDATE pulse SET beat = clock_timestamp()")
    return int(fence)


def give_sign(connection: Connection, instance: str, *, leaving: bool = False) -> bool:
    """Write a beat, or that this writer leaves; whether it still is the writer."""
    beat = "'-infinity'" if leaving else "clock_timestamp()"
    query = f"UPDATE pulse SET beat = {beat} WHERE (SELECT instance FROM writer) = %s"
    return connection.execute(query, (instance,)).rowcount == 1


def end_sessions(connection: Connection, name: str) -> None:
    """End every other session whose name begins so, as far as the role may; what they had not committed is undone."""
    with suppress(errors.InsufficientPrivilege):
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE starts_with(application_name, %s) AND pid <> pg_backend_pid()",
            (name,),
        )


def _only(connection: Connection, query: str, *values: object) -> Any:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row[0]
