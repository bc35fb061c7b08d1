"""Event store in PostgreSQL: taken in by any replica, counted by the writer, deleted after the commit of the slot.

The intake lock makes closing exact. A replica that adds records holds it shared, from before it reads the last closed slot
until its commit; the writer that closes a slot holds it alone. So acknowledged records are there when their slot is closed,
and none is added later.

The database holds ciphertext alone. The key of a row is a keyed digest of the batch name, unique in its slot: a batch is
stored once, whichever replica receives it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors, sql

from wevent.errors import JournalLocked, StorageFailed
from wevent.events.records import Result, SlotKeys, StoredBatch, decrypt, encrypt

if TYPE_CHECKING:
    from wevent.journal.connection import Session

_log = logging.getLogger("wevent.events.postgres_store")
_LATEST = 64  # slots in which a batch is looked for
_PROBE = bytes(1 << 14)
_TRUNCATE_MS = 200  # longest wait to empty `probe`
_TABLES = """
CREATE TABLE IF NOT EXISTS intake (
  "only" bigint PRIMARY KEY CHECK ("only" = 1), store text NOT NULL, folder bytea NOT NULL, closed bigint NOT NULL,
  paused bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS probe (data bytea NOT NULL);
ALTER TABLE probe ALTER COLUMN data SET STORAGE EXTERNAL;
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
_HOLDERS = """
SELECT held.pid, session.usename
FROM pg_locks AS held JOIN pg_stat_activity AS session USING (pid)
WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1 AND held.pid <> pg_backend_pid()
AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND ((held.classid::bigint << 32) | held.objid::bigint) = %s
"""

SETTING = "SET idle_in_transaction_session_timeout TO 3000"
"""Setting of the session of a store: a replica that stands still in a transaction delays every other one."""

UNDERSTOOD = (errors.UniqueViolation, errors.LockNotAvailable)
"""Errors of the database that a store handles itself."""

STANDSTILL_S = 2
"""Seconds that a replica may delay the closing of a slot; then its session is ended."""

GIVE_UP_S = 20.0
"""Seconds to wait for sessions that cannot be ended."""

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore:
    """Event store of a journal in PostgreSQL, in one thread.

    Args:
        session: connections, made with `SETTING` and `UNDERSTOOD`.
        find_keys: returns the keys of the store with an id: one object in a process, so that all lose a key together.
        own_instances: returns the instances of the journal's writers in this process.
        is_writers: whether the writer of the journal uses it: its folder of keys is then the one that all must use.
    """

    def __init__(
        self,
        session: Session,
        find_keys: Callable[[str], SlotKeys],
        own_instances: Callable[[], list[str]],
        *,
        is_writers: bool = False,
    ) -> None:
        self.session, self.patience_s, self._find_keys = session, session.patience_s, find_keys
        self._own_instances, self._is_writers = own_instances, is_writers
        self._lock = IntakeLock(session.place.schema, str(session.place))
        self._keys: SlotKeys | None = None
        self._mark = b""
        self._closed = 0

    def open_keys(self) -> SlotKeys:
        """Return the keys; the first use creates missing tables, and fails if the other replicas use another folder."""
        self.session.patience_s = self.patience_s
        if self._keys is None:
            self._keys = self.session.repeat(self._open)
        return self._keys

    def _open(self, connection: Connection) -> SlotKeys:
        """Create missing tables, and check the folder of keys: keys in a folder that others do not see would open nothing."""
        if not has_tables(connection):
            self._lock.alone(connection, sql.SQL(_TABLES).format(store=secrets.token_hex(8)))
        store, self._closed, known = _read_intake(connection)
        keys = self._find_keys(store)
        may_change = self._is_writers or not known
        self._mark = keys.folder_mark(make=may_change)
        if self._mark != known and may_change:
            connection.execute("UPDATE intake SET folder = %s WHERE folder = %s", (self._mark, known))
            _, _, known = _read_intake(connection)
        if self._mark != known:
            raise _other_folder(keys)
        return keys

    # Pausing

    def let_in(self) -> None:
        """Accept events: a service writes the journal, and counts them."""
        self._pause(sql.SQL("-1"))

    def keep_out(self) -> None:
        """Refuse events: another command writes the journal, which would not count them."""
        self._pause(sql.SQL("fence"))

    def _pause(self, until: sql.SQL) -> None:
        """Set the fence until which nothing is accepted, if this process is the writer still."""
        text = sql.SQL("UPDATE intake SET paused = {} FROM writer WHERE instance = ANY({})").format(
            until, sql.Literal(self._own_instances())
        )
        self._repeat(lambda connection: self._lock.alone(connection, text))

    # Intake

    def find(self, batches: Sequence[StoredBatch]) -> list[tuple[int, bytes]]:
        return self._repeat(lambda connection: self._find(connection, batches))

    def put(self, batches: Sequence[StoredBatch]) -> tuple[bool, int]:
        keys = self.open_keys()
        slots = {slot for _, records in batches for slot in records}
        if not slots:
            return True, self._closed
        known = keys.make(slots) if min(slots) > self._closed else {}
        missing = slots - known.keys()  # the key of a slot that was closed meanwhile is being destroyed
        if missing:
            _, self._closed, _ = self._repeat(_read_intake)
            if max(missing) > self._closed:
                raise keys.unusable(max(missing))
            return False, self._closed
        rows = [
            (slot, _digest_name(known[slot], name), encrypt(known[slot], record))
            for name, records in batches
            for slot, record in records.items()
        ]
        try:
            is_stored = self.session.once(lambda connection: self._copy(connection, rows))
        except errors.UniqueViolation:
            is_stored = False
        return is_stored, self._closed

    def probe(self) -> None:
        """Raise `StorageFailed` if batches cannot be stored: write a file beside the keys, and a row that takes room."""
        self.open_keys().probe()
        self._repeat(_take_room)

    # Publisher

    def close_slot(self, slot: int) -> None:
        text = sql.SQL("UPDATE intake SET closed = greatest(closed, {slot})").format(slot=slot)
        self._repeat(lambda connection: self._lock.alone(connection, text))
        self._closed = max(self._closed, slot)

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        key = self.open_keys().make([slot]).get(slot)
        return self._repeat(lambda connection: use(_read_records(connection, slot, key)))

    def destroy(self, through: int) -> None:
        self.open_keys().destroy(through)

    def forget(self, through: int) -> None:
        self.destroy(through)
        self._repeat(lambda connection: connection.execute("DELETE FROM events WHERE slot <= %s", (through,)).close())

    def close(self) -> None:
        self.session.close()

    def _repeat(self, work: Callable[[Connection], Result]) -> Result:
        self.open_keys()
        return self.session.repeat(work)

    def _find(self, connection: Connection, batches: Sequence[StoredBatch]) -> list[tuple[int, bytes]]:
        keys = self.open_keys()
        latest = keys.slots()[-_LATEST:]
        slots, digests, places = [], [], {}
        for index, (name, records) in enumerate(batches):
            for slot in {*latest, *records}:
                if (key := keys.get(slot)) is not None:
                    digest = _digest_name(key, name)
                    slots.append(slot)
                    digests.append(digest)
                    places[digest] = index, key
        rows = connection.execute(_FIND, (slots, digests)).fetchall() if slots else []
        if rows:  # a commit whose report was lost may not have reached every standby: a later one waits for that
            connection.execute("SELECT pg_logical_emit_message(true, 'wevent', '')").close()
        found = [(places[bytes(digest)], decrypt(places[bytes(digest)][1], bytes(sealed))) for digest, sealed in rows]
        return [(index, record) for (index, _), record in found if record is not None]

    def _copy(self, connection: Connection, rows: list[tuple[int, bytes, bytes]]) -> bool:
        """Add rows under the intake lock; returns whether their slots were open."""
        with connection.transaction():
            self._closed, is_paused, folder = self._lock.shared(connection)
            if folder != self._mark:
                raise _other_folder(self.open_keys())
            if is_paused:
                raise JournalLocked(
                    "Another command publishes the journal, without events of a service.",
                    "Send the same batch again when that command has ended.",
                    path=str(self.session.place),
                )
            if min(rows)[0] <= self._closed:
                return False
            with connection.cursor() as cursor, cursor.copy("COPY events FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(("int8", "bytea", "bytea"))
                for row in rows:
                    copy.write_row(row)
        return True


class IntakeLock:
    """Lock of one journal that many sessions share or one has alone, until the end of the transaction.

    A replica that was stopped inside a transaction would keep slots from closing. Therefore `alone` ends sessions that hold
    the lock for long: they had acknowledged nothing. It waits a little longer for sessions that the role may not end, then
    it fails; nothing is drawn meanwhile, so nothing is drawn again (spec 10).
    """

    def __init__(self, schema: str, address: str) -> None:
        self._address = address
        digest = hashlib.sha256(f"wevent intake {schema}".encode()).digest()
        self._number = int.from_bytes(digest[:8], "big", signed=True)

    def shared(self, connection: Connection) -> tuple[int, bool, bytes]:
        """Take the lock together with others, and return what stays so: the last closed slot, is paused, mark of the folder.

        A statement of its own reads the result: one that waited for the lock would see what was there before.
        """
        text = sql.SQL(
            "SELECT pg_advisory_xact_lock_shared({}); SELECT closed, paused = fence, folder FROM intake, writer"
        )
        with connection.cursor() as cursor:
            cursor.execute(text.format(self._number))
            cursor.nextset()
            closed, is_paused, folder = cursor.fetchall()[0]
            return int(closed), bool(is_paused), bytes(folder)

    def alone(self, connection: Connection, work: sql.Composable) -> None:
        """Run statements without results under the lock, in one message: no pause of this process is inside.

        If other sessions keep the lock and cannot be ended, nothing is done and `StorageFailed` is raised.
        """
        text = sql.SQL("SET LOCAL lock_timeout TO {}; SELECT pg_advisory_xact_lock({}); {}").format(
            1000 * STANDSTILL_S, self._number, work
        )
        end = time.monotonic() + GIVE_UP_S
        while True:
            try:
                connection.execute(text).close()
                return
            except errors.LockNotAvailable:
                holders = self._end_holders(connection)
                if time.monotonic() >= end:
                    raise self._locked(holders) from None

    def _end_holders(self, connection: Connection) -> dict[int, str]:
        """End sessions that hold the lock, and return them: process and role.

        Each has held it as long as this session has waited, since others that come meanwhile wait, too.
        """
        holders: dict[int, str] = dict(connection.execute(_HOLDERS, (self._number,)).fetchall())
        for process in holders:
            with suppress(errors.InsufficientPrivilege):
                connection.execute("SELECT pg_terminate_backend(%s)", (process,)).close()
        return holders

    def _locked(self, holders: dict[int, str]) -> StorageFailed:
        named = ", ".join(f"process {process} of role {role}" for process, role in sorted(holders.items())[:5])
        return StorageFailed(
            "The intake of the journal could not be locked: sessions keep it and could not be ended "
            f"({named or 'they keep its tables'}; {self._address}).",
            "Use one role for all replicas, or let this one end the others' sessions (GRANT pg_signal_backend TO role); "
            "or end them. Nothing was drawn, and what was acknowledged is kept.",
            path=self._address,
        )


def has_tables(connection: Connection) -> bool:
    """Return whether the tables of a store are there."""
    return bool(connection.execute("SELECT to_regclass('intake') IS NOT NULL").fetchall()[0][0])


def _other_folder(keys: SlotKeys) -> StorageFailed:
    side = str(keys.folder.parent)
    return StorageFailed(
        f"The other replicas of the journal use another witness folder than {side}.",
        "Name the same folder (witness=…) for all replicas, on a volume that all of them share.",
        path=side,
    )


def _digest_name(key: bytes, name: bytes) -> bytes:
    """Return a digest of a batch name that only the holder of the slot's key can compute."""
    return hashlib.blake2b(name, key=key, digest_size=32, person=b"wevent batch").digest()


def _read_intake(connection: Connection) -> tuple[str, int, bytes]:
    """Return the id of the store, the last closed slot, and the mark of the folder of keys."""
    store, closed, folder = connection.execute("SELECT store, closed, folder FROM intake").fetchall()[0]
    return str(store), int(closed), bytes(folder)


def _read_records(connection: Connection, slot: int, key: bytes | None) -> Iterator[bytes]:
    """Yield the records of a slot; log that some cannot be read."""
    is_damaged = False
    text = sql.SQL("COPY (SELECT sealed FROM events WHERE slot = {}) TO STDOUT (FORMAT BINARY)").format(slot)
    with connection.cursor() as cursor, cursor.copy(text) as copy:
        copy.set_types(("bytea",))
        for (sealed,) in copy.rows():
            record = None if key is None else decrypt(key, bytes(sealed))
            if record is None:
                is_damaged = True
            else:
                yield record
    if is_damaged:
        _log.warning(
            "events of a slot cannot be read (their key is gone from the witness folder, or is another one): they are not "
            "counted (private: do not publish this line)"
        )


def _take_room(connection: Connection) -> None:
    """Commit a row that takes room of its own; delete the row before, unless a backup reads the table."""
    with suppress(errors.LockNotAvailable):
        connection.execute(f"SET LOCAL lock_timeout TO {_TRUNCATE_MS}; TRUNCATE probe").close()
    connection.execute("INSERT INTO probe VALUES (%s)", (_PROBE,)).close()
