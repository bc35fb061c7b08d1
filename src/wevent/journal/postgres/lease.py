"""One writer per journal: a lease and a fencing number (spec 10).

The *lease* says who writes and until when, by the server's clock. The writer renews it three times per lease over a
connection of its own, so one that is paused or cut off loses it. The *fence* is what the guarantee rests on, because a lease
only says what was so a moment ago: each writer has a larger number than all before it, and every transaction compares it.
A writer that was paused, and knows nothing of the one that replaced it, commits nothing any more.

`writer` is locked by every transaction of the writer, `lease` by none of them: a long transaction delays no renewal.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple, Self

import psycopg
from psycopg import errors, sql

from wevent.errors import JournalLocked, WeventError
from wevent.journal.contents import Writer
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import Connection, check_writable, connect
from wevent.journal.postgres.server_errors import clear_failures

_TABLES = """
CREATE TABLE IF NOT EXISTS writer (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), fence bigint NOT NULL, instance text NOT NULL, pid bigint NOT NULL,
  host text NOT NULL, since text NOT NULL, lease_s double precision NOT NULL, transaction text NOT NULL
);
CREATE TABLE IF NOT EXISTS lease (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), instance text NOT NULL, expires timestamptz NOT NULL
);
INSERT INTO writer VALUES (1, 0, '', 0, '', '', 0, '') ON CONFLICT DO NOTHING;
INSERT INTO lease VALUES (1, '', '-infinity') ON CONFLICT DO NOTHING
"""
_HOLDER = (
    "SELECT fence, writer.instance, pid, host, since, lease_s,"
    " CASE WHEN isfinite(expires) THEN extract(epoch FROM expires - clock_timestamp())::double precision END,"
    " EXISTS (SELECT 1 FROM pg_stat_activity WHERE starts_with(application_name, 'wevent ' || writer.instance))"
    " FROM writer, lease"
)
_RENEW = "UPDATE lease SET expires = clock_timestamp() + make_interval(secs => lease_s) FROM writer"
_PAUSE_S = 0.05
_RECONNECT_S = 0.25
_LOOKS = 4  # at a lease that somebody has: they may be about to give it up
_LOOKS_AT_GONE = 100  # at one of a killed process: the server may still be inside a statement of it
_LOCK_MS = 1000  # for sessions of the writer before, which were told to end
_here: set[str] = set()  # the writers of this process, by their instances


class Holder(NamedTuple):
    """Who wrote a journal last.

    Attributes:
        fence: its fencing number.
        instance: the name of its connections.
        writer: the process.
        lease_s: length of its lease.
        left_s: time until its lease expires; None if it gave it up.
        connected: whether the server has a connection of it.
    """

    fence: int
    instance: str
    writer: Writer
    lease_s: float
    left_s: float | None
    connected: bool

    @property
    def may_write(self) -> bool:
        """Whether its lease is valid and its process not known to be gone.

        A lease that ends much later than any that begins now is not valid: the server's clock was set back. Machines may
        share a name, and containers that do may not see each other's processes: so one with connections may write.
        """
        is_valid = self.left_s is not None and 0 < self.left_s <= 2 * self.lease_s
        return is_valid and (self.connected or not self.seems_gone())

    def seems_gone(self) -> bool:
        """Return whether the process ran on a machine of this name and is not there.

        A process that has the number of this one and is none of its writers was a process before it, as in a container that
        was started again.
        """
        if self.writer.host != socket.gethostname():
            return False
        if self.writer.pid == os.getpid():
            return self.instance not in _here
        try:
            os.kill(self.writer.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


class Lease:
    """The right to write a journal, from `take` to `close` or until another writer takes it.

    Attributes:
        place: the journal.
        instance: the name of its connections, see `connect`.
        fence: its number; every transaction that writes compares it with the one in the table `writer`.
        before: who wrote the journal last, None if nobody did.
    """

    def __init__(self, place: PostgresPlace, connection: Connection, instance: str, above: int) -> None:
        """Become the writer. Callers use `take`."""
        self.place, self.instance = place, instance
        self._connection: Connection | None = connection
        self._closing = threading.Event()
        self._lost = self._made_schema = False
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.writer = Writer(os.getpid(), socket.gethostname(), since)
        self.before, self.fence = self._take(connection, above)
        _here.add(instance)
        self._renewing = threading.Thread(target=self._renew, name="wevent-lease", daemon=True)
        self._renewing.start()

    @classmethod
    def take(cls, place: PostgresPlace, *, above: int = 0) -> Self:
        """Become the writer of a journal.

        A writer without a connection may be about to connect again: it is waited for, at most until its lease expires.

        Args:
            place: the journal.
            above: the fence will be larger than this too: the number of the newest side file.

        Raises:
            JournalLocked: naming the writer that has it.
            StorageFailed: if the server may forget what it commits, is a standby, or does not allow it.
            JournalUnreachable, InvalidJournal: as of `connect`.
        """
        instance = secrets.token_hex(8)
        connection = connect(place, "lease", instance)
        try:
            check_writable(connection, place)
            with clear_failures(place):
                return cls(place, connection, instance, above)
        except BaseException:
            connection.close()
            raise

    @property
    def is_lost(self) -> bool:
        """Whether another writer has taken the journal, as far as is known here: the fence in the database decides."""
        return self._lost

    def check(self) -> None:
        """Refuse to go on when another writer is known to have the journal.

        Raises:
            JournalLocked: naming the writer that has it.
        """
        if self._lost:
            raise self.locked(None)

    def lose(self) -> None:
        """Note that another writer has the journal."""
        self._lost = True

    def locked(self, holder: Holder | None) -> JournalLocked:
        """Return the error for a journal that another writer took."""
        return _held_by(self.place, holder, "Its releases stand, this draw is discarded.")

    def close(self, *, never_begun: bool = False) -> None:
        """Give the lease up.

        Args:
            never_begun: there is no journal: remove what was made for it.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        self._renewing.join()
        _here.discard(self.instance)
        if self._connection is None:
            return
        if never_begun and not self._lost:
            with suppress(psycopg.Error, WeventError):
                drop_tables(self._connection, self.place.schema, self.instance, whole=self._made_schema)
        with suppress(psycopg.Error, WeventError):
            self._connection.execute("UPDATE lease SET expires = '-infinity' WHERE instance = %s", (self.instance,))
        self._connection.close()

    def _take(self, connection: Connection, above: int) -> tuple[Holder | None, int]:
        """Wait until nobody else may write, and be the writer; returns the one before and the new fence."""
        looks, end = 0, time.monotonic() + self.place.lease_s + 10
        while True:
            self._made_schema = make_tables(connection, self.place.schema) or self._made_schema
            holder, fence = None, None
            with suppress(
                errors.UndefinedTable, errors.LockNotAvailable
            ):  # dropped meanwhile; sessions that end slowly
                holder, fence = self._try_take(connection, above)
            if fence is not None:
                return holder, fence
            looks += holder is not None and holder.connected
            if holder is not None and looks >= (_LOOKS_AT_GONE if holder.seems_gone() else _LOOKS):
                raise _held_by(self.place, holder, "Stop that process first, or publish into another journal.")
            if time.monotonic() > end:
                raise _held_by(
                    self.place,
                    holder or read_holder(connection),
                    "It does not react, and its sessions could not be ended: let the role do that (GRANT pg_signal_backend "
                    "TO role), or end them.",
                )
            time.sleep(_PAUSE_S)

    def _try_take(self, connection: Connection, above: int) -> tuple[Holder | None, int | None]:
        """Be the writer if nobody else may write: a fencing number larger than any before, and than `above`.

        A transaction of the writer before holds the row `writer` until it ends: it is stored before the number rises, or
        never.
        """
        holder = read_holder(connection)
        if holder is not None and holder.may_write:
            return holder, None
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout TO {_LOCK_MS}")
            connection.execute("SELECT FROM lease FOR UPDATE")
            holder = read_holder(connection)  # again: another one may have been faster
            if holder is not None and holder.may_write:
                return holder, None
            if holder is not None:
                _end_sessions(connection, holder.instance)
            fence = _only(
                connection,
                "UPDATE writer SET fence = greatest(fence, %s) + 1, instance = %s, pid = %s, host = %s, since = %s,"
                " lease_s = %s, transaction = '' RETURNING fence",
                above,
                self.instance,
                *self.writer,
                self.place.lease_s,
            )
            connection.execute("UPDATE lease SET instance = %s", (self.instance,))
            connection.execute(_RENEW)
        return holder, int(fence)

    def _renew(self) -> None:
        """Renew the lease three times in its length; connect again when the connection breaks."""
        while not self._closing.wait(self.place.lease_s / 3 if self._connection is not None else _RECONNECT_S):
            try:
                if self._connection is None:
                    self._connection = connect(self.place, "lease", self.instance)
                    check_writable(self._connection, self.place)
                done = self._connection.execute(f"{_RENEW} WHERE lease.instance = %s", (self.instance,))
                if done.rowcount != 1:
                    self._lost = True
                    return
            except (psycopg.Error, WeventError):
                if self._connection is not None:
                    self._connection.close()
                self._connection = None


def own_instances() -> list[str]:
    """Return the instances of this process's writers. No other process has them, while containers share names and numbers."""
    return sorted(_here)


def lock_key(schema: str, purpose: str) -> int:
    """Return the number of an advisory lock; locks of a database are told apart by their numbers only."""
    digest = hashlib.sha256(f"wevent {purpose} {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def make_tables(connection: Connection, schema: str) -> bool:
    """Make the schema and both tables where they are missing; returns whether the schema was."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(schema, "writer"),))
        is_there = _only(connection, "SELECT to_regnamespace(%s) IS NOT NULL", schema)
        if not is_there:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        if not _only(connection, "SELECT to_regclass('writer') IS NOT NULL AND to_regclass('lease') IS NOT NULL"):
            connection.execute(_TABLES)
    return not is_there


def drop_tables(connection: Connection, schema: str, instance: str, *, whole: bool) -> None:
    """Remove what `make_tables` made for a journal that was never begun, unless another writer has it now.

    The answer to the COMMIT that began it may have been lost, and that transaction may still be about to end: it is waited
    for, and the tables of a journal that was begun stay.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(schema, "writer"),))
        connection.execute("LOCK TABLE lease, writer")
        if _only(connection, "SELECT instance FROM lease") != instance:
            return
        if _only(connection, "SELECT to_regclass('head') IS NOT NULL AND to_regclass('facts') IS NOT NULL"):
            return
        connection.execute("DROP TABLE writer, lease")
        if whole:
            with suppress(errors.DependentObjectsStillExist), connection.transaction():
                connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(schema)))


def read_holder(connection: Connection) -> Holder | None:
    """Return who wrote the journal last; None if nobody ever did."""
    try:
        row = connection.execute(_HOLDER).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None
    if row is None or not row[1]:
        return None
    fence, instance, pid, host, since, lease_s, left_s, connected = row
    return Holder(fence, instance, Writer(pid, host, since), lease_s, left_s, connected)


def current_writer(connection: Connection) -> Writer | None:
    """Return who publishes into a journal now, None if nobody does."""
    holder = read_holder(connection)
    return holder.writer if holder is not None and holder.left_s is not None and holder.connected else None


def _held_by(place: PostgresPlace, holder: Holder | None, remedy: str) -> JournalLocked:
    writer = None if holder is None else holder.writer
    named = "another process" if writer is None else f"process {writer.pid} on {writer.host} since {writer.since}"
    return JournalLocked(
        "to be the only writer of the journal",
        f"one held by {named}",
        remedy,
        path=str(place),
        holder={} if writer is None else writer._asdict(),
    )


def _end_sessions(connection: Connection, instance: str) -> None:
    """End the connections of a writer, as far as the role may; what they had not committed is undone."""
    with suppress(errors.InsufficientPrivilege), connection.transaction():
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, %s)",
            (f"wevent {instance}",),
        )


def _only(connection: Connection, query: str, *values: object) -> Any:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row[0]
