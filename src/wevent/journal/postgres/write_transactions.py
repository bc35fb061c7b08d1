"""Write transactions of a journal in PostgreSQL: one at a time, fenced, and stored once whatever becomes of connections.

They follow each other, whoever makes them: each begins by taking one lock, and each statement in it sees all that was
committed before (read committed). One of the writer also compares the fencing number, in the same message: if another
writer has the journal, it ends there, and so a paused writer commits nothing after a takeover (spec 10).

A connection may be lost at any moment, and with it the answer to COMMIT. So every transaction leaves a random token in a
row that it writes: the writer's in `writer.transaction`, that of somebody who asks for changes in `asked`. When the answer
is lost, the next transaction reads first; it gets the lock only after the one before has ended, one way or the other. The
token is there: everything is stored. It is not: nothing is, and the same work is done again. Nothing is drawn for that.
What confirms is itself committed, so that synchronous standbys have what it confirms before anybody relies on it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import psycopg

from wevent.errors import JournalLocked, StorageFailed
from wevent.journal.postgres.lease import Lease, lock_key, read_holder
from wevent.journal.postgres.postgres_session import Interrupted, Session
from wevent.journal.tables.database import Result

ASKED = """
CREATE TABLE asked (token text PRIMARY KEY, at timestamptz NOT NULL);
CREATE INDEX asked_at ON asked (at);
"""
"""Tokens of those who ask for changes and are not the writer; kept for an hour, and needed for a minute."""

_NOTHING: tuple[str, ...] = ()
_THINKING = "SET LOCAL idle_in_transaction_session_timeout TO '10min'"
"""The writer works out what becomes of millions of members between two statements; one that stands still loses its
sessions to whoever takes its place."""


class WriteTransactions:
    """Makes them.

    Args:
        session: the connection.
        lease: the right to write the journal; None for those who only ask for changes.
    """

    def __init__(self, session: Session, lease: Lease | None) -> None:
        self._session, self._lease = session, lease
        self._lock = f"SELECT pg_advisory_xact_lock({lock_key(session.place.schema, 'transaction')})"

    def run(self, work: Callable[[], Result], undone: Callable[[], None], stands: Callable[[], bool]) -> Result:
        """See `wevent.journal.tables.database.Database.write`; outside of any transaction."""
        limit, doubtful, kept = self._session.retry_limit(), _NOTHING, None
        while True:
            token = secrets.token_hex(16)
            try:
                if self._begin(token, doubtful, stands):  # 1. lock and fence; read before anything is done again
                    doubtful = (*doubtful, token)
                    self._commit()
                    return kept  # type: ignore[return-value]  # what the work came to when it was stored
                if doubtful:
                    undone()
                doubtful = _NOTHING
                kept = work()  # 2. all of this is stored, or none
                doubtful = (token,)
                self._commit()  # 3. from here on it is, whether or not the answer arrives
                return kept
            except Interrupted as interrupted:
                undone()
                self._session.regain(interrupted, limit)
            except BaseException:
                undone()
                self._session.roll_back()
                raise

    def _begin(self, token: str, doubtful: tuple[str, ...], stands: Callable[[], bool]) -> bool:
        """Begin a transaction and leave its token; whether one of the doubtful ones before came through.

        Raises:
            JournalLocked: if another writer has the journal.
        """
        if self._lease is None:
            return self._begin_asking(token, doubtful)
        begin = f"BEGIN READ WRITE; {_THINKING}; {self._lock}; "
        ours = f"fence = {self._lease.fence:d} AND instance = '{self._lease.instance}'"
        leave = f"UPDATE writer SET transaction = '{token}' WHERE {ours} RETURNING fence"
        if not doubtful:
            if self._last_row(begin + leave) is None:
                raise self._lost(self._lease)
            return False
        row = self._last_row(f"{begin} SELECT transaction FROM writer WHERE {ours} FOR UPDATE")
        if row is not None:
            self._session.send(leave)
            return row[0] in doubtful
        if stands():  # another writer has the journal now, and goes on from what was stored here
            return True
        raise self._lost(self._lease)

    def _begin_asking(self, token: str, doubtful: tuple[str, ...]) -> bool:
        row = self._last_row(
            f"BEGIN READ WRITE; {self._lock}; DELETE FROM asked WHERE at < clock_timestamp() - interval '1 hour';"
            f"INSERT INTO asked VALUES ('{token}', clock_timestamp());"
            f"SELECT count(*) FROM asked WHERE token IN ({', '.join(map(repr, doubtful)) or 'NULL'})"
        )
        return row is not None and row[0] > 0

    def _commit(self) -> None:
        done = self._session.send("COMMIT").statusmessage
        if done != "COMMIT":  # PostgreSQL answers so when a statement before had failed
            raise StorageFailed(
                "the database to store the transaction",
                f"{done} ({self._session.place})",
                "What is committed is intact: run the same command again.",
                path=str(self._session.place),
            )

    def _lost(self, lease: Lease) -> JournalLocked:
        lease.lose()
        self._session.roll_back()
        try:
            return lease.locked(read_holder(self._session.connection))
        except psycopg.Error:
            return lease.locked(None)

    def _last_row(self, statements: str) -> tuple[Any, ...] | None:
        """The row that the last of several statements found; they are sent in one message."""
        return self._session.send(statements).fetchone()
