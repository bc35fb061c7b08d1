"""A connection that is made again when it is lost: a server that restarts, or a standby that takes over, needs a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import psycopg

from wevent.errors import JournalUnreachable
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import PATIENCE_S, connect_session
from wevent.journal.postgres.forbearance import AGAIN, Forbearance
from wevent.journal.postgres.server_errors import plain_reason, translated, unreachable

_DIFFERENT = "SET default_transaction_read_only TO on"  # what writes says so: nothing is written by mistake

Done = TypeVar("Done")


class Interrupted(JournalUnreachable):
    """The connection was lost, or the server asks to do a transaction again: nothing of it counts. Facts: `path`."""


class LastingSession:
    """One connection after another, for reading unless a transaction says otherwise.

    Args:
        place: the journal.
        purpose: what the server calls it.
        instance: whose it is; empty for readers.
        patience_s: how long a database that does not answer is waited for.

    Attributes:
        place: the journal.
        connection: the one in use.
        regained: called after another one was made, outside of any transaction; what it reads over it is not repeated.
    """

    def __init__(
        self, place: PostgresPlace, purpose: str, instance: str = "", *, patience_s: float = PATIENCE_S
    ) -> None:
        self.place = place
        self._purpose, self._instance, self._patience_s = purpose, instance, patience_s
        self.regained: Callable[[], None] = lambda: None
        self._is_closed = self._is_regaining = False
        self._connect()

    def execute(self, query: str, values: Sequence[Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a query, as PostgreSQL has it.

        Raises:
            Interrupted: if the connection is lost.
            StorageFailed, InvalidJournal: what else the server says, in our words.
        """
        try:
            return self.connection.execute(query, values)
        except psycopg.Error as error:
            raise self.understood(error) from None

    def send(self, statements: str) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run several statements in one message; what the last of them found. Raises as `execute`."""
        try:
            cursor = self.connection.execute(statements, prepare=False)
            while cursor.nextset():
                pass
            return cursor
        except psycopg.Error as error:
            raise self.understood(error) from None

    def executemany(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a query for each of many rows; raises as `execute`."""
        try:
            with self.connection.cursor() as cursor:
                cursor.executemany(query, rows)
        except psycopg.Error as error:
            raise self.understood(error) from None

    def understood(self, error: psycopg.Error) -> Exception:
        """What the server said, in our words."""
        if self._is_closed:
            return unreachable(self.place, "a journal that was closed here")
        if self.connection.closed or isinstance(error, AGAIN):
            return Interrupted(*_words(unreachable(self.place, plain_reason(error, self.place))), path=str(self.place))
        return translated(error, self.place)

    def repeat(self, work: Callable[[], Done]) -> Done:
        """Do some work, again from its beginning whenever it is interrupted: it must not matter how often.

        Raises:
            JournalUnreachable: if the database does not answer for as long as there is patience.
        """
        if self._is_regaining:  # whoever regains has one patience, and begins again
            return work()
        forbearance = self.forbearance()
        while True:
            try:
                return work()
            except Interrupted as interrupted:
                self.regain(interrupted, forbearance)

    def forbearance(self) -> Forbearance:
        """The patience of a piece of work that begins now."""
        forbearance = Forbearance(self._patience_s)
        forbearance.hold()
        return forbearance

    def regain(self, interrupted: JournalUnreachable, forbearance: Forbearance) -> None:
        """Have a connection again that is outside of any transaction.

        Args:
            interrupted: what is raised when patience is over.
            forbearance: of the work.

        Raises:
            JournalUnreachable: when patience is over.
        """
        self.roll_back()
        while True:
            forbearance.bear(JournalUnreachable(*_words(interrupted), path=str(self.place)))
            try:
                if self.connection.closed:
                    self._connect_again()
                forbearance.hold()
                return
            except JournalUnreachable as again:
                interrupted = again

    def close(self) -> None:
        """End the connection for good."""
        self._is_closed = True
        with suppress(psycopg.Error):
            self.connection.close()

    def roll_back(self) -> None:
        """Leave a transaction that came to nothing, if the connection is in one."""
        with suppress(psycopg.Error):
            if not self.connection.closed:
                self.connection.execute("ROLLBACK")

    def _connect(self) -> None:
        self.connection = connect_session(
            self.place, self._purpose, self._instance, setting=_DIFFERENT, writes=bool(self._instance)
        )

    def _connect_again(self) -> None:
        """Another connection, if `regained` has nothing against it; one that it refused is used for nothing more."""
        self._connect()
        self._is_regaining = True
        try:
            self.regained()
        except BaseException:
            self.connection.close()
            raise
        finally:
            self._is_regaining = False


@lru_cache(maxsize=256)
def portable(query: str) -> str:
    """A query with `?` for values as PostgreSQL takes it; no query has either sign in a text."""
    return query.replace("?", "%s")


def _words(error: JournalUnreachable) -> tuple[str, str, str]:
    return error.expected, error.received, error.remedy
