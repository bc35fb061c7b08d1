"""The journal over a database: commit protocol and recovery, each in one function (spec 10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

import msgspec

from wevent.errors import InvalidJournal, JournalLocked, StaleJournal, StorageFailed, WeventError
from wevent.journal.contents import Batch, Head, Hook, Loaded, Revision, Writer, no_hook
from wevent.journal.database import Database, only_row, stored_bytes
from wevent.journal.metadata import Facts
from wevent.journal.record import Record
from wevent.journal.slots import SlotLog, Transaction
from wevent.journal.terms import Epoch, Terms, hash_versions
from wevent.journal.user_registry import UserRegistry
from wevent.journal.versions import NewVersion, PendingVersion, VersionTable
from wevent.journal.witness import STARTED_OVER, WitnessFile, WitnessRecord
from wevent.people.classes import Restore
from wevent.people.membership import Changes


class Storage(Protocol):
    """Tables of a journal and its witness: a file beside another one, or a schema and a folder.

    Attributes:
        is_new: whether there are no tables yet.
    """

    is_new: bool

    @property
    def database(self) -> Database:
        """The tables."""

    @property
    def witness(self) -> WitnessFile | None:
        """The witness of the one writer; None for readers."""

    @property
    def witness_name(self) -> str:
        """The name of the witness in messages."""

    def seen(self) -> WitnessRecord:
        """Return what the witness shows now, for readers."""

    def check_place(self) -> None:
        """Refuse to go on if something of the journal was taken away under its writer.

        Raises:
            StorageFailed: before anything more is stored or released.
        """

    def create_tables(self) -> None:
        """Create the tables; inside a transaction."""

    def check_pages(self) -> None:
        """Refuse a file whose pages contradict each other.

        Raises:
            InvalidJournal: if it is damaged.
        """

    def files(self) -> list[Path]:
        """Return the files that belong to the journal."""

    def size(self) -> int:
        """Return the bytes that the tables take."""

    def writer(self) -> Writer | None:
        """Return the process that publishes now, None without one."""

    def close(self) -> None:
        """Close everything and let the next writer in."""


class SqlJournal:
    """See `wevent.journal.contract.Journal`.

    Args:
        storage: its tables and witness.
        started_over: whether the operator replaces a lost journal.
        released_through: last slot that another copy released, by the operator: a draw of these slots is not stored.
    """

    def __init__(self, storage: Storage, *, started_over: bool = False, released_through: int | None = None) -> None:
        self._storage, self._database, self._witness = storage, storage.database, storage.witness
        self._started_over = started_over
        self._facts = Facts(self._database)
        self.registry = UserRegistry(self._database, self._record_revision)
        self._epochs = VersionTable(self._database, self._facts, self.registry)
        self._slots = SlotLog(self._database, self._epochs.named)
        self._end: tuple[int, bytes] | None = None  # last slot stored by this writer, and its chain hash
        self._attempt: tuple[Batch, Transaction] | None = None  # a commit that has not succeeded yet
        self._is_sent = False  # whether the database may have received a part of it
        if self._witness is not None and not self.is_new:
            self._recover(released_through or 0)
            if started_over:
                self.note_unsafe((STARTED_OVER,))

    # Slots

    def load(self) -> Loaded:
        with self._database.readable():
            return self._database.read(self._load)

    def _load(self) -> Loaded:
        head = self.head()
        start, state = self._slots.state()
        if start < head.first - 1 or start > head.committed:  # slots are dropped only behind a state
            raise self._database.damaged()
        since, last = [], None
        for record in self._slots.records(max(start, head.first)):
            last = record
            if record.slot > start:
                since.append(record)
        if (last.slot if last else head.first - 1) != head.committed or self.chain_at(head.committed) != head.digest:
            raise self._database.damaged()
        return Loaded(head, state, since, last)

    def head(self) -> Head:
        with self._database.readable():
            row = only_row(
                self._database,
                "SELECT committed, emitted, position, chain, copied, first, (SELECT max(number) FROM epochs) FROM head",
            )
            committed, emitted, position, chain, copied, first, number = row
            if number is None:
                raise self._database.damaged()
            place, version = msgspec.json.decode(position), self._epochs.in_force(number)
            chain = stored_bytes(chain)
            return Head(committed, emitted, place, chain, version, bool(copied), first, self._facts.unsafe)

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Slots.commit`. The order is the guarantee (spec 10)."""
        # 1. Nothing of the journal was taken away: what is stored will be found.
        self._storage.check_place()
        # 2. The whole transaction, in memory; the same one if an earlier attempt failed.
        if self._attempt is None or self._attempt[0] is not batch:
            transaction = self._build(batch)
            # 3. Write ahead: from here on this is the draw of its slots, whatever becomes of the transaction. The database
            #    may keep what it is sent on its pages, also of transactions that come to nothing.
            if batch.records:
                self._write_ahead(transaction)
                at("written ahead")
            self._attempt, self._is_sent = (batch, transaction), False
        transaction = self._attempt[1]

        # 4. All of it is stored, or nothing. It draws nothing, so it may be done again.
        def reach(step: str) -> None:
            self._is_sent = True
            at(step)

        try:
            self._database.write(
                lambda: self._store(transaction, reach), self._slots.clear_cache, lambda: self._has(transaction)
            )
        except BaseException:
            if not self._is_sent:  # fence, slot and memberships are compared first
                self._withdraw(transaction)
            raise
        self._end = transaction.last, transaction.after
        # 5. A version that waited for its first slot is active; ids that came with it stay nowhere else.
        if batch.records and self._epochs.waits:
            if self._witness is not None:
                self._witness.clear_ahead()
            self._epochs.committed()
        # 6. Room for the next draw, which is not made yet.
        if batch.records and self._witness is not None:
            self._witness.reserve(batch.records[-1].epoch.terms.number_of_cells)
        self._attempt = None

    def _recover(self, released_through: int) -> None:
        """Store the draw that a writer before wrote ahead and may not have stored: its slots have no other draw.

        Not into a backup, nor into a journal that lacks slots or memberships which that writer had, nor where the operator
        says that another copy released these slots. Such a journal is refused until the operator says what was released
        (`wevent.publishing.staleness`).
        """
        assert self._witness is not None
        # 1. The witness is of this journal, and shows a draw that follows its last slot.
        record, head = self._witness.record, self._stored_head()
        self._end = head
        if record.journal == self.identity and record.committed <= head[0]:
            self._clear_version()
            return
        if record.journal != self.identity or not record.follows(head[1]):
            return
        # 2. The journal is no backup, has the memberships that were counted under, and nothing else is said.
        if self._is_copied() or record.revision != self.registry.revision() or released_through > head[0]:
            return
        # 3. The draw is whole. If not, its slots count as released elsewhere.
        data = self._witness.read_ahead()
        if data is None:
            return
        try:
            transaction = msgspec.msgpack.decode(data, type=Transaction)
        except msgspec.MsgspecError:
            raise InvalidJournal(
                "a write-ahead record that this version can read",
                f"another one ({self._witness.path})",
                "A later version wrote it: upgrade wevent.",
                path=self.name,
            ) from None
        # 4. The draw is of these versions: a journal without slots takes others.
        if transaction.version is not None:
            self._epochs.restore_pending(PendingVersion.decode(transaction.version))
        if record.versions != hash_versions(self._epochs.all(), self.registry.restores()):
            self._epochs.committed()
            return
        # 5. As if the commit of that writer had come through.
        self._storage.check_place()
        self._database.write(
            lambda: self._store(transaction, no_hook), self._slots.clear_cache, lambda: self._has(transaction)
        )
        self._end = transaction.last, transaction.after
        self._clear_version()
        self._epochs.committed()

    def _clear_version(self) -> None:
        """Overwrite a stored draw that brought ids, as its own writer would have done."""
        assert self._witness is not None
        data = self._witness.read_ahead()
        with suppress(msgspec.MsgspecError):
            if data is not None and msgspec.msgpack.decode(data, type=Transaction).version is not None:
                self._witness.clear_ahead()

    def _build(self, batch: Batch) -> Transaction:
        end = self._end or self._stored_head()
        if batch.records and batch.records[0].slot != end[0] + 1:
            raise self._outrun(end[0], batch.records[0].slot)
        transaction = self._slots.build(batch.records, end, batch.position, batch.state, batch.emitted)
        pending = self._epochs.pending
        if not batch.records or pending is None:
            return transaction
        return msgspec.structs.replace(transaction, version=pending.encode())

    def _write_ahead(self, transaction: Transaction) -> None:
        if self._witness is None:
            return
        self._witness.write_ahead(
            msgspec.msgpack.encode(transaction),
            journal=self.identity,
            committed=transaction.last,
            chain=transaction.after.hex(),
            before=transaction.before.hex(),
            revision=self.registry.counted_under(),
            versions=hash_versions(self._epochs.all(), self.registry.restores()),
        )

    def _withdraw(self, transaction: Transaction) -> None:
        """Take a draw of this writer back that nobody saw, the database included: it is the draw of nothing."""
        self._attempt = None
        if self._witness is not None and transaction.entries:
            with suppress(StorageFailed):
                # First the record: one that names a draw without having it would close these slots.
                self._witness.update(committed=transaction.first - 1, chain=transaction.before.hex(), before="")
                self._witness.clear_ahead()

    def _store(self, transaction: Transaction, at: Hook) -> None:
        """Store charges, releases, position and a pending version; inside a transaction."""
        committed, chain = self._slots.end()
        if (committed, chain) == (transaction.last, transaction.after) and transaction.entries:
            return  # an earlier attempt came through
        if chain != transaction.before:  # each slot is the next one: a writer that lost the race discards the draw
            raise self._outrun(committed, transaction.first)
        if transaction.entries:
            self.registry.check_in_force(transaction.last)
        at("began")
        self._slots.append(transaction)
        at("slots stored")
        if transaction.entries:
            self._epochs.store_pending()
        at("version stored")
        self._slots.advance(transaction)
        at("position stored")

    def _has(self, transaction: Transaction) -> bool:
        """Return whether the slots of a transaction are stored as they are; the chain hash tells of all of them."""
        return bool(transaction.entries) and self.chain_at(transaction.last) == transaction.after

    def _outrun(self, committed: int, slot: int) -> WeventError:
        """Return the error for a slot that is not the next one: another writer was faster, or the journal was put back."""
        self.check_end()
        return JournalLocked(
            f"slot {committed + 1} to be the next",
            f"slot {slot}",
            "Another writer was faster: its release stands, this draw is discarded.",
            path=self._database.name,
        )

    def check_end(self) -> None:
        """Refuse to go on with a database that lacks what was committed here: it was put back, or a standby took over.

        Raises:
            StaleJournal: if it does. Released slots are charged, not drawn again, once the operator says which.
        """
        self._slots.clear_cache()
        if self._end is None or self.chain_at(self._end[0]) == self._end[1]:
            return
        raise StaleJournal(
            f"the database that committed slot {self._end[0]} here",
            "one that does not know it",
            "It was restored, or a standby took over that had not received everything: nothing more is released. Publish "
            f"with --released-through {self._end[0]}.",
            committed=self._stored_head()[0],
            released=self._end[0],
        )

    def releases(self, first: int = 1) -> Iterator[Record]:
        return self._slots.records(first)

    def chain_at(self, slot: int) -> bytes | None:
        return self._slots.chain_at(slot)

    def is_elsewhere(self, slot: int) -> bool:
        return self._slots.is_elsewhere(slot)

    def compact(self, keep: int) -> int:
        head = self.head()
        start, _ = self._slots.state()
        first = min(head.committed - max(keep, self._epochs.widest()) + 1, head.emitted + 1, start + 1)
        anchor = self.chain_at(first - 1)
        if first <= head.first or anchor is None:
            return head.first
        self._database.write(lambda: self._slots.drop_before(first, anchor), self._slots.clear_cache)
        return first

    # Epochs

    @property
    def is_new(self) -> bool:
        return self._storage.is_new

    def begin(
        self,
        terms: Terms,
        unsafe: tuple[str, ...] = (),
        changes: Changes = (),
        imported: bytes | None = None,
        asked: int | None = None,
    ) -> None:
        new = NewVersion(terms, unsafe, changes, imported)
        self._database.write(lambda: self._begin(new, asked), self._slots.clear_cache)
        self._storage.is_new = False
        if self._witness is not None:
            self._witness.reserve(terms.number_of_cells)

    def _begin(self, new: NewVersion, asked: int | None) -> None:
        """Keep terms, or have those of the next version at hand; inside a transaction."""
        if self.is_new:
            self._storage.create_tables()
        committed, _ = self._slots.end()
        if committed:
            self._epochs.begin_next(new, committed + 1, asked)
        else:
            started_over = self._started_over or STARTED_OVER in self._facts.unsafe
            self._facts.unsafe = (STARTED_OVER,) if started_over else ()
            self._epochs.begin_first(new)

    def epochs(self) -> list[Epoch]:
        return self._epochs.all()

    @property
    def epoch_waits(self) -> bool:
        return self._epochs.waits

    def imported(self) -> bytes:
        return stored_bytes(self._facts.get("imported") or b"")

    def note_imported(self, digest: bytes) -> None:
        self._database.write(lambda: self._note_imported(digest))

    def _note_imported(self, digest: bytes) -> None:
        self._facts["imported"] = digest
        if self.changes_lost:
            self._facts["changes lost"], self._facts["together"] = 0, 1
        self.registry.file_imported(())

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        self._database.write(lambda: self._facts.add_unsafe(unsafe))

    # Witness and notes

    @property
    def identity(self) -> str:
        return self._facts.text("id")

    @property
    def witness_name(self) -> str:
        return self._storage.witness_name

    def witnessed(self) -> WitnessRecord:
        return self._storage.seen() if self._witness is None else self._witness.before

    def update_witness(self) -> None:
        if self._witness is None:
            return
        self._storage.check_place()
        committed, chain = self._stored_head()
        self._witness.update(
            journal=self.identity,
            committed=committed,
            chain=chain.hex(),
            before="",
            revision=self.registry.counted_under(),
            versions=hash_versions(self._epochs.all_stored(), self.registry.restores()),
        )

    def _record_revision(self, revision: Revision) -> None:
        """Store a new state of the registry in the witness, so that a copy from before is noticed.

        A witness that shows no state yet is left as it is: a restore that was announced and not settled must not look like
        slots that were committed here.
        """
        assert self._witness is not None, "only the writer applies changes"
        self._storage.check_place()
        if self._witness.record.revision.number >= 0:
            self._witness.update(revision=revision)

    def take_over(self, batch: Batch, restore: Restore | None = None, *, changes_lost: bool = False) -> None:
        transaction = self._slots.build(batch.records, self._stored_head(), batch.position, batch.state, batch.emitted)
        self._database.write(
            lambda: self._take_over(transaction, restore, changes_lost),
            self._slots.clear_cache,
            lambda: self._has(transaction),
        )
        self._end = transaction.last, transaction.after

    def _take_over(self, transaction: Transaction, restore: Restore | None, changes_lost: bool) -> None:
        """Charge slots released elsewhere, store what they leave in doubt, and be the journal; inside a transaction."""
        self._store(transaction, no_hook)
        if changes_lost:
            self._facts["changes lost"] = 1
        record = self.witnessed()
        shown = record.revision.number if record.journal == self.identity else 0
        if restore is not None:
            self.registry.store_restore(restore, shown)
        elif changes_lost:
            self.registry.advance(shown)  # the same backup, put back again, lacks the same changes
        self._database.execute("UPDATE head SET copied = 0, emitted = committed")

    @property
    def changes_lost(self) -> bool:
        return bool(self._facts.number("changes lost"))

    def accept_lost_changes(self) -> None:
        self._database.write(lambda: self._facts.__setitem__("changes lost", 0))

    def read_note(self) -> bytes:
        return b"" if self._witness is None else self._witness.read_note()

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        if self._witness is not None:
            self._witness.write_note(data, force=force)

    # The journal itself

    @property
    def name(self) -> str:
        return self._database.name

    def files(self) -> list[Path]:
        return self._storage.files()

    def size(self) -> int:
        return self._storage.size()

    def writer(self) -> Writer | None:
        return self._storage.writer()

    def close(self) -> None:
        self._storage.close()

    def check(self) -> None:
        """Check everything that can be checked: pages, every kept slot, the registry and its queue.

        Raises:
            InvalidJournal: if something is not what was stored.
        """
        with self._database.readable():
            self._storage.check_pages()
            self._database.read(self._check_slots)
            self.load()
            self.registry.check()
            self.registry.queued()
            self._database.execute("SELECT * FROM facts").fetchall()  # text that is none

    def _check_slots(self) -> None:
        kept = deque(self._slots.records(1), maxlen=1)
        head = self.head()
        if (kept[0].slot if kept else head.first - 1) != head.committed:
            raise self._database.damaged()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def _stored_head(self) -> tuple[int, bytes]:
        """Return the last stored slot and its chain hash."""
        with self._database.readable():
            return self._slots.end()

    def _is_copied(self) -> bool:
        return bool(only_row(self._database, "SELECT copied FROM head")[0])
