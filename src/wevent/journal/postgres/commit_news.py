"""News of commits: whoever publishes into a journal tells, and whoever follows it hears at once. It is only a hint.

What is committed may be shown once it is known outside the database, too (spec 10): if the database were put back to before
it, nothing would tell that it went out, and it would be drawn again. The writer marks a slot right after its commit and tells
of it then; if it dies between the two, the next writer marks the slot before it does anything else.
"""

from __future__ import annotations

from contextlib import suppress

import psycopg
from psycopg import sql

from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import Connection, connect
from wevent.journal.postgres.server_errors import clear_failures
from wevent.journal.postgres.side_folder import SideFolder

_COMMITTED = "SELECT committed, convert_from(value, 'UTF8') FROM head, facts WHERE name = 'id'"


def tell_commit(connection: Connection, schema: str) -> None:
    """Tell whoever follows a journal that it has something new."""
    connection.execute(sql.SQL("NOTIFY {}").format(_channel(schema))).close()


class CommitNews:
    """Hears of commits; in one thread.

    Args:
        place: the journal, with its side folder.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place, self._side = place, SideFolder(place)
        self._connection: Connection | None = None

    def wait(self, timeout_s: float) -> int:
        """Wait until something may be new, at most for so long; the last committed slot that is known outside, 0 if none is.

        Raises:
            JournalUnreachable: if the database does not answer.
            StorageFailed: if the side folder cannot be read.
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
                committed, identity = self._connection.execute(_COMMITTED).fetchall()[0]
            return self._known(int(committed), identity)
        except BaseException:
            self.close()
            raise

    def _known(self, committed: int, identity: str) -> int:
        mark = self._side.seen()
        return min(committed, mark.committed) if mark.journal == identity else 0

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def _channel(schema: str) -> sql.Identifier:
    return sql.Identifier(f"wevent_{schema}")
