"""What processes share of a journal in PostgreSQL beside its slots: connections for events, and news of commits."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg

from wevent.errors import JournalUnreachable, WeventError
from wevent.journal.connection import PATIENCE_S, Connection, Session, connect
from wevent.journal.lease import own_instances
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres_database import CommitNews, tell_commit


class SharedJournal:
    """A journal as one process shares it with others.

    Args:
        place: the journal.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place

    def session(
        self,
        purpose: str,
        *,
        setting: str,
        understood: tuple[type[psycopg.Error], ...],
        patience_s: float | None = None,
    ) -> Session:
        """Return connections of their own for one thread, which closes them.

        Args:
            purpose: name of the connection on the server.
            setting: statement that each connection begins with.
            understood: errors of the database that the caller handles itself.
            patience_s: time to wait for a database that does not answer.
        """
        patience_s = PATIENCE_S if patience_s is None else patience_s
        return Session(self._place, purpose, setting=setting, understood=understood, patience_s=patience_s)

    def own_instances(self) -> list[str]:
        """Return the instances of the journal's writers in this process."""
        return own_instances()

    def answers(self, within_s: float) -> bool:
        """Return whether the database connects and forces something to disk, as every commit has to, in time."""
        heard = threading.Event()

        def ask() -> None:
            try:
                with closing(connect(self._place, "asking")) as connection:
                    connection.execute("SELECT pg_logical_emit_message(true, 'wevent', '')").close()
            except (psycopg.OperationalError, JournalUnreachable):
                return
            except (psycopg.Error, WeventError):  # it has something to say
                pass
            heard.set()

        threading.Thread(target=ask, name="wevent-asking", daemon=True).start()
        return heard.wait(within_s)

    def news(self) -> CommitNews:
        """Return news of commits; for one thread, which closes it."""
        return CommitNews(self._place)

    def announce(self, connection: Connection) -> None:
        """Tell other replicas that a slot is committed."""
        tell_commit(connection, self._place.schema)
