"""A connection that is made again when it is lost: a server that restarts, or a standby that takes over, needs a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from wevent.errors import JournalUnreachable
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import PATIENCE_S, Connection, connect_session
from wevent.journal.postgres.server_errors import plain_reason, translated, unreachable

READ_ONLY = "SET default_transaction_read_only TO on"
"""Setting of a session whose transactions say when they write: nothing is written by mistake."""

_CLOSED = "a journal that was closed here"
_PAUSE_S = 0.1
_MOST_LIMITS = 3  # work that takes long and ends the server every time is not begun for ever
_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.QueryCanceled)

Result = TypeVar("Result")


class Interrupted(JournalUnreachable):
    """The connection was lost, or the server asks to do a transaction again: nothing of it counts. Facts: `path`."""


class RetryLimit:
    """How long a piece of work is tried again after it lost its connection.

    The time begins with the loss, not with the work: long work may lose its connection at its end, and with it the answer to
    COMMIT, which has to be read. It begins anew only after a connection that lasted longer than the limit, and not often: a
    server that takes connections and drops them uses it up.

    Args:
        limit_s: the limit; without a connection it begins now.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s
        self._connected_since: float | None = None
        self._begun = 0

    def connected(self) -> None:
        """Note that the work goes on over a connection."""
        self._connected_since = time.monotonic()

    def wait(self, loss: JournalUnreachable) -> None:
        """Wait a moment after a loss, or after a failed attempt to connect.

        Raises:
            JournalUnreachable: the loss, when the time is over.
        """
        now = time.monotonic()
        if self._connected_since is not None and self._may_begin(now - self._connected_since):
            self._end, self._begun = now + self._limit_s, self._begun + 1
        self._connected_since = None
        if now >= self._end:
            raise loss
        time.sleep(_PAUSE_S)

    def _may_begin(self, lasted_s: float) -> bool:
        return not self._begun or (lasted_s > self._limit_s and self._begun < _MOST_LIMITS)


class Session:
    """One connection after another, made when it is needed; in one thread.

    Args:
        place: the journal.
        purpose: the server's name for it.
        instance: whose it is; empty for readers.
        setting: a statement that sets what such a session has of its own.
        writes: whether it writes: then not to a server that forgets.
        understood: errors of PostgreSQL that the caller handles itself.
        patience_s: how long a database that does not answer is waited for.

    Attributes:
        place: the journal.
        patience_s: may be changed at any time.
        regained: called after another connection was made, outside of any transaction; what it reads is not repeated.
    """

    def __init__(
        self,
        place: PostgresPlace,
        purpose: str,
        instance: str = "",
        *,
        setting: str,
        writes: bool = True,
        understood: tuple[type[psycopg.Error], ...] = (),
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.place, self.patience_s = place, patience_s
        self.regained: Callable[[], None] = lambda: None
        self._purpose, self._instance = purpose, instance
        self._setting, self._writes, self._understood = setting, writes, understood
        self._connection: Connection | None = None
        self._is_closed = self._is_regaining = False

    @property
    def connection(self) -> Connection:
        """The connection in use, which may be lost; `connect` made the first one."""
        assert self._connection is not None
        return self._connection

    def connect(self) -> Connection:
        """Return a connection that is not known to be lost: another one, if `regained` has nothing against it.

        Raises:
            JournalUnreachable, StorageFailed, InvalidJournal: as of `connect_session`.
        """
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self._is_closed:
            raise unreachable(self.place, _CLOSED)
        is_first = self._connection is None
        self._connection = connect_session(
            self.place, self._purpose, self._instance, setting=self._setting, writes=self._writes
        )
        if not is_first:
            self._is_regaining = True
            try:
                self.regained()
            except BaseException:
                self._connection.close()
                raise
            finally:
                self._is_regaining = False
        return self._connection

    def execute(self, query: str, values: Sequence[Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a query, as PostgreSQL has it.

        Raises:
            Interrupted: if the connection is lost.
            StorageFailed, InvalidJournal: what else the server says, in our words.
        """
        with self.translating():
            return self.connection.execute(query, values)

    def send(self, statements: str) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run several statements in one message; returns the result of the last. Raises as `execute`."""
        with self.translating():
            cursor = self.connection.execute(statements, prepare=False)
            while cursor.nextset():
                pass
            return cursor

    def executemany(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a query for each of many rows; raises as `execute`."""
        with self.translating(), self.connection.cursor() as cursor:
            cursor.executemany(query, rows)

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Raise errors of PostgreSQL as ours; raises as `execute`."""
        try:
            yield
        except self._understood:
            raise
        except psycopg.Error as error:
            if self._is_closed:
                raise unreachable(self.place, _CLOSED) from None
            if self._connection is None or self._connection.closed or isinstance(error, _AGAIN):
                lost = unreachable(self.place, plain_reason(error, self.place))
                raise Interrupted(lost.expected, lost.received, lost.remedy, path=str(self.place)) from None
            raise translated(error, self.place) from None

    def once(self, work: Callable[[Connection], Result]) -> Result:
        """Do some work once, over another connection if the one before is lost.

        Raises:
            JournalUnreachable: if the connection is lost; its work is then stored or not.
            StorageFailed: if there is no room; nothing is stored.
        """
        with self.translating():
            return work(self.connect())

    def repeat(self, work: Callable[[Connection], Result]) -> Result:
        """Do some work, again from its beginning whenever it is interrupted: it must not matter how often.

        Raises:
            JournalUnreachable: if the database does not answer for as long as there is patience.
        """
        if self._is_regaining:  # it has a limit of its own, and begins again
            return work(self.connection)
        limit = RetryLimit(self.patience_s)

        def connected(connection: Connection) -> Result:
            limit.connected()
            return work(connection)

        while True:
            try:
                return self.once(connected)
            except JournalUnreachable as lost:
                self.regain(lost, limit)

    def retry_limit(self) -> RetryLimit:
        """Return the limit of work that begins now, over the connection in use."""
        limit = RetryLimit(self.patience_s)
        limit.connected()
        return limit

    def regain(self, lost: JournalUnreachable, limit: RetryLimit) -> None:
        """Have another connection; the work may have left the one before inside a transaction or a COPY.

        Raises:
            JournalUnreachable: when the limit is reached, or the session was closed.
        """
        if self._is_closed:
            raise lost
        if self._connection is not None:
            self._connection.close()
        while True:
            limit.wait(_plain(lost))
            try:
                self.connect()
                limit.connected()
                return
            except JournalUnreachable as again:
                lost = again

    def roll_back(self) -> None:
        """Leave a transaction that came to nothing, if the connection is in one."""
        with suppress(psycopg.Error):
            if self._connection is not None and not self._connection.closed:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """End the connection for good."""
        self._is_closed = True
        with suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.close()


@lru_cache(maxsize=256)
def portable(query: str) -> str:
    """A query with `?` for values as PostgreSQL takes it; no query has either sign in a text."""
    return query.replace("?", "%s")


def _plain(lost: JournalUnreachable) -> JournalUnreachable:
    """Return the error for a database that did not answer for long."""
    if isinstance(lost, Interrupted):
        return JournalUnreachable(lost.expected, lost.received, lost.remedy, **lost.facts)
    return lost
