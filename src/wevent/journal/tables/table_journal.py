"""A journal in tables: what SQLite and PostgreSQL share of it. The order within `commit` is the guarantee (spec 10)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from wevent.errors import JournalLocked, WeventError
from wevent.journal.coming import Coming
from wevent.journal.contents import Batch, Head, Hook, Loaded, Marked, Writer, no_hook
from wevent.journal.record import KINDS, Record
from wevent.journal.tables.chain import MEASURED_ANCHOR, SHOWN_ANCHOR, SlotChain
from wevent.journal.tables.database import Database, maybe_row, only_row, stored_bytes
from wevent.journal.tables.epoch_table import EpochTable
from wevent.journal.tables.facts import Facts
from wevent.journal.tables.lost import STARTED_OVER
from wevent.journal.tables.marking import Marking, Outside, witness_revision
from wevent.journal.tables.shelf import Shelf
from wevent.journal.tables.slot_table import SlotTable
from wevent.journal.tables.standing import Standing
from wevent.journal.tables.table_registry import IMPORTED, TableRegistry
from wevent.journal.terms import Epoch, Terms
from wevent.people.classes import Restore
from wevent.people.membership import Changes

_Result = TypeVar("_Result")


class TableJournal(ABC):
    """See `wevent.journal.contract.Journal`; an implementation says what the tables are kept in.

    Args:
        database: the tables.
        outside: what is kept outside them.
        started_over: whether the operator says that this one replaces a lost one.
    """

    def __init__(self, database: Database, outside: Outside, *, started_over: bool) -> None:
        self._database, self._outside, self._started_over = database, outside, started_over
        self._facts = Facts(database)
        self.registry = TableRegistry(database, partial(witness_revision, outside))
        self._epochs = EpochTable(database, self._facts, self.registry)
        self._shelf = Shelf(database)
        self._slots = SlotTable(database, self._shelf)
        self._chain = SlotChain(database, self._shelf, self._epochs.stored)
        self._standing = Standing(database, self._chain, self._epochs, self._facts, self._shown_through)
        self._marking = Marking(outside, self._epochs, self.registry, self._facts)
        self._end: tuple[int, bytes] | None = None  # the last slot that is known to be stored, and its link

    # Slots

    def load(self) -> Loaded:
        """See `Slots.load`; checks the hash chain of the slots since the stored state."""
        return self._standing.load()

    def head(self) -> Head:
        """See `Slots.head`."""
        return self._standing.head()

    def _shown_through(self, committed: int, emitted: int) -> int:
        """The last slot that may be shown: all that is committed."""
        return committed

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Slots.commit`. The order is the guarantee: nothing of the batch is public before this returns."""
        self._outside.check_place()  # 1. what is kept outside is in its place: what is stored will be found
        self._write_down(batch, at)  # 2. what was drawn is the draw of its slots, whatever becomes of the transaction
        self._end = self._write(
            lambda: self._append(batch, at), lambda: self._stands(batch)
        )  # 3. all is stored, or none
        if batch.records and self._epochs.waits:  # 4. an epoch that waited for its first slot waits no longer
            self._epochs.committed()
            self._marking.forget()

    @abstractmethod
    def _write_down(self, batch: Batch, at: Hook) -> None:
        """Step 2 of the commit: outside the tables, where these keep what was not committed."""

    def _append(self, batch: Batch, at: Hook) -> tuple[int, bytes]:
        """Step 3 of the commit: charges, releases and position of consecutive slots; inside a transaction.

        It draws nothing and changes nothing but rows: where a connection was lost it is done again, with the same batch.
        Returns the last slot that is then stored, and the end of the hash chain.
        """
        committed, link = self._slots.end()  # a. each slot is the next one: whoever lost the race discards the draw
        if batch.records and committed != batch.records[0].slot - 1:
            raise self._outrun(committed, batch.records[0].slot)
        if batch.records:
            self.registry.check_in_force(batch.records[-1].slot)
        at("began")
        rows, link = self._slots.store_charges(batch.records, link)  # b. charges, and an epoch with its first slot
        if batch.records:
            self._epochs.store_planned()
        at("charges stored")
        self._slots.store_releases(rows)  # c. releases, each once
        at("releases stored")
        self._slots.advance(batch, link)  # d. input position, state, and the end of the hash chain
        at("position stored")
        return (batch.records[-1].slot if batch.records else committed), link

    def _outrun(self, committed: int, slot: int) -> WeventError:
        """What is said of a slot that is not the next one."""
        return JournalLocked(
            f"slot {committed + 1} to be the next",
            f"slot {slot}",
            "Another writer was faster: its release stands, this draw is discarded.",
            path=self._database.name,
        )

    def _stands(self, batch: Batch) -> bool:
        """Whether the slots of a batch are stored as they are: the last link says it of all of them."""
        if not batch.records:
            return False
        before, last = self.link_at(batch.records[0].slot - 1), self.link_at(batch.records[-1].slot)
        if before is None or last is None:
            return False
        for record in batch.records:
            before = record.digest(before)
        return before == last

    def releases(self, first: int = 1) -> Iterator[Record]:
        """See `Slots.releases`; each slot is checked against the hash chain before it is given out."""
        return self._chain.records(first)

    def link_at(self, slot: int) -> bytes | None:
        """See `Slots.link_at`."""
        return self._chain.link_at(slot)

    def is_elsewhere(self, slot: int) -> bool:
        """See `Slots.is_elsewhere`."""
        row = maybe_row(self._database, "SELECT kind FROM slots WHERE slot = ?", (slot,))
        return row is not None and KINDS[row[0]] == "elsewhere"

    def compact(self, keep: int) -> int:
        """See `Slots.compact`."""
        head = self.head()
        query = "SELECT coalesce(max(slot), 0) FROM states WHERE slot <= ?"
        state = only_row(self._database, query, (head.emitted,))[0]  # the one that a reader may begin with, too
        first = min(head.committed - max(keep, self._epochs.widest()) + 1, head.emitted + 1, int(state) + 1)
        anchor = self.link_at(first - 1)
        if first <= head.first or anchor is None:
            return head.first
        self._marking.sync()
        self._write(lambda: self._drop_before(first, anchor))
        self._shelf.forget()
        return first

    def _drop_before(self, first: int, anchor: bytes) -> None:
        """Drop slots, and remember what those that stay still rest on; inside a transaction."""
        if (shown := self._chain.keep_shown(first)) is not None:
            self._facts[SHOWN_ANCHOR] = shown
        if (measured := self._chain.measured_before(first)) is not None:
            self._facts[MEASURED_ANCHOR] = msgspec.json.encode(measured)
        self._slots.drop_before(first, anchor)

    # Epochs

    @property
    @abstractmethod
    def is_new(self) -> bool:
        """See `Epochs.is_new`."""

    def begin(
        self,
        terms: Terms,
        unsafe: tuple[str, ...] = (),
        changes: Changes = (),
        imported: bytes | None = None,
        asked: int | None = None,
    ) -> None:
        """See `Epochs.begin`."""
        coming = Coming(terms, unsafe, changes, imported)
        self._write(lambda: self._begin(coming, asked))
        self._is_begun()
        self._marking.forget()

    def _begin(self, coming: Coming, asked: int | None) -> None:
        """Keep terms, or have those of the next epoch at hand; inside a transaction."""
        if self.is_new:
            self._lay_out()
        committed, _ = self._slots.end()
        if committed:
            self._epochs.plan(coming, committed + 1, asked)
        else:
            started_over = self._started_over or STARTED_OVER in self._facts.unsafe
            self._facts.unsafe = (STARTED_OVER,) if started_over else ()
            self._epochs.begin_first(coming)

    @abstractmethod
    def _lay_out(self) -> None:
        """The tables of a new journal and their first rows; inside a transaction."""

    @abstractmethod
    def _is_begun(self) -> None:
        """It is no longer new."""

    def epochs(self) -> list[Epoch]:
        """See `Epochs.epochs`."""
        return self._epochs.all()

    @property
    def epoch_waits(self) -> bool:
        """See `Epochs.epoch_waits`."""
        return self._epochs.waits

    def imported(self) -> bytes:
        """See `Epochs.imported`."""
        return stored_bytes(self._facts.get("imported") or b"")

    def note_imported(self, digest: bytes) -> None:
        """See `Epochs.note_imported`."""
        self._write(lambda: self._note_imported(digest))

    def _note_imported(self, digest: bytes) -> None:
        self._facts["imported"] = digest
        self._facts["changes lost"] = IMPORTED if self._facts.number("changes lost") else 0
        self.registry.file_imported(())

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        """See `Epochs.note_unsafe`."""
        self._write(lambda: self._facts.add_unsafe(unsafe))

    # Marks and notes

    @property
    def identity(self) -> str:
        """See `Marks.identity`."""
        return self._facts.text("id")

    @property
    @abstractmethod
    def mark_name(self) -> str:
        """See `Marks.mark_name`."""

    def mark(self, *, forced: bool = False) -> None:
        """See `Marks.mark`. Unforced it survives a crash of the process; after a power failure it may be older, not wrong."""
        self._marking.mark(self._stored_end, forced=forced)

    def _stored_end(self) -> tuple[int, bytes]:
        """The last slot that is stored, and the end of the hash chain there."""
        return self._slots.end()

    def marked(self) -> Marked:
        """See `Marks.marked`."""
        return self._marking.marked()

    def take_over(self, batch: Batch, restore: Restore | None = None, *, changes_lost: bool = False) -> None:
        """See `Marks.take_over`."""
        self._write(lambda: self._take_over(batch, restore, changes_lost))
        self._end = None
        self._marking.forget()

    def _take_over(self, batch: Batch, restore: Restore | None, changes_lost: bool) -> None:
        """Charge slots released elsewhere, store what they leave in doubt, and be the journal; inside a transaction."""
        self._append(batch, no_hook)
        if changes_lost:
            self._facts["changes lost"] = 1
        marked = self.marked()
        shown = max(marked.revision.number, marked.applied) if marked.journal == self.identity else 0
        if restore is not None:
            self.registry.store_restore(restore, shown)
        elif changes_lost:
            self.registry.advance(shown)  # the same backup, put back again, lacks the same changes
        self._database.execute("UPDATE head SET copied = 0, emitted = committed")

    @property
    def changes_lost(self) -> bool:
        """See `Marks.changes_lost`."""
        return self._facts.number("changes lost") == 1

    def accept_lost_changes(self) -> None:
        """See `Marks.accept_lost_changes`."""
        self._write(lambda: self._facts.__setitem__("changes lost", 0))

    def read_note(self) -> bytes:
        """See `Notes.read_note`."""
        return self._marking.read_note()

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        """See `Notes.write_note`."""
        self._marking.write_note(data, force=force)

    # The journal itself

    @property
    def name(self) -> str:
        """See `Journal.name`."""
        return self._database.name

    @abstractmethod
    def files(self) -> list[Path]:
        """See `Journal.files`."""

    @abstractmethod
    def size(self) -> int:
        """See `Journal.size`."""

    @abstractmethod
    def writer(self) -> Writer | None:
        """See `Journal.writer`."""

    @abstractmethod
    def close(self) -> None:
        """See `Journal.close`."""

    def check(self) -> None:
        """Everything that can be checked: every slot that is kept, the registry and its queue.

        Raises:
            InvalidJournal: if something is not what was stored.
        """
        with self._database.readable():
            self._standing.check()
            self.load()
            self.registry.check()
            self.registry.queued()
            self._database.execute("SELECT * FROM facts").fetchall()  # text that is none

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def _write(self, work: Callable[[], _Result], stands: Callable[[], bool] | None = None) -> _Result:
        """One write transaction; rows of one that was lost are not there, whatever the shelf remembers."""
        return self._database.write(work, self._shelf.forget, stands)
