"""The journal in a schema of PostgreSQL: every commit forced to disk, one writer, fenced; its witness outside (spec 10)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from wevent.errors import InvalidJournal
from wevent.journal.connection import PATIENCE_S, no_journal
from wevent.journal.database import Facts, only_row
from wevent.journal.journal import Journal
from wevent.journal.lease import Lease, current_writer
from wevent.journal.lost import STARTED_OVER, Home, check_lost, is_lost, refuse_lost
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres_database import PostgresDatabase
from wevent.journal.postgres_schema import has_journal, lay_out_tables
from wevent.journal.record import Writer
from wevent.journal.witness import WitnessFile, WitnessRecord
from wevent.journal.witness_folder import WitnessFolder


class JournalSchema:
    """The schema of a journal and its witness folder; see `wevent.journal.journal.Storage`.

    Args:
        place: the database, the schema, and the folder outside.
        write: be the writer.
        start_over: make a new journal where another one was lost.
        patience_s: how long a database that does not answer is waited for, once it did.
    """

    def __init__(self, place: PostgresPlace, *, write: bool, start_over: bool, patience_s: float) -> None:
        self._place, self._folder = place, WitnessFolder(place)
        self.is_new = self._is_closed = False
        with ExitStack() as undo:
            if write:
                self._folder.check_private()
            newest = max(self._folder.fences(), default=0) if write else 0  # a database put back may know less
            self._lease = Lease.take(place, above=newest) if write else None
            undo.callback(self._let_go)
            self.database = PostgresDatabase(place, self._lease, patience_s=patience_s)
            undo.callback(self.database.close)
            self._open(start_over)
            undo.pop_all()

    @property
    def witness(self) -> WitnessFile | None:
        return self._folder.witness

    @property
    def witness_name(self) -> str:
        return self._folder.description

    def seen(self) -> WitnessRecord:
        return self._folder.seen()

    def check_place(self) -> None:
        self._folder.check_place()

    def create_tables(self) -> None:
        lay_out_tables(self.database)

    def check_pages(self) -> None:
        """See `Storage.check_pages`: the server does that."""

    def files(self) -> list[Path]:
        """See `Storage.files`: the witness files."""
        return [] if self._place.side is None else self._folder.files()

    def size(self) -> int:
        """See `Storage.size`: of all tables of the schema but those that tell how many events came."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(?)::oid AND relkind IN ('r', 'm')"
            " AND relname <> 'events'"
        )
        return int(only_row(self.database, query, (self._place.schema,))[0])

    def writer(self) -> Writer | None:
        """See `Storage.writer`: the holder of the lease."""
        return self.database.session.repeat(current_writer)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.database.close()
            self._let_go()

    def _open(self, start_over: bool) -> None:
        """Refuse a schema without a journal, and another journal than the witness shows; the writer begins its witness."""
        home = Home(str(self._place), "of the database, with its own tools; then publish with")
        try:
            self.is_new = not has_journal(self.database, self._place)
        except InvalidJournal:
            self.is_new = self._lease is not None and self._lease.before is None  # what was made for it goes again
            raise
        if self._lease is None:
            if self.is_new and self._place.side is not None and self._place.side.is_dir():
                refuse_lost(home, self.seen())
            if self.is_new:
                raise no_journal(self._place)
            return
        identity, record = None, self.seen()
        if not self.is_new:
            facts = Facts(self.database)
            with self.database.readable():
                identity, (committed,) = facts.text("id"), only_row(self.database, "SELECT committed FROM head")
                if not committed and STARTED_OVER in facts.unsafe:
                    start_over = is_lost(record, identity)  # said before, by a run that came to no slot
        check_lost(home, record, identity, start_over=start_over)
        self._folder.begin(self._lease)

    def _let_go(self) -> None:
        """Let the next writer in, last of all; a journal that was never begun leaves nothing."""
        self._folder.close(never_begun=self.is_new)
        if self._lease is not None:
            self._lease.close(never_begun=self.is_new)


class PostgresJournal(Journal):
    """A journal in a database; see `wevent.journal.journal.Journal`.

    Args:
        place: the database, the schema, and the folder outside.
        write: be the writer. Readers, and requests to the registry, need not.
        start_over: make a new journal where another one was lost.
        released_through: see `Journal`.
        patience_s: how long a database that does not answer is waited for, once it did.

    Raises:
        InvalidJournal: if there is no journal, a damaged or newer one, or the address lacks what a writer needs.
        JournalLocked: naming the writer.
        JournalUnreachable: if the database does not answer.
        StaleJournal: if the witness shows slots of a journal that is not there.
        StorageFailed: if the server may forget what it commits, is a standby, or cannot be written.
    """

    def __init__(
        self,
        place: PostgresPlace,
        *,
        write: bool = False,
        start_over: bool = False,
        released_through: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        schema = JournalSchema(place, write=write, start_over=start_over, patience_s=patience_s)
        with ExitStack() as undo:
            undo.callback(schema.close)
            super().__init__(schema, started_over=start_over, released_through=released_through)
            schema.database.session.regained = self.check_end
            undo.pop_all()
