"""One writer per journal: a session advisory lock, a beat that shows life, and a fencing number (spec 10).

The *lock* is held by a connection of its own, the guard, and the server drops it when that ends: a dead writer blocks
nobody. The *beat* tells a writer at work from one that is paused with its connections open: whoever finds it older than the
lease ends these connections and takes the lock. The *fence* is what the promise rests on, because lock and beat only say
what was so a moment ago: each writer has a larger number than all before it, and every transaction compares it inside. So
a writer that was paused or cut off, and knows nothing of the one that took its place, commits nothing any more.

A guard that lost its connection connects again, and goes on if nobody took the journal meanwhile. For that long, at most
its lease, others leave a free lock alone, unless they see that the process is gone.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import Self

import psycopg

from wevent.errors import JournalLocked, WeventError
from wevent.journal.contents import Writer
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import Connection, application_name, check_writable, connect
from wevent.journal.postgres.server_errors import clear_failures
from wevent.journal.postgres.writer_table import (
    Holder,
    drop_tables,
    end_sessions,
    give_sign,
    is_locked,
    make_tables,
    raise_fence,
    read_holder,
    try_lock,
    unlock,
)

GUARD = "guard"
_PAUSE_S = 0.05
_AGAIN_S = 0.25  # between attempts to connect a guard again
_LOOKS = 4  # at a lock that somebody has: they may be about to let go
_here: set[str] = set()  # the writers of this process, by their instances


class Leadership:
    """The right to write a journal, from `take` to `close` or until another writer takes it.

    Attributes:
        place: the journal.
        instance: the name of its connections, see `connect`.
        fence: its number; every transaction that writes compares it with the one in the table `writer`.
        before: who wrote the journal last, None if nobody did.
    """

    def __init__(self, place: PostgresPlace, guard: Connection, instance: str, above: int) -> None:
        """Be the writer; the lock is held by `guard`. Callers use `take`."""
        self.place, self.instance = place, instance
        self._guard: Connection | None = guard
        self._holding = threading.Lock()  # of the guard: the beat and `close` use it
        self._closing = threading.Event()
        self._lost = False
        self._made_schema = make_tables(guard, place.schema)
        self.before = read_holder(guard)
        if self.before is not None:  # sessions that are still open would hold the row of the fence up
            end_sessions(guard, f"wevent {self.before.instance}")
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.writer = Writer(os.getpid(), socket.gethostname(), since)
        self.fence = raise_fence(guard, instance, self.writer, place.lease_s, above)
        _here.add(instance)
        self._beating = threading.Thread(target=self._beat, name="wevent-beat", daemon=True)
        self._beating.start()

    @classmethod
    def take(cls, place: PostgresPlace, *, above: int = 0) -> Self:
        """Become the writer of a journal.

        A writer that is paused loses it after its lease. One that may be about to connect again is waited for, at most
        for its lease.

        Args:
            place: the journal.
            above: the fence will be larger than this too: the number of the newest side file.

        Raises:
            JournalLocked: naming the writer that has it.
            StorageFailed: if the server may forget what it commits, is a standby, or does not allow it.
            JournalUnreachable, InvalidJournal: as of `connect`.
        """
        instance = secrets.token_hex(8)
        guard = connect(place, GUARD, instance)
        try:
            check_writable(guard, place)
            with clear_failures(place):
                _take_lock(guard, place)
                return cls(place, guard, instance, above)
        except BaseException:
            guard.close()
            raise

    @property
    def is_lost(self) -> bool:
        """Whether another writer has taken the journal, as far as is known here: the fence in the database decides."""
        return self._lost

    def check(self) -> None:
        """Refuse to go on when the journal is known to be somebody else's.

        Raises:
            JournalLocked: naming the writer that has it.
        """
        if self._lost:
            raise self.locked(None)

    def lose(self) -> None:
        """It is known from elsewhere that another writer has the journal."""
        self._lost = True

    def locked(self, holder: Holder | None) -> JournalLocked:
        """What is said when another writer has the journal."""
        return held_by(
            self.place, None if holder is None else holder.writer, "Its releases stand, this draw is discarded."
        )

    def close(self, *, never_begun: bool = False) -> None:
        """Let the next writer in.

        Args:
            never_begun: there is no journal: remove what was made for it.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        with self._holding, suppress(psycopg.Error, WeventError):
            if self._guard is not None and not self._lost:
                give_sign(self._guard, self.instance, leaving=True)
                if never_begun:
                    drop_tables(self._guard, self.place.schema, whole=self._made_schema)
                unlock(self._guard, self.place.schema)  # at once: closing a connection takes the server a moment
        _here.discard(self.instance)
        self._beating.join()
        if self._guard is not None:
            self._guard.close()

    def _beat(self) -> None:
        """Show life three times per lease, over the guard; connect it again when it breaks."""
        while not self._closing.wait(self.place.lease_s / 3 if self._guard is not None else _AGAIN_S):
            with self._holding:
                if self._closing.is_set() or self._lost:
                    return
                try:
                    if self._guard is None:
                        self._guard = self._regained()
                    elif not give_sign(self._guard, self.instance):
                        self._lost = True
                except (psycopg.Error, WeventError):
                    if self._guard is not None:
                        self._guard.close()
                    self._guard = None

    def _regained(self) -> Connection | None:
        """Another guard, if the journal is still ours; None to try again."""
        guard = connect(self.place, GUARD, self.instance)
        try:
            check_writable(guard, self.place)
            holder = read_holder(guard)
            if holder is None or (holder.fence, holder.instance) != (self.fence, self.instance):
                self._lost = True
            elif try_lock(guard, self.place.schema):
                holder = read_holder(guard)  # again: nobody can take it from here on, but somebody may have before
                if holder is not None and holder.instance == self.instance:
                    give_sign(guard, self.instance)
                    return guard
                self._lost = True
            else:  # the server has not yet noticed that the guard before is gone, or another writer is about to take over
                end_sessions(guard, application_name(self.instance, GUARD))
        except BaseException:
            guard.close()
            raise
        guard.close()
        return None


def own_instances() -> list[str]:
    """The writers of this process, by their instances, which no other process has: containers share names and numbers."""
    return sorted(_here)


def current_writer(connection: Connection, place: PostgresPlace) -> Writer | None:
    """Who publishes into a journal now, None if nobody does."""
    holder = read_holder(connection)
    return holder.writer if holder is not None and is_locked(connection, place.schema) else None


def held_by(place: PostgresPlace, writer: Writer | None, remedy: str) -> JournalLocked:
    """What is said of a journal that another writer has."""
    named = "another process" if writer is None else f"process {writer.pid} on {writer.host} since {writer.since}"
    return JournalLocked(
        "to be the only writer of the journal",
        f"one held by {named}",
        remedy,
        path=str(place),
        holder={} if writer is None else writer._asdict(),
    )


def _take_lock(guard: Connection, place: PostgresPlace) -> None:
    """Hold the lock of a journal that nobody else may be at work on.

    Raises:
        JournalLocked: if somebody is.
    """
    looks, end = 0, time.monotonic() + place.lease_s + 10
    while True:
        locked = try_lock(guard, place.schema)
        holder = read_holder(guard)
        waits = holder is not None and holder.is_alive
        if locked and (holder is None or not waits or _is_over(holder)):
            return
        if locked:
            unlock(guard, place.schema)  # its guard may be about to connect again
        elif waits or holder is None:
            looks += 1
            if looks >= _LOOKS:
                raise held_by(
                    place,
                    None if holder is None else holder.writer,
                    "Stop that process first, or publish into another journal.",
                )
        elif holder is not None:
            end_sessions(guard, f"wevent {holder.instance}")
        if time.monotonic() > end:
            raise held_by(
                place,
                None if holder is None else holder.writer,
                "It does not react, and its sessions could not be ended: let the role do that (GRANT pg_signal_backend "
                "TO role), or end them.",
            )
        time.sleep(_PAUSE_S)


def _is_over(holder: Holder) -> bool:
    """Whether a writer that did not say goodbye can be seen to be gone: it was on this machine, or in this process.

    Only of one whose lock is free: machines may share a name, and containers may on top of that not see each other's
    processes. A process that has ended on this machine has no connection, and so no lock. One that had the number of this
    process and is none of its writers was a process before it, as in a container that was started again.
    """
    if holder.writer.host != socket.gethostname():
        return False
    if holder.writer.pid == os.getpid():
        return holder.instance not in _here
    try:
        os.kill(holder.writer.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
