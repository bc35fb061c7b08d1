"""One writer per journal: a lease and a fencing number (spec 10).

The *lease* names the writer and ends by the server's clock. The writer renews it three times per lease over a connection
of its own, so a writer that is paused or cut off loses it. The guarantee rests on the *fence*: each writer has a larger
number than all before it, and each of its transactions compares that number. A writer that was replaced during a pause
commits nothing afterwards.

Every transaction of the writer locks its row in `writer`, and none locks `lease`: a long transaction delays no renewal.
`outcomes` has the last write transaction of each session, see `wevent.journal.postgres`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, sql

from wevent.errors import JournalLocked, WeventError
from wevent.journal.address import PostgresAddress
from wevent.journal.connection import Connection, Session, check_writable
from wevent.journal.record import Writer
from wevent.journal.witness import STOP_HOLDER, held_by, this_process

_TABLES = """
CREATE TABLE IF NOT EXISTS writer (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), fence bigint NOT NULL, instance text NOT NULL, pid bigint NOT NULL,
  host text NOT NULL, since text NOT NULL, lease_s double precision NOT NULL
);
CREATE TABLE IF NOT EXISTS lease (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), instance text NOT NULL, expires timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS outcomes (
  session text PRIMARY KEY, number bigint NOT NULL, is_stored boolean NOT NULL, at timestamptz NOT NULL
);
INSERT INTO writer VALUES (1, 0, '', 0, '', '', 0) ON CONFLICT DO NOTHING;
INSERT INTO lease VALUES (1, '', '-infinity') ON CONFLICT DO NOTHING
"""
_ARE_THERE = "SELECT count(to_regclass(name)) = 3 FROM unnest(ARRAY['writer', 'lease', 'outcomes']) AS name"
_HOLDER = (
    "SELECT fence, writer.instance, pid, host, since, lease_s,"
    " CASE WHEN isfinite(expires) THEN extract(epoch FROM expires - clock_timestamp())::double precision END,"
    " EXISTS (SELECT 1 FROM pg_stat_activity WHERE starts_with(application_name, 'wevent ' || writer.instance))"
    " FROM writer, lease"
)
_TAKE = (
    "UPDATE writer SET fence = greatest(fence, %s) + 1, instance = %s, pid = %s, host = %s, since = %s, lease_s = %s"
    " RETURNING fence"
)
_RENEW = "UPDATE lease SET expires = clock_timestamp() + make_interval(secs => lease_s) FROM writer"
_END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, %s)"
_PAUSE_S = 0.05
_RECONNECT_S = 0.25
_WAIT_S = 0.2  # for a live writer, which may be about to end
_WAIT_GONE_S = 5.0  # for the connections of a killed writer: the server may still be inside a statement
_WAIT_MORE_S = 10.0  # after the lease of a writer without connections
_LOCK_MS = 1000  # for transactions of the writer before, whose sessions were told to end
_END_IT = (
    "It does not react, and its sessions could not be ended: let the role do that (GRANT pg_signal_backend TO role), or end"
    " them."
)
_here: set[str] = set()  # instances of the writers of this process


class Holder(NamedTuple):
    """Last writer of a journal: its fence, the name of its connections, and its lease.

    Attributes:
        left_s: time until its lease expires; None if it gave the lease up.
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

        A lease that ends much later than one that begins now is invalid: the server's clock was set back. Containers may
        share a host name without seeing each other's processes, so a writer that has connections may write.
        """
        is_valid = self.left_s is not None and 0 < self.left_s <= 2 * self.lease_s
        return is_valid and (self.connected or not self.seems_gone())

    def seems_gone(self) -> bool:
        """Return whether a host of this name runs no such process.

        A process with the number of this one may be an earlier one, as in a container that was started again.
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
    """The right to write a journal, until `close` or until another writer takes it.

    A writer without a connection may be about to connect again: wait for it, at most until its lease expires.

    Args:
        place: the journal.
        above: a lower bound of the fence: the number of the newest witness file.

    Attributes:
        instance: the name of its connections, see `connect`.
        fence: its fencing number.
        before: last writer before this one; None if there was none.
        is_lost: whether another writer is known to have the journal. The fence in the database decides.

    Raises:
        JournalLocked: naming the writer.
        StorageFailed: if the server can lose commits, is a standby, or refuses it.
        JournalUnreachable, InvalidJournal: as of `connect`.
    """

    def __init__(self, place: PostgresAddress, *, above: int = 0) -> None:
        self.place, self.instance, self.writer = place, secrets.token_hex(8), this_process()
        self.fence, self.is_lost = 0, False
        self.before: Holder | None = None
        self._made_schema = False
        self._session = Session(place, "lease", self.instance, writes=False)
        self._closing = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="wevent-lease", daemon=True)
        try:
            self._session.once(lambda connection: self._wait(connection, above))
        except BaseException:
            self._session.close()
            raise
        _here.add(self.instance)
        self._session.regained = lambda: check_writable(self._session.connection, place)
        self._renewing.start()

    def locked(self, holder: Holder | None) -> JournalLocked:
        """Note that another writer took the journal; return the error that says so."""
        self.is_lost = True
        writer = None if holder is None else holder.writer
        return held_by(str(self.place), writer, "Its releases stand, this draw is discarded.")

    def close(self, *, never_begun: bool = False) -> None:
        """Give the lease up. `never_begun`: there is no journal, so remove the tables that were made for it."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._renewing.join()
        _here.discard(self.instance)
        connection = self._session.connection
        if never_begun and not self.is_lost:
            with suppress(psycopg.Error, WeventError):
                drop_tables(connection, self.place.schema, self.instance, whole=self._made_schema)
        with suppress(psycopg.Error):
            connection.execute("UPDATE lease SET expires = '-infinity' WHERE instance = %s", (self.instance,))
        self._session.close()

    def _wait(self, connection: Connection, above: int) -> None:
        """Wait until no other writer may write, and take the lease."""
        check_writable(connection, self.place)
        begun = time.monotonic()
        while True:
            self._made_schema = make_tables(connection, self.place.schema) or self._made_schema
            try:
                holder = self._try_acquire(connection, above)
                if holder is None:
                    return
            except (errors.UndefinedTable, errors.LockNotAvailable):  # dropped meanwhile; a session that ends slowly
                holder = None
            if holder is not None and holder.connected:
                limit_s, fix = _WAIT_GONE_S if holder.seems_gone() else _WAIT_S, STOP_HOLDER
            else:
                limit_s, fix = self.place.lease_s + _WAIT_MORE_S, _END_IT
            if time.monotonic() - begun >= limit_s:
                holder = holder or read_holder(connection)
                raise held_by(str(self.place), None if holder is None else holder.writer, fix)
            time.sleep(_PAUSE_S)

    def _try_acquire(self, connection: Connection, above: int) -> Holder | None:
        """Take the lease with a fence above all before it and `above`, or return the holder that may still write.

        A transaction of the writer before locks its row in `writer`: it is stored before the fence rises, or never.
        """
        holder = read_holder(connection)
        if holder is not None and holder.may_write:
            return holder
        if holder is not None:  # end its sessions, which may hold locks, as far as the role may
            with suppress(errors.InsufficientPrivilege):
                connection.execute(_END_SESSIONS, (f"wevent {holder.instance}",))
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout TO {_LOCK_MS}")
            connection.execute("SELECT FROM lease FOR UPDATE")
            holder = read_holder(connection)  # again: another writer may have been faster
            if holder is not None and holder.may_write:
                return holder
            fence = _only(connection, _TAKE, above, self.instance, *self.writer, self.place.lease_s)
            connection.execute("UPDATE lease SET instance = %s", (self.instance,))
            connection.execute(_RENEW)
        self.before, self.fence = holder, int(fence)
        return None

    def _renew(self) -> None:
        """Renew the lease three times in its length. The session reconnects after a failure."""
        pause_s, renew = self.place.lease_s / 3, f"{_RENEW} WHERE lease.instance = %s"
        while not self._closing.wait(pause_s):
            pause_s = _RECONNECT_S
            with suppress(WeventError):
                if not self._session.once(lambda connection: connection.execute(renew, (self.instance,)).rowcount):
                    self.is_lost = True
                    return
                pause_s = self.place.lease_s / 3


def own_instances() -> list[str]:
    """Return the instances of this process's writers. They are unique, while containers share names and numbers."""
    return sorted(_here)


def lock_key(schema: str, purpose: str) -> int:
    """Return the number of an advisory lock, different for each schema and purpose of a database."""
    digest = hashlib.sha256(f"wevent {purpose} {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def make_tables(connection: Connection, schema: str) -> bool:
    """Create the schema and the tables of writers where they are missing; return whether the schema was."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(schema, "writer"),))
        is_there = _only(connection, "SELECT to_regnamespace(%s) IS NOT NULL", schema)
        if not is_there:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        if not _only(connection, _ARE_THERE):
            connection.execute(_TABLES)
    return not is_there


def drop_tables(connection: Connection, schema: str, instance: str, *, whole: bool) -> None:
    """Remove what `make_tables` made for a journal that was never begun, unless another writer has it now.

    The transaction that began the journal may still be about to end after its answer was lost. Wait for it, and keep the
    tables of a journal that was begun.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(schema, "writer"),))
        connection.execute("LOCK TABLE lease, writer")
        if _only(connection, "SELECT instance FROM lease") != instance:
            return
        if _only(connection, "SELECT to_regclass('head') IS NOT NULL AND to_regclass('facts') IS NOT NULL"):
            return
        connection.execute("DROP TABLE writer, lease, outcomes")
        if whole:
            with suppress(errors.DependentObjectsStillExist), connection.transaction():
                connection.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(schema)))


def read_holder(connection: Connection) -> Holder | None:
    """Return the last writer of a journal, None if there was none."""
    try:
        row = connection.execute(_HOLDER).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None
    if row is None or not row[1]:
        return None
    fence, instance, pid, host, since, lease_s, left_s, connected = row
    return Holder(fence, instance, Writer(pid, host, since), lease_s, left_s, connected)


def current_writer(connection: Connection) -> Writer | None:
    """Return the process that publishes into a journal now, None if there is none."""
    holder = read_holder(connection)
    return holder.writer if holder is not None and holder.left_s is not None and holder.connected else None


def _only(connection: Connection, query: str, *values: object) -> Any:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row[0]
