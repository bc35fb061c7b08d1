"""A connection of the event store that is made when it is needed, and again when it was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg import errors

from wevent.errors import JournalUnreachable
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import Connection, connect_session
from wevent.journal.postgres.forbearance import AGAIN, Forbearance
from wevent.journal.postgres.server_errors import plain_reason, translated, unreachable

_IDLE_MS = 3000  # a replica that stands still in a transaction is in everybody's way

Result = TypeVar("Result")


class StoreSession:
    """One connection after another; in one thread.

    Args:
        place: the journal.
        purpose: what the server calls it.
        patience_s: how long a database that does not answer is waited for.

    Attributes:
        patience_s: may be changed at any time.
    """

    def __init__(self, place: PostgresPlace, purpose: str, patience_s: float) -> None:
        self.place, self.patience_s = place, patience_s
        self._purpose = purpose
        self._connection: Connection | None = None

    def repeat(self, work: Callable[[Connection], Result]) -> Result:
        """What a function makes of a connection; called again, with another one, if that was lost: it must not matter.

        Raises:
            JournalUnreachable: if the database does not answer for as long as there is patience.
            StorageFailed: if it has no room.
        """
        forbearance = Forbearance(self.patience_s)

        def connected(connection: Connection) -> Result:
            forbearance.hold()
            return work(connection)

        while True:
            try:
                return self.once(connected)
            except JournalUnreachable as lost:
                forbearance.bear(lost)

    def once(self, work: Callable[[Connection], Result]) -> Result:
        """What a function makes of a connection, called once.

        Raises:
            JournalUnreachable: if the connection is lost; what it did is then stored or not.
            StorageFailed: if there is no room; nothing is stored.
        """
        with self._understood():
            return work(self._connected())

    def close(self) -> None:
        """End the connection; the next use makes another one."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self.close()
            idle = f"SET idle_in_transaction_session_timeout TO {_IDLE_MS}"
            self._connection = connect_session(self.place, self._purpose, setting=idle)
        return self._connection

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """What the database says, in our words."""
        try:
            yield
        except (errors.UndefinedTable, errors.UniqueViolation, errors.LockNotAvailable):
            raise  # whoever asks knows what that means
        except psycopg.Error as error:
            lost = self._connection is None or self._connection.closed
            self.close()
            if lost or isinstance(error, (*AGAIN, errors.QueryCanceled)):
                raise unreachable(self.place, plain_reason(error, self.place)) from None
            raise translated(error, self.place) from None
