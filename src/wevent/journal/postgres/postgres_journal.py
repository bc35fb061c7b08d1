"""The journal in a schema of PostgreSQL: every commit forced to disk, one writer, fenced; its mark outside (spec 10)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec.structs import replace

from wevent.errors import InvalidJournal, StaleJournal, StorageFailed, WeventError
from wevent.journal.contents import Batch, Hook, Marked, Revision, Writer, no_hook
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import PATIENCE_S
from wevent.journal.postgres.draft_files import DraftFiles
from wevent.journal.postgres.lease import Lease, current_writer
from wevent.journal.postgres.postgres_database import PostgresDatabase
from wevent.journal.postgres.postgres_tables import has_journal, lay_out_tables
from wevent.journal.postgres.server_errors import no_journal
from wevent.journal.postgres.side_folder import SideFolder
from wevent.journal.record import Record
from wevent.journal.tables.database import only_row
from wevent.journal.tables.draft import Draft
from wevent.journal.tables.lost import STARTED_OVER, Home, check_lost, is_lost, refuse_lost
from wevent.journal.tables.table_journal import TableJournal

_PAGE = 64  # slots that are read in one view


class PostgresJournal(TableJournal):
    """A journal in a database; see `wevent.journal.contract.Journal`.

    Args:
        place: the database, the schema, and the folder outside.
        write: be the writer. Readers, and the registry's queue, need not.
        start_over: make a new journal where another one was lost.
        released_through: what the operator says went out elsewhere: slots up to this one are not stored from a draft.
        patience_s: how long a database that does not answer is waited for, once it did.

    Raises:
        InvalidJournal: if there is no journal, a damaged or newer one, or the address lacks what a writer needs.
        JournalLocked: naming the writer.
        JournalUnreachable: if the database does not answer.
        StaleJournal: if the side folder knows slots of a journal that is not there.
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
        self.place, self._stated = place, released_through or 0
        self._sent = 0  # the last slot that was written down, may have been sent, and is not stored
        self._brought_ids = False
        self._is_new = self._is_closed = False
        self._is_settled = False  # whether the own mark is on disk, and older side files are gone
        self._side, self._drafts = SideFolder(place), DraftFiles(place)
        with ExitStack() as undo:
            if write:
                self._side.check_private()
            newest = max([*self._side.fences(), *self._drafts.fences()], default=0) if write else 0
            self._lease = Lease.take(place, above=newest) if write else None  # a database put back may know less
            undo.callback(self._let_go)
            self._tables = PostgresDatabase(place, self._lease, patience_s=patience_s)
            undo.callback(self._tables.close)
            super().__init__(self._tables, self._side, started_over=start_over)
            self._open(start_over)
            self._tables.session.regained = self._look_again
            if start_over and not self._is_new:
                self.note_unsafe((STARTED_OVER,))
            undo.pop_all()

    # Slots

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Slots.commit`."""
        reached, brings_ids = set[str](), self._epochs.waits

        def watched(step: str) -> None:
            reached.add(step)
            at(step)

        try:
            super().commit(batch, watched)
        except BaseException:
            if "drafted" in reached and "began" not in reached:  # fence and memberships come first
                self._drafts.unsent()
            raise
        if batch.records:
            self._drafts.committed()
            self._brought_ids = brings_ids

    def _write_down(self, batch: Batch, at: Hook) -> None:
        """What was drawn, in the side folder: the database keeps what it was given, on pages and in its log, also of
        transactions that come to nothing, and two draws of a slot would be two outputs for one charge (spec 10).
        """
        if not batch.records:
            return
        _, link = self._end or self._slots.end()
        draft = Draft.of(self.identity, self.registry.counted_under(), link, batch, self._epochs.planned())
        self._drafts.keep(draft)
        at("drafted")

    def _adopt(self, drafts: list[Draft], end: tuple[int, bytes]) -> None:
        """Store what a writer before had drawn for the next slots and may not have stored: they have no other draw.

        As if its commit had come through. Not into a database that lacks slots which went out, or memberships that were
        counted under, and not where the operator says that others were released for these slots: then they count as known
        outside, and are charged, not drawn, once the operator has said so (`marked`).
        """
        fits = self._side.seen().committed <= end[0] and not self._standing.head().copied and self._stated <= end[0]
        fitting = [draft for draft in drafts if draft.follows == self._next(end)]
        if fits and fitting:
            if fitting[0].planned is not None:
                self._epochs.plan_again(fitting[0].planned.planned())
            batch = fitting[0].batch(self._epochs.named, self._shelf.shown)
            self._end = end = self._write(lambda: self._append(batch, no_hook), lambda: self._stands(batch))
            self._epochs.committed()
            drafts = [draft for draft in drafts if draft is not fitting[0]]
        fitting = [] if fits else fitting
        self._sent = max([self._unfit(drafts, end), *(draft.last for draft in fitting)])

    def _next(self, end: tuple[int, bytes]) -> tuple[str, Revision, int, bytes]:
        """What a draft has to follow to be stored next."""
        return self.identity, self.registry.revision(), end[0] + 1, end[1]

    def _unfit(self, drafts: list[Draft], end: tuple[int, bytes]) -> int:
        """The last slot of drafts that belong to this journal and cannot be stored any more; 0 without any."""
        own = [draft for draft in drafts if draft.journal == self.identity and draft.last > end[0]]
        return max((draft.last for draft in own if draft.follows != self._next(end)), default=0)

    def _append(self, batch: Batch, at: Hook) -> tuple[int, bytes]:
        end = super()._append(batch, at)
        at("committing")
        return end

    def _outrun(self, committed: int, slot: int) -> WeventError:
        """Another writer was faster; or the database was put back under this one."""
        self._confirm()
        return super()._outrun(committed, slot)

    def releases(self, first: int = 1) -> Iterator[Record]:
        """See `Slots.releases`; some slots at a time, each checked against the hash chain before it is given out.

        A reader is given those that may be shown.

        Raises:
            InvalidJournal: at the first slot that is not what was stored.
            StorageFailed: if the writer drops slots that are still to be given out.
        """
        wanted = first
        while True:
            page, damage = self._tables.read(lambda slot=wanted: self._page(slot))  # type: ignore[misc]
            if page and wanted > first and page[0].slot != wanted:
                raise StorageFailed(
                    f"slot {wanted} to stay while releases are read",
                    "a publisher that dropped it (--keep)",
                    "Read them again, or publish with a larger --keep.",
                    path=self.name,
                )
            yield from page
            if damage is not None:
                raise damage
            if len(page) < _PAGE:
                return
            wanted = page[-1].slot + 1

    def _page(self, first: int) -> tuple[list[Record], InvalidJournal | None]:
        """Slots from one on, as far as they are what was stored; and what is wrong with the next."""
        page: list[Record] = []
        last = self._standing.shown_through()
        with suppress(InvalidJournal), self._tables.readable():
            self._shelf.fetch(first, _PAGE + 1)  # what is wrong with one of them is found where it is
        try:
            for record in self._chain.records(first, _PAGE):
                if record.slot > last:
                    break
                page.append(record)
        except InvalidJournal as damage:
            return page, damage if max([first, *(record.slot + 1 for record in page[-1:])]) <= last else None
        return page, None

    def _shown_through(self, committed: int, emitted: int) -> int:
        """The last slot that may be shown: to a reader none that only the database knows (spec 10).

        If the database were put back to before it, nothing would tell that it was seen, and it would be drawn again. What
        went out was known outside before; of what came later the side folder tells, if the address names it.
        """
        if self._lease is not None or committed <= emitted:
            return committed
        if self.place.side is None:
            return emitted
        return max(emitted, min(committed, self._side.known_slot(self._facts.text("id"))))

    # Epochs

    @property
    def is_new(self) -> bool:
        """See `Epochs.is_new`."""
        return self._is_new

    def _lay_out(self) -> None:
        lay_out_tables(self._tables)

    def _is_begun(self) -> None:
        self._is_new = False
        self._drafts.take_room(self._epochs.all()[-1].terms.number_of_cells)

    # Marks

    @property
    def mark_name(self) -> str:
        """See `Marks.mark_name`: the side files."""
        return f"{self.place.schema}.….side in {self.place.side}"

    def mark(self, *, forced: bool = False) -> None:
        """See `Marks.mark`. Forced to disk: whoever takes over may be on another machine, after this one and the database's
        fell together. After a writer's first one older side files go, with the keys in them.
        """
        super().mark(forced=True)
        if self._lease is None:
            return
        self._drafts.marked(forget=self._brought_ids)
        self._brought_ids = False
        if not self._is_settled:
            self._side.drop_older()
            self._is_settled = self._slots.end()[0] >= self._sent
            if self._is_settled:  # else the slots of a draft wait for what the operator says of them
                self._drafts.drop_older()

    def marked(self) -> Marked:
        """See `Marks.marked`. A draw that may have been sent and cannot be stored is known outside: it is the only one."""
        known, sent = super().marked(), self._sent
        if self._lease is None and self.place.side is not None:
            drafts = self._drafts.found()  # before the head: who publishes goes on meanwhile
            sent = self._tables.read(lambda: self._unfit(drafts, self._slots.end()))
        return known if sent <= known.committed else Marked(self.identity, sent, "")

    def _stored_end(self) -> tuple[int, bytes]:
        """The last slot that is stored: what was committed here, or nothing of it may go out."""
        end = super()._stored_end()
        if self._end is not None and end != self._end and self._lease is not None:
            self._confirm()
            raise self._lease.locked(None)
        return end

    def _confirm(self) -> None:
        """Refuse to go on with a database that lacks what was committed here: it was put back, or a standby took over.

        Raises:
            StaleJournal: if it does. Slots that went out are charged, not drawn again, once the operator says which.
        """
        if self._end is None or self.link_at(self._end[0]) == self._end[1]:
            return
        slot = self._end[0]
        raise StaleJournal(
            f"the database that committed slot {slot} here",
            "one that does not know it",
            "It was restored, or a standby took over that had not received everything: nothing more goes out. Publish with "
            f"--released-through {slot}.",
            committed=int(only_row(self._tables, "SELECT committed FROM head")[0]),
            released=slot,
        )

    def _look_again(self) -> None:
        """After a lost connection: what is at hand may not be there any more."""
        self._shelf.forget()
        self._confirm()

    # The journal itself

    def files(self) -> list[Path]:
        """See `Journal.files`: the side files."""
        return [] if self.place.side is None else self._side.files()

    def size(self) -> int:
        """See `Journal.size`: of all tables of the schema but those that tell how many events came."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(?)::oid AND relkind IN ('r', 'm')"
            " AND relname <> 'events'"
        )
        return int(only_row(self._tables, query, (self.place.schema,))[0])

    def writer(self) -> Writer | None:
        """See `Journal.writer`: the holder of the lease."""
        return self._tables.session.repeat(current_writer)

    def close(self) -> None:
        """See `Journal.close`."""
        if not self._is_closed:
            self._is_closed = True
            self._tables.close()
            self._let_go()

    def _open(self, start_over: bool) -> None:
        """Refuse what is no journal, and another journal than the side folder knows; the writer begins its side file."""
        home = Home(str(self.place), "of the database, with its own tools; then publish with")
        try:
            self._is_new = not has_journal(self._tables, self.place)
        except InvalidJournal:
            self._is_new = self._lease is not None and self._lease.before is None  # what was made for it goes again
            raise
        if self._lease is None:
            if self._is_new and self.place.side is not None and self.place.side.is_dir():
                refuse_lost(home, self._side.seen())
            if self._is_new:
                raise no_journal(self.place)
            return
        identity = None
        if not self._is_new:
            with self._tables.readable():
                identity, self._end = self._facts.text("id"), self._slots.end()
        drafts = self._drafts.found()
        known = self._side.seen()
        others = [draft for draft in drafts if draft.journal != identity]
        if others and not known.committed:  # the first slot of a journal that is gone may have been sent
            known = replace(known, journal=others[0].journal, committed=others[0].last)
        if self._end is not None and not self._end[0] and STARTED_OVER in self._facts.unsafe:
            start_over = is_lost(known, identity)  # said before, by a run that came to no slot
        check_lost(home, known, identity, start_over=start_over)
        self._side.begin(self._lease)
        self._drafts.begin(self._lease.fence)
        if identity is not None:
            self._drafts.take_room(self._standing.head().epoch.terms.number_of_cells)
        if drafts and self._end is not None:
            self._adopt(drafts, self._end)

    def _let_go(self) -> None:
        """Let the next writer in, last of all; a journal that was never begun leaves nothing."""
        self._side.close()
        self._drafts.close()
        if self._lease is not None:
            self._lease.close(never_begun=self._is_new)
