"""The events of open slots in the database: encrypted, and deleted with the slot's commit.

Every replica adds to it. Slots are closed by one of them, and what makes that exact is the intake lock: whoever adds holds
it shared from before they look which slot was closed last until they have committed; whoever closes a slot holds it alone.
So what was acknowledged for a slot is there when it has closed, and nothing comes later.

A part of a batch has a keyed digest of the batch's name as its key, unique in its slot: the same part is never there twice,
whoever sends it to whom. The digest's key is the slot's (`wevent.journal.postgres.slot_keys`), so it dies with it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from psycopg import errors, sql

from wevent.errors import JournalLocked, StorageFailed, WeventError
from wevent.journal.connection import PATIENCE_S, Connection, Session
from wevent.journal.lease import own_instances
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.event_sealing import batch_digest, opened_record, sealed_record
from wevent.journal.postgres.event_tables import (
    Row,
    change_folder_mark,
    closed_slot,
    copy_in,
    copy_out,
    delete_rows,
    find_rows,
    folder_mark,
    lay_out,
    take_room,
)
from wevent.journal.postgres.intake_lock import IntakeLock
from wevent.journal.postgres.slot_keys import KeyRing, SlotKeys
from wevent.journal.postgres_database import tell_commit

_log = logging.getLogger("wevent.journal.postgres.sealed_events")
_LOOKED_AT = 64  # slots that a batch is looked for in, the latest
_SETTING = (
    "SET idle_in_transaction_session_timeout TO 3000"  # a replica that stands still in a transaction delays everybody
)
_UNDERSTOOD = (errors.UniqueViolation, errors.LockNotAvailable)

Result = TypeVar("Result")


class SealedEvents:
    """The events of open slots of a journal; see `wevent.streams.live.event_store`. In one thread.

    Args:
        place: the journal, with its side folder.
        purpose: what the server calls the connection.
        patience_s: how long a database that does not answer is waited for.
        is_writers: whether the writer of the journal uses it: then its side folder is the one that all have to use.
        ring: the keys that this process has.

    Raises:
        InvalidJournal: if the address names no side folder.
    """

    def __init__(
        self,
        place: PostgresPlace,
        purpose: str = "events",
        patience_s: float = PATIENCE_S,
        *,
        is_writers: bool = False,
        ring: KeyRing | None = None,
    ) -> None:
        self._is_writers, self._mark = is_writers, b""
        self._ring = KeyRing(place) if ring is None else ring
        self._side, self._schema = self._ring.side, place.schema
        self.session = Session(place, purpose, setting=_SETTING, understood=_UNDERSTOOD, patience_s=patience_s)
        self._lock, self._layout = IntakeLock(place), IntakeLock(place, "layout")
        self._keys: SlotKeys | None = None
        self._closed = 0

    @property
    def patience_s(self) -> float:
        """How long a database that does not answer is waited for."""
        return self.session.patience_s

    @patience_s.setter
    def patience_s(self, patience_s: float) -> None:
        self.session.patience_s = patience_s

    def check(self) -> None:
        """Whether it can be used.

        Raises:
            StorageFailed: if the side folder is not the one that the other replicas use.
            JournalUnreachable: if the database does not answer for as long as there is patience.
        """
        self._opened_keys()

    # Whose turn it is

    def let_in(self) -> None:
        """A service writes the journal now: what is taken in will be counted."""
        self._pause(sql.SQL("-1"))

    def keep_out(self) -> None:
        """Another command writes the journal now, which counts nothing of what replicas take in: they are to refuse it."""
        self._pause(sql.SQL("fence"))

    def _pause(self, until: sql.SQL) -> None:
        """Says the writer alone: a process that lost the journal since has no say in what the next one takes in.

        The writer is known by its instance: in containers another process may have the same number on the same host.
        """
        text = sql.SQL("UPDATE intake SET paused = {} FROM writer WHERE instance = ANY({})").format(
            until, sql.Literal(own_instances())
        )
        self._repeat(lambda connection: self._lock.alone(connection, text))

    # Taking in

    def declare(self, digest: bytes, meaning: bytes) -> None:
        text = "INSERT INTO meanings VALUES (%s, %s) ON CONFLICT DO NOTHING"
        self._repeat(lambda connection: connection.execute(text, (digest, meaning)))

    def find(self, wanted: Sequence[tuple[bytes, Collection[int]]]) -> list[tuple[int, bytes]]:
        return self._repeat(lambda connection: self._found(connection, wanted))

    def put(self, parts: Iterable[tuple[int, bytes, bytes]]) -> tuple[bool, int]:
        """See `EventIntake.put`; parts are a slot, a name and a record each."""
        rows: dict[int, list[Row]] = defaultdict(list)
        keys = self._opened_keys()
        for slot, name, record in parts:
            key = keys.make(slot) if slot > self._closed else None
            if key is None:  # it is being destroyed
                return False, self._look_closed(slot)
            rows[slot].append((batch_digest(key, name), sealed_record(key, record)))
        if not rows:
            return True, self._closed
        try:
            kept = self.session.once(lambda connection: self._copied(connection, rows))
        except errors.UniqueViolation:
            kept = False
        return kept, self._closed

    def probe(self) -> None:
        """Check that batches can be stored: a small file beside the keys, and a row that takes room of its own.

        Raises:
            StorageFailed: if they cannot.
            JournalUnreachable: if the database does not answer for as long as there is patience.
        """
        self._opened_keys().probe()
        self._repeat(take_room)

    # Closing

    def close_slot(self, slot: int) -> None:
        text = sql.SQL("UPDATE intake SET closed = greatest(closed, {slot})").format(slot=slot)
        self._repeat(lambda connection: self._lock.alone(connection, text))
        self._closed = max(self._closed, slot)

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        """See `EventStore.read`. Every slot that is counted has a key from here on, whether or not anybody sent events:
        how long it takes to destroy it, right before the release goes out, tells nothing of them (spec 10).
        """
        key = self._opened_keys().make(slot)
        return self._repeat(lambda connection: use(_records(connection, slot, key)))

    def meaning(self, digest: bytes) -> bytes | None:
        text = "SELECT meaning FROM meanings WHERE digest = %s"
        row = self._repeat(lambda connection: connection.execute(text, (digest,)).fetchone())
        return None if row is None else bytes(row[0])

    def destroy(self, through: int) -> None:
        self._opened_keys().destroy(through)

    def forget(self, through: int) -> None:
        self.destroy(through)
        self._repeat(lambda connection: delete_rows(connection, through))

    def announce(self) -> None:
        """Tell whoever follows the journal that a slot is committed; who is not told finds out all the same."""
        with suppress(WeventError):
            self.session.once(lambda connection: tell_commit(connection, self._schema))

    def close(self) -> None:
        """End the connection."""
        self.session.close()

    def _repeat(self, work: Callable[[Connection], Result]) -> Result:
        self._opened_keys()
        return self.session.repeat(work)

    def _opened_keys(self) -> SlotKeys:
        """The keys; the tables are made with the first use, by whoever comes first."""
        if self._keys is None:
            store, self._closed = self.session.repeat(lambda connection: lay_out(connection, self._layout))
            keys = self._ring.of_store(store)
            self._mark = self.session.repeat(lambda connection: self._marked(connection, keys))
            self._keys = keys
        return self._keys

    def _marked(self, connection: Connection, keys: SlotKeys) -> bytes:
        """The mark of the side folder, which is the one that the others use: keys elsewhere would open nothing here.

        Raises:
            StorageFailed: if it is another one.
        """
        known = folder_mark(connection)
        may_be_other = self._is_writers or not known
        mark = keys.folder_mark(make=may_be_other)
        if mark != known and may_be_other:
            change_folder_mark(connection, known, mark)
            known = folder_mark(connection)
        if mark != known:
            raise self._other_folder()
        return mark

    def _other_folder(self) -> StorageFailed:
        return StorageFailed(
            "the side folder that the other replicas of the journal use",
            f"another one ({self._side})",
            "Name the same folder (side=…) for all replicas, on a volume that all of them share.",
            path=str(self._side),
        )

    def _look_closed(self, slot: int) -> int:
        """The last closed slot, where the key of one is being destroyed, which must be among them.

        Raises:
            StorageFailed: if it is not.
        """
        self._closed = self._repeat(closed_slot)
        if slot > self._closed:
            raise StorageFailed(
                f"the key of slot {slot} in {self._side}",
                "a file that has none",
                "Remove that file; what was stored of the slot cannot be read any more.",
                path=str(self._side),
            )
        return self._closed

    def _found(
        self, connection: Connection, wanted: Sequence[tuple[bytes, Collection[int]]]
    ) -> list[tuple[int, bytes]]:
        keys = self._opened_keys()
        latest = keys.slots()[-_LOOKED_AT:]
        slots, digests, places = [], [], {}
        for place, (name, more) in enumerate(wanted):
            for slot in {*latest, *more}:
                if (key := keys.get(slot)) is not None:
                    digest = batch_digest(key, name)
                    slots.append(slot)
                    digests.append(digest)
                    places[digest] = place, key
        found = []
        for digest, sealed in find_rows(connection, slots, digests):
            place, key = places[digest]
            record = opened_record(key, sealed)
            if record is not None:
                found.append((place, record))
        return found

    def _copied(self, connection: Connection, rows: dict[int, list[Row]]) -> bool:
        """Add rows under the intake lock; whether their slots were open."""
        with connection.transaction():
            self._closed, paused, folder = self._lock.shared(connection)
            if folder != self._mark:
                raise self._other_folder()
            if paused:
                raise JournalLocked(
                    "a service to publish the journal",
                    "another command that does",
                    "What it publishes has no events of a service: send the same batch again when it has ended.",
                    path=str(self.session.place),
                )
            if min(rows) <= self._closed:
                return False
            copy_in(connection, rows)
        return True


def _records(connection: Connection, slot: int, key: bytes | None) -> Iterator[bytes]:
    """The records of a slot; those that nobody can read are said to be there."""
    unreadable = 0
    for sealed in copy_out(connection, slot):
        record = None if key is None else opened_record(key, sealed)
        if record is None:
            unreadable += 1
        else:
            yield record
    if unreadable:
        _log.warning(
            "events of a slot cannot be read (their key is gone from the side folder, or is another one): they are not "
            "counted (private: do not publish this line)"
        )
