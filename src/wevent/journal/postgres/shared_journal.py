"""What the replicas of a service share of a journal beside its slots: events of open slots, their keys, news of commits."""

from __future__ import annotations

import threading
from contextlib import closing
from functools import cached_property

import psycopg

from wevent.errors import JournalUnreachable, WeventError
from wevent.journal.connection import PATIENCE_S, connect
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.event_tables import are_laid_out
from wevent.journal.postgres.sealed_events import SealedEvents
from wevent.journal.postgres.slot_keys import KeyRing
from wevent.journal.postgres_database import CommitNews


class SharedJournal:
    """A journal as one process shares it with others: all parts of the process have the same keys, and lose them together.

    Args:
        place: the journal.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place

    @cached_property
    def _ring(self) -> KeyRing:
        """The keys that this process has.

        Raises:
            InvalidJournal: if the address names no side folder.
        """
        return KeyRing(self._place)

    def check(self) -> None:
        """Whether it can be shared at all.

        Raises:
            InvalidJournal: if the address names no side folder.
        """
        assert self._ring is not None

    def events(self, purpose: str, patience_s: float = PATIENCE_S, *, is_writers: bool = False) -> SealedEvents:
        """The events of open slots, over a connection of their own; for one thread, which closes it.

        Args:
            purpose: what the server calls the connection.
            patience_s: how long a database that does not answer is waited for.
            is_writers: whether the writer of the journal uses it: then its side folder is the one that all have to use.
        """
        return SealedEvents(self._place, purpose, patience_s, is_writers=is_writers, ring=self._ring)

    def left_events(self) -> SealedEvents | None:
        """What replicas have stored, for a writer that is none of them; None if there never was one."""
        if self._place.side is None:
            return None
        events = self.events("sweeping", is_writers=True)
        if events.session.repeat(are_laid_out):
            return events
        events.close()
        return None

    def answers(self, within_s: float) -> bool:
        """Whether the database connects, and forces something to disk as every commit has to, within so many seconds."""
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
        """News of commits; for one thread, which closes it."""
        return CommitNews(self._place)

    def join(self) -> int:
        """Check that the journal, which another replica has begun, can be shared; its last slot that may be shown.

        The keys of that one and those before are destroyed: whoever committed them may have died before that.

        Raises:
            StorageFailed: if the side folder is not the one that the other replicas use.
            JournalUnreachable: if the database does not answer.
        """
        with closing(self.events("joining")) as events, closing(self.news()) as news:
            events.check()
            committed = news.wait(0.0)
            events.destroy(committed)
        return committed
