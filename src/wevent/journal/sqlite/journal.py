"""The journal in one SQLite file: write-ahead log, every commit forced to disk, one writer (spec 10)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw
import msgspec

from wevent.errors import JournalLocked, WeventError
from wevent.journal.coming import Coming
from wevent.journal.contents import Batch, Head, Hook, Loaded, Marked, Writer, no_hook
from wevent.journal.record import KINDS, Record
from wevent.journal.sqlite import schema
from wevent.journal.sqlite.chain import MEASURED_ANCHOR, SHOWN_ANCHOR, SlotChain
from wevent.journal.sqlite.copying import copy_journal
from wevent.journal.sqlite.epoch_table import EpochTable
from wevent.journal.sqlite.facts import Facts
from wevent.journal.sqlite.file import JournalFile
from wevent.journal.sqlite.lock import WriterLock, holder, own_files
from wevent.journal.sqlite.lost import STARTED_OVER
from wevent.journal.sqlite.marking import ChangeNotes, Marking
from wevent.journal.sqlite.sealed import PendingKeys
from wevent.journal.sqlite.shelf import Shelf
from wevent.journal.sqlite.side_mark import lock_path
from wevent.journal.sqlite.slot_table import SlotTable
from wevent.journal.sqlite.sqlite_registry import SqliteRegistry
from wevent.journal.sqlite.standing import Standing
from wevent.journal.sqlite.storage import (
    check_pages,
    clear_errors,
    maybe_row,
    only_row,
    readable,
    transaction,
)
from wevent.journal.terms import Epoch, Terms
from wevent.people.declaring import holdout_of
from wevent.people.holdout import Restore
from wevent.people.membership import Changes


class SqliteJournal:
    """A journal file; see `wevent.journal.contract.Journal`.

    Args:
        path: the file; made on the first `begin` if it does not exist.
        write: take the writer's lock. Readers, and the registry's queue, need none.
        start_over: make a new journal where another one was lost.
        held: the writer's lock, if the caller has it already and keeps it.

    Raises:
        InvalidJournal: if the file is no journal, damaged or newer.
        JournalLocked: naming the holder.
        StaleJournal: if the side file knows slots of a journal that is not here.
        StorageFailed: if it cannot be opened or written.
    """

    def __init__(
        self, path: str | Path, *, write: bool = False, start_over: bool = False, held: WriterLock | None = None
    ) -> None:
        self.path = Path(path)
        self._file = JournalFile(self.path, write=write or held is not None, start_over=start_over, held=held)
        self._database = self._file.database
        self._started_over = start_over
        self._keys = PendingKeys(self._file.read_side, self._file.write_side)
        self._facts = Facts(self._database)
        self.registry = SqliteRegistry(self._database, self.path, ChangeNotes(self._file, self._facts))
        self._epochs = EpochTable(self._database, self._facts, self.registry)
        self._shelf = Shelf(self._database)
        self._slots = SlotTable(self._database, self._shelf)
        self._chain = SlotChain(self._database, self.path, self._shelf, self._epochs.stored)
        self._standing = Standing(self._database, self.path, self._chain, self._epochs, self._facts)
        self._marking = Marking(self._file, self._slots, self._epochs, self.registry)
        with ExitStack() as undo:
            undo.callback(self._file.close)  # the lock too: whoever tries again must not be told that it is held
            if self._file.older is not None:
                self._bring_up_to_date(self._file.older)
            if start_over and not self.is_new:
                self.note_unsafe((STARTED_OVER,))
            undo.pop_all()

    # Slots

    def load(self) -> Loaded:
        """See `Slots.load`; checks the hash chain of the slots since the stored state."""
        return self._standing.load(self._pending)

    def head(self) -> Head:
        """See `Slots.head`."""
        return self._standing.head()

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Slots.commit`. The order is the guarantee: nothing of the batch is public before this returns."""
        self._file.check_place()  # 1. the files are those that were opened: what is stored will be found
        pending = self._keys.seal(batch.pending)  # 2. events of open slots, sealed; the key stays outside the database
        with clear_errors(self.path), self._transaction():  # 3. all of this is stored, or none
            self._append(batch._replace(pending=pending), at)
        self._keys.committed()  # 4. events of slots that have closed can be read by nobody any more
        if batch.records:
            self._epochs.committed()  # 5. and an epoch that waited for its first slot waits no longer

    def _append(self, batch: Batch, at: Hook) -> None:
        """Step 3 of the commit: charges, releases and position of consecutive slots; inside a transaction."""
        committed, link = self._slots.end()  # a. each slot is the next one: whoever lost the race discards the draw
        if batch.records and committed != batch.records[0].slot - 1:
            raise JournalLocked(
                f"slot {committed + 1} to be the next",
                f"slot {batch.records[0].slot}",
                "Another writer was faster: its release stands, this draw is discarded.",
                path=str(self.path),
            )
        at("began")
        rows, link = self._slots.store_charges(batch.records, link)  # b. charges, and an epoch with its first slot
        if batch.records:
            self._epochs.store_planned()
        at("charges stored")
        self._slots.store_releases(rows)  # c. releases, each once
        at("releases stored")
        self._slots.advance(batch, link)  # d. input position, state, and the end of the hash chain
        at("position stored")

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
        state = only_row(self._database, "SELECT coalesce(max(slot), 0) FROM states")[0]
        first = min(head.committed - max(keep, self._epochs.widest()) + 1, head.emitted + 1, int(state) + 1)
        anchor = self.link_at(first - 1)
        if first <= head.first or anchor is None:
            return head.first
        self._marking.sync()
        with clear_errors(self.path), self._transaction():
            if (shown := self._chain.keep_shown(first)) is not None:
                self._facts[SHOWN_ANCHOR] = shown
            if (measured := self._chain.measured_before(first)) is not None:
                self._facts[MEASURED_ANCHOR] = msgspec.json.encode(measured)
            self._slots.drop_before(first, anchor)
        self._shelf.forget()
        return first

    # Epochs

    @property
    def is_new(self) -> bool:
        """See `Epochs.is_new`."""
        return self._file.is_new

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
        with clear_errors(self.path), self._transaction():
            if self.is_new:
                schema.lay_out(self._database)
            committed, _ = self._slots.end()
            if committed:
                self._epochs.plan(coming, committed + 1, asked)
            else:
                started_over = self._started_over or STARTED_OVER in self._facts.unsafe
                self._facts.unsafe = (STARTED_OVER,) if started_over else ()
                self._epochs.begin_first(coming)
        self._file.is_new = False
        self._marking.forget()

    def epochs(self) -> list[Epoch]:
        """See `Epochs.epochs`."""
        return self._epochs.all()

    @property
    def epoch_waits(self) -> bool:
        """See `Epochs.epoch_waits`."""
        return self._epochs.waits

    def imported(self) -> bytes:
        """See `Epochs.imported`."""
        return bytes(self._facts.get("imported") or b"")

    def note_imported(self, digest: bytes) -> None:
        """See `Epochs.note_imported`."""
        with clear_errors(self.path), self._transaction():
            self._facts["imported"] = digest
            self.registry.file_imported(())

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        """See `Epochs.note_unsafe`."""
        with clear_errors(self.path), self._transaction():
            self._facts.add_unsafe(unsafe)

    # Marks and notes

    @property
    def identity(self) -> str:
        """See `Marks.identity`."""
        return str(self._facts["id"])

    @property
    def mark_name(self) -> str:
        """See `Marks.mark_name`: the side file."""
        return lock_path(self.path).name

    def mark(self, *, forced: bool = False) -> None:
        """See `Marks.mark`. Unforced it survives a crash of the process; after a power failure it may be older, not wrong."""
        self._marking.mark(forced=forced)

    def marked(self) -> Marked:
        """See `Marks.marked`."""
        return self._marking.marked()

    def proof(self, through: int) -> Restore | None:
        """See `Marks.proof`."""
        return self._marking.proof(through)

    def take_over(self, batch: Batch, restore: Restore | None = None) -> int:
        """See `Marks.take_over`."""
        with clear_errors(self.path), self._transaction():
            self._append(batch, no_hook)
            held = 0
            if restore is not None:
                held = self.registry.hold_out(restore, holdout_of(self.epochs(), self.registry.restores()))
            self._database.execute("UPDATE head SET copied = 0, emitted = committed")
            self._facts["incarnation"] = secrets.token_hex(16)  # other copies' evidence is not about this one
        self._marking.forget()
        return held

    def read_note(self) -> bytes:
        """See `Notes.read_note`."""
        return self._marking.read_note()

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        """See `Notes.write_note`."""
        self._marking.write_note(data, force=force)

    # The file

    @property
    def name(self) -> str:
        """See `Journal.name`: the path."""
        return str(self.path)

    def files(self) -> list[Path]:
        """See `Journal.files`."""
        return own_files(self.path)

    def writer(self) -> Writer | None:
        """See `Journal.writer`: the holder of the lock."""
        return holder(self.path)

    def backup(self, target: Path, *, replace: bool = False) -> int:
        """Copy the journal while it is in use; the copy knows that it is one. Returns its last slot.

        The copy cannot be published from until it is told through which slot releases went out (spec 10).

        Args:
            target: the copy.
            replace: whether a file that is there may be replaced; never the journal itself or its side files.

        Raises:
            InvalidOutput: if the target is there, or is one of the journal's own files.
            StorageFailed: if it cannot be written.
        """
        return copy_journal(self._database, self.path, target, replace=replace)

    def check(self) -> None:
        """Everything that can be checked: pages, every slot that is kept, the registry and its queue.

        Raises:
            InvalidJournal: if something is not what was stored.
        """
        with readable(self.path):
            check_pages(self._database, self.path)
            self._standing.check()
            self.load()
            self.registry.check()
            self.registry.queued()
            self._database.execute("SELECT * FROM facts").fetchall()  # text that is none

    def close(self) -> None:
        """See `Journal.close`."""
        self._file.close()

    def __enter__(self) -> SqliteJournal:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it. An error that nobody foresaw may come of damage: then that is said instead.

        Raises:
            InvalidJournal: if it does.
        """
        try:
            if isinstance(error, Exception) and not isinstance(error, WeventError) and not self.is_new:
                with readable(self.path):
                    if isinstance(error, apsw.Error):
                        raise error
                    self.check()
        finally:
            self.close()

    def _bring_up_to_date(self, found: int) -> None:
        """An older format as the present one, together with the hold-out that it needs: both are stored, or none."""
        with clear_errors(self.path), self._transaction():
            schema.migrate(self._database, found)
            self._doubt_older_restores()

    def _doubt_older_restores(self) -> None:
        """The first format proves nothing of slots released elsewhere, nor who was counted as a stranger: all wait.

        Inside the transaction that brings it up to date: an open that fails in between would leave nobody waiting.
        """
        committed, elsewhere = only_row(
            self._database,
            "SELECT committed, coalesce((SELECT max(slot) FROM slots WHERE kind = ?), 0) FROM head",
            (KINDS.index("elsewhere"),),
        )
        holdout = holdout_of(self.epochs(), ())
        doubtful = elsewhere > holdout.forgotten_through(committed) or holdout.as_stranger(committed + 1)
        if committed and doubtful:
            self.registry.hold_out(Restore(committed, holdout.widest, 0, False, None), holdout)

    def _pending(self) -> bytes | None:
        """What is pending; only the writer has its key."""
        if self._file.lock is None:
            return b""
        sealed = only_row(self._database, "SELECT pending FROM head")[0]
        return self._keys.unseal(sealed if isinstance(sealed, bytes) else b"damaged")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with transaction(self._database):
                yield
        except BaseException:
            self._shelf.forget()  # rows of the lost transaction are not there
            raise
