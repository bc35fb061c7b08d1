"""News of commits: the writer notifies, and replicas that follow the journal hear at once. It is only a hint."""

from __future__ import annotations

from contextlib import suppress

import psycopg
from psycopg import sql

from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import Connection, connect
from wevent.journal.postgres.server_errors import clear_failures

_COMMITTED = "SELECT committed FROM head"


def tell_commit(connection: Connection, schema: str) -> None:
    """Tell whoever follows a journal that it has something new."""
    connection.execute(sql.SQL("NOTIFY {}").format(_channel(schema))).close()


class CommitNews:
    """Hears of commits; in one thread.

    Args:
        place: the journal.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._connection: Connection | None = None

    def wait(self, timeout_s: float) -> int:
        """Wait until something may be new, at most for so long; the last committed slot.

        Raises:
            JournalUnreachable: if the database does not answer.
            InvalidJournal: if it has no journal.
        """
        is_new = self._connection is None
        if self._connection is None:
            self._connection = connect(self._place, "following")
        try:
            with clear_failures(self._place):
                if is_new:  # what came before is not told: the caller looks at once
                    self._connection.execute(sql.SQL("LISTEN {}").format(_channel(self._place.schema)))
                    timeout_s = 0.0
                for _ in self._connection.notifies(timeout=timeout_s, stop_after=1):
                    pass
                return int(self._connection.execute(_COMMITTED).fetchall()[0][0])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def _channel(schema: str) -> sql.Identifier:
    return sql.Identifier(f"wevent_{schema}")
