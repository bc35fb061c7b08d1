"""The tables of events of open slots: `events`, `intake` (one row), and what cells mean.

`probe`: one row that is written again and again, to see whether there is room.
`intake`: the id of this store, the mark of its side folder, the last closed slot, and the fencing number of a writer that is
no service (-1: none), while which nothing is taken in.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from psycopg import errors, sql

from wevent.journal.connection import Connection
from wevent.journal.postgres.intake_lock import IntakeLock

Row = tuple[bytes, bytes]
"""The keyed digest of a batch's name, and its sealed record."""

_PROBE = bytes(1 << 14)
_TRUNCATE_MS = 200  # that emptying `probe` may wait, and make others wait
_TABLES = """
CREATE TABLE IF NOT EXISTS intake (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), store text NOT NULL, folder bytea NOT NULL, closed bigint NOT NULL,
  paused bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS probe (data bytea NOT NULL);
ALTER TABLE probe ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS meanings (digest bytea PRIMARY KEY, meaning bytea NOT NULL);
CREATE TABLE IF NOT EXISTS events (
  slot bigint NOT NULL, key bytea NOT NULL, sealed bytea NOT NULL, PRIMARY KEY (slot, key)
);
ALTER TABLE events ALTER COLUMN sealed SET STORAGE EXTERNAL;
INSERT INTO intake SELECT 1, {store}, '', 0, fence FROM writer ON CONFLICT DO NOTHING
"""  # paused until a service that writes lets events in: another command may be at work
_FIND = """
SELECT found.key, found.sealed FROM unnest(%s::bigint[], %s::bytea[]) AS wanted (slot, key)
CROSS JOIN LATERAL (SELECT key, sealed FROM events WHERE slot = wanted.slot AND key = wanted.key) AS found
"""


def are_laid_out(connection: Connection) -> bool:
    """Whether there are such tables."""
    return bool(connection.execute("SELECT to_regclass('intake') IS NOT NULL").fetchall()[0][0])


def lay_out(connection: Connection, layout: IntakeLock) -> tuple[str, int]:
    """Make the tables, unless somebody was faster; the id of the store, and its last closed slot."""
    if not are_laid_out(connection):
        layout.alone(connection, sql.SQL(_TABLES).format(store=secrets.token_hex(8)))
    store, closed = connection.execute("SELECT store, closed FROM intake").fetchall()[0]
    return str(store), int(closed)


def closed_slot(connection: Connection) -> int:
    """The last closed slot."""
    return int(connection.execute("SELECT closed FROM intake").fetchall()[0][0])


def folder_mark(connection: Connection) -> bytes:
    """The mark of the side folder that all replicas use; empty before the first has one."""
    return bytes(connection.execute("SELECT folder FROM intake").fetchall()[0][0])


def change_folder_mark(connection: Connection, before: bytes, after: bytes) -> None:
    """Another mark, unless it is another one already."""
    connection.execute("UPDATE intake SET folder = %s WHERE folder = %s", (after, before))


def delete_rows(connection: Connection, through: int) -> None:
    """Delete the rows of slots up to one. What stays in the database's files is ciphertext whose key is gone."""
    connection.execute("DELETE FROM events WHERE slot <= %s", (through,)).close()


def copy_in(connection: Connection, rows: Mapping[int, Sequence[Row]]) -> None:
    """Add rows to their slots; inside a transaction."""
    with connection.cursor() as cursor, cursor.copy("COPY events FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(("int8", "bytea", "bytea"))
        for slot in sorted(rows):
            for digest, sealed in rows[slot]:
                copy.write_row((slot, digest, sealed))


def copy_out(connection: Connection, slot: int) -> Iterator[bytes]:
    """The sealed records of a slot."""
    text = sql.SQL("COPY (SELECT sealed FROM events WHERE slot = {}) TO STDOUT (FORMAT BINARY)").format(slot)
    with connection.cursor() as cursor, cursor.copy(text) as copy:
        copy.set_types(("bytea",))
        for (sealed,) in copy.rows():
            yield bytes(sealed)


def take_room(connection: Connection) -> None:
    """Commit a row that takes room of its own; the row before goes.

    While a backup reads the table it only grows, by one row each time.
    """
    with suppress(errors.LockNotAvailable):
        connection.execute(f"SET LOCAL lock_timeout TO {_TRUNCATE_MS}; TRUNCATE probe").close()
    connection.execute("INSERT INTO probe VALUES (%s)", (_PROBE,)).close()


def find_rows(connection: Connection, slots: Sequence[int], digests: Sequence[bytes]) -> list[Row]:
    """The rows of these slots with these digests; what is found is durable everywhere.

    A commit whose report was lost may not have reached every standby of the database: one that comes after it has.
    """
    rows = connection.execute(_FIND, (slots, digests)).fetchall() if slots else []
    if rows:
        connection.execute("SELECT pg_logical_emit_message(true, 'wevent', '')").close()
    return [(bytes(digest), bytes(sealed)) for digest, sealed in rows]
