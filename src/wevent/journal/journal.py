"""The journal over a database: commit protocol and recovery, each in one function (spec 10)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from wevent.errors import InvalidJournal, JournalLocked, StaleJournal, StorageFailed, WeventError
from wevent.journal.database import Database, Facts, only_row, stored_bytes
from wevent.journal.record import Batch, Head, Hook, Loaded, Record, Revision, SlotLog, Transaction, Writer, no_hook
from wevent.journal.terms import (
    Epoch,
    NewVersion,
    Terms,
    changes_to_queue,
    class_history,
    decode_terms,
    encode_terms,
    hash_versions,
)
from wevent.journal.user_registry import Registry
from wevent.journal.witness import STARTED_OVER, WitnessFile, WitnessRecord
from wevent.people.classes import Restore
from wevent.people.membership import Change, Changes, Enrolment, check_id


class Journal(ABC):
    """Durable storage of one stream: exactly one release per slot, ever (spec 10). A context manager that closes it.

    Every subclass passes one suite: `tests/contract/journal`.

    Args:
        database: its tables.
        witness: the witness of the one writer; None for readers.
        is_new: whether there are no tables yet.
        started_over: whether the operator replaces a lost journal.
        released_through: last slot that another copy released, by the operator: a draw of these slots is not stored.

    Attributes:
        registry: the registry of users.
        witness_name: name of the witness in messages.
    """

    witness_name: str

    def __init__(
        self,
        database: Database,
        witness: WitnessFile | None,
        *,
        is_new: bool,
        started_over: bool = False,
        released_through: int | None = None,
    ) -> None:
        self._database, self._witness, self._is_new = database, witness, is_new
        self._started_over = started_over
        self._facts = Facts(self._database)
        self.registry = Registry(self._database, self._record_revision)
        self._slots = SlotLog(self._database, self._version)
        self._versions: dict[int, Epoch] = {}  # stored ones that were read
        self._pending: NewVersion | None = None  # version that waits for its first slot
        self._end: tuple[int, bytes] | None = None  # last slot stored by this writer, and its chain hash
        self._attempt: tuple[Batch, Transaction] | None = None  # a commit that has not succeeded yet
        self._is_sent = False  # whether the database may have received a part of it
        if self._witness is not None and not self.is_new:
            self._recover(released_through or 0)
            if started_over:
                self.note_unsafe((STARTED_OVER,))

    # The parts that differ: a file beside another one, or a schema and a folder

    @abstractmethod
    def check_intact(self) -> None:
        """Refuse to go on if something of the journal was taken away under its writer.

        Raises:
            StorageFailed: before anything more is stored or released.
        """

    @abstractmethod
    def files(self) -> list[Path]:
        """Return the files that belong to it: nothing else may be written there."""

    @abstractmethod
    def size(self) -> int:
        """Return the bytes of its tables."""

    @abstractmethod
    def writer(self) -> Writer | None:
        """Return the process that publishes into it now, None without one."""

    @abstractmethod
    def close(self) -> None:
        """Close it and let the next writer in; a journal that was never begun leaves nothing."""

    @abstractmethod
    def _read_witness(self) -> WitnessRecord:
        """Return the witness record as it is now."""

    @abstractmethod
    def _create_tables(self) -> None:
        """Create the tables; inside a transaction."""

    def _check_pages(self) -> None:  # noqa: B027
        """Refuse a file whose pages contradict each other; a server checks its own."""

    # Slots

    def load(self) -> Loaded:
        """Return the state to resume from.

        Raises:
            InvalidJournal: if state or slots are not those that were stored.
        """
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
            place, chain = msgspec.json.decode(position), stored_bytes(chain)
            version = self._version(number) if self._pending is None else self._pending.epoch
            return Head(committed, emitted, place, chain, version, bool(copied), first, self._facts.unsafe)

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """Store charges, releases and input position in one transaction: all of it or nothing.

        Nothing of the batch is public before this returns. A batch that failed may be committed again. The order of the
        steps is the guarantee (spec 10).

        Raises:
            JournalLocked: if another writer has committed one of the slots; the draw is to be discarded.
        """
        # 1. Nothing of the journal was taken away: what is stored will be found.
        self.check_intact()
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
            self._write(transaction, lambda: self._store(transaction, reach))
        except (JournalLocked, StaleJournal):  # the only faults after which no writer may store the draw
            if not self._is_sent:  # fence, slot and memberships are compared first
                self._withdraw(transaction)
            raise
        # 5. A version that waited for its first slot is active; ids that came with it stay nowhere else.
        if batch.records and self._pending is not None:
            self._writing.clear_ahead()
            self._wait(None)
        # 6. Disk space for the next draw, which is not made yet.
        if batch.records:
            self._writing.reserve(batch.records[-1].epoch.terms.number_of_cells)
        self._attempt = None

    def _recover(self, released_through: int) -> None:
        """Store the draw that a writer before wrote ahead and may not have stored: its slots have no other draw.

        Not into a backup, nor into a journal that lacks slots or memberships which that writer had, nor where the operator
        says that another copy released these slots. Such a journal is refused until the operator says what was released
        (`wevent.publishing.staleness`).
        """
        # 1. The witness is of this journal, and shows a draw that follows its last slot.
        record, head = self._writing.record, self._slots.end()
        self._end = head
        if record.journal == self.identity and record.committed <= head[0]:
            self._clear_version()
            return
        if record.journal != self.identity or not record.follows(head[1]):
            return
        # 2. The journal is no backup, has the memberships that were counted under, and nothing else is said.
        (copied,) = only_row(self._database, "SELECT copied FROM head")
        if copied or record.revision != self.registry.revision() or released_through > head[0]:
            return
        # 3. The draw is whole. If not, its slots count as released elsewhere.
        data = self._writing.read_ahead()
        if data is None:
            return
        try:
            transaction = msgspec.msgpack.decode(data, type=Transaction)
        except msgspec.MsgspecError:
            raise InvalidJournal(
                f"This version cannot read the write-ahead record in {self._writing.path}.",
                "A later version wrote it: upgrade wevent.",
                path=self.name,
            ) from None
        # 4. The draw is of these versions: a journal without slots takes others.
        if transaction.version is not None:
            self._wait(transaction.version)
        if record.versions != hash_versions(self.epochs(), self.registry.restores()):
            self._wait(None)
            return
        # 5. As if the commit of that writer had come through.
        self.check_intact()
        self._write(transaction, lambda: self._store(transaction, no_hook))
        self._clear_version()
        self._wait(None)

    def _clear_version(self) -> None:
        """Overwrite a stored draw that brought ids, as its own writer would have done."""
        data = self._writing.read_ahead()
        with suppress(msgspec.MsgspecError):
            if data is not None and msgspec.msgpack.decode(data, type=Transaction).version is not None:
                self._writing.clear_ahead()

    def _build(self, batch: Batch) -> Transaction:
        end = self._end or self._slots.end()
        if batch.records and batch.records[0].slot != end[0] + 1:
            raise self._outrun(end[0], batch.records[0].slot)
        transaction = self._slots.build(batch, end)
        if not batch.records or self._pending is None:
            return transaction
        version = msgspec.structs.replace(self._pending, held_after=self.registry.held_after)
        return msgspec.structs.replace(transaction, version=version)

    def _write_ahead(self, transaction: Transaction) -> None:
        self._writing.write_ahead(
            msgspec.msgpack.encode(transaction),
            journal=self.identity,
            committed=transaction.last,
            chain=transaction.after.hex(),
            before=transaction.before.hex(),
            revision=self.registry.counted_under(),
            versions=hash_versions(self.epochs(), self.registry.restores()),
        )

    def _withdraw(self, transaction: Transaction) -> None:
        """Remove a draw that the database refused unseen: another writer has the slot, or the journal lacks something."""
        self._attempt = None
        if transaction.entries:
            with suppress(StorageFailed):
                # First the record: one that names a draw without having it would close these slots.
                self._writing.update(committed=transaction.first - 1, chain=transaction.before.hex(), before="")
                self._writing.clear_ahead()

    def _write(self, transaction: Transaction, work: Callable[[], None]) -> None:
        """Do the work that stores a transaction, in one transaction of the database."""
        self._database.write(work, self._slots.clear_cache, lambda: self._has(transaction))
        self._end = transaction.last, transaction.after

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
        if transaction.entries and self._pending is not None:
            self._store_pending(self._pending)
        at("version stored")
        self._slots.advance(transaction)
        at("position stored")

    def _has(self, transaction: Transaction) -> bool:
        """Return whether the slots of a transaction are stored as they are; the chain hash covers all of them."""
        return bool(transaction.entries) and self.chain_at(transaction.last) == transaction.after

    def _outrun(self, committed: int, slot: int) -> WeventError:
        """Return the error for a slot that is not the next one: another writer was faster, or the journal was put back."""
        self.check_end()
        return JournalLocked(
            f"Another writer was faster: the next slot is {committed + 1}, not {slot}.",
            "The release of the other writer stands, this draw is discarded.",
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
            f"The database that committed slot {self._end[0]} here lacks it now: it was restored, or a standby took over "
            "that had not received everything. Nothing more is released.",
            f"Publish with --released-through {self._end[0]}.",
            committed=self._slots.end()[0],
            released=self._end[0],
        )

    def releases(self, first: int = 1) -> Iterator[Record]:
        """Yield the committed slots from `first` on, in order, as far as they are kept.

        Raises:
            InvalidJournal: at the first slot that is not what was stored.
        """
        return self._slots.records(first)

    def chain_at(self, slot: int) -> bytes | None:
        """Return the chain hash after a kept slot, or right before the first one; None elsewhere."""
        return self._slots.chain_at(slot)

    def is_elsewhere(self, slot: int) -> bool:
        """Return whether a slot is known to have been released by another copy of the journal."""
        return self._slots.is_elsewhere(slot)

    def compact(self, keep: int) -> int:
        """Drop all but the last `keep` slots, as far as nothing still needs them; return the first slot kept.

        Kept in any case: slots that are not yet emitted, slots after the stored state, and the largest window.
        """
        head = self.head()
        start, _ = self._slots.state()
        widest = max(epoch.terms.widest for epoch in self.epochs())
        first = min(head.committed - max(keep, widest) + 1, head.emitted + 1, start + 1)
        anchor = self.chain_at(first - 1)
        if first <= head.first or anchor is None:
            return head.first
        self._database.write(lambda: self._slots.drop_before(first, anchor), self._slots.clear_cache)
        return first

    # Configuration versions

    @property
    def is_new(self) -> bool:
        """True before the first configuration."""
        return self._is_new

    def begin(
        self,
        terms: Terms,
        unsafe: tuple[str, ...] = (),
        changes: Changes = (),
        imported: bytes | None = None,
        asked: int | None = None,
    ) -> None:
        """Begin a configuration version; the first slot that is committed under it pins it.

        A journal without slots stores it, in place of an earlier one without a slot: a failed start pins nothing. In a
        journal with slots, the transaction of its first slot stores it and everything that comes with it. Changes of the
        registry then take effect at the boundary after that slot. Requests that users make meanwhile wait for the same
        boundary and are not overridden: `wevent.journal.terms.changes_to_queue` has the rule.

        Args:
            terms: the settings to pin.
            unsafe: reasons why the guarantee is weaker.
            changes: changes of the registry that come with it.
            imported: the digest of the requirements file that the changes come from.
            asked: last request (`Registry.last_request`) that the changes take into account (default: the last one).

        Raises:
            InvalidMembership: for an id that no user can have.
        """
        self._database.write(lambda: self._begin(terms, unsafe, changes, imported, asked), self._slots.clear_cache)
        self._is_new = False
        self._writing.reserve(terms.number_of_cells)

    def _begin(
        self, terms: Terms, unsafe: tuple[str, ...], changes: Changes, imported: bytes | None, asked: int | None
    ) -> None:
        if self.is_new:
            self._create_tables()
        committed, _ = self._slots.end()
        if not committed:
            started_over = self._started_over or STARTED_OVER in self._facts.unsafe
            self._facts["unsafe"] = "[]"
            self._database.execute("DELETE FROM epochs")
            self._versions.clear()
            unsafe = (STARTED_OVER, *unsafe) if started_over else unsafe
            self._store_version(NewVersion(1, 1, encode_terms(terms), unsafe, [], imported), changes)
            return
        for change in changes:  # now: what fails with the first slot fails after its draw
            check_id(change.user)
        (stored,) = only_row(self._database, "SELECT count(*) FROM epochs")
        before, asked = self._facts.get("imported"), self.registry.last_request() if asked is None else asked
        self._wait(
            NewVersion(stored + 1, committed + 1, encode_terms(terms), unsafe, list(changes), imported, before, asked)
        )

    def _wait(self, version: NewVersion | None) -> None:
        """Keep a version, and the requests after it, until its first slot is stored; None ends the wait."""
        self._pending = version
        self.registry.held_after = None if version is None else version.held_after

    def _store_pending(self, new: NewVersion) -> None:
        """Store the version that waits for its first slot; inside the transaction of that slot."""
        changes, since, levels = new.changes, self.registry.pop_held_requests(), None
        if new.imported is not None and self._facts.get("imported") != new.imported_before:
            levels = {member.user: member.level for member in self.registry.members()}
            new = msgspec.structs.replace(new, imported=None)
        if since or levels is not None:
            changes = changes_to_queue(new.epoch.terms, changes, since, levels)
        self._store_version(new, changes, since)

    def _store_version(self, new: NewVersion, changes: Changes, since: Sequence[Change] = ()) -> None:
        """Store a version and its changes; `since` was requested after it began."""
        self._database.execute("INSERT INTO epochs VALUES (?, ?, ?)", (new.number, new.first, new.terms.decode()))
        self._facts.add_unsafe(new.unsafe)
        if new.first == 1 and isinstance(changes, Enrolment):  # the registry is empty: no need for a queue
            enrolled = self.registry.enrol(changes, 1, class_history([new.epoch], self.registry.restores()))
            changes = () if enrolled else changes
        if len(changes):
            self.registry.ask(changes)
        self._facts["together"] = int(self.registry.pending() > 0)
        if new.imported is not None:
            self._facts["imported"] = new.imported
            self._facts["changes lost"] = 0
            self.registry.file_imported(since)

    def _version(self, number: int) -> Epoch:
        """Return the version of a number, also if it waits for its first slot."""
        if self._pending is not None and self._pending.number == number:
            return self._pending.epoch
        if number not in self._versions:
            first, terms = only_row(self._database, "SELECT first, terms FROM epochs WHERE number = ?", (number,))
            self._versions[number] = Epoch(number, first, decode_terms(terms), terms.encode())
        return self._versions[number]

    def epochs(self) -> list[Epoch]:
        """Return every version, the first one first; the last may wait for its first slot."""
        return self._stored_versions() + ([] if self._pending is None else [self._pending.epoch])

    def _stored_versions(self) -> list[Epoch]:
        numbers = self._database.execute("SELECT number FROM epochs ORDER BY number").fetchall()
        return [self._version(number) for (number,) in numbers]

    @property
    def epoch_waits(self) -> bool:
        """True while a version is to be stored with its first slot."""
        return self._pending is not None

    def imported(self) -> bytes:
        """Return the digest of the requirements file that was imported last, empty if none was."""
        return self._facts.get("imported") or b""

    def note_imported(self, digest: bytes) -> None:
        """Store which requirements file was imported: every registered user is in it, and none joined by request."""
        self._database.write(lambda: self._note_imported(digest))

    def _note_imported(self, digest: bytes) -> None:
        self._facts["imported"] = digest
        if self.changes_lost:
            self._facts["changes lost"], self._facts["together"] = 0, 1
        self.registry.file_imported(())

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        """Store reasons why the guarantee is weaker; they never go away."""
        self._database.write(lambda: self._facts.add_unsafe(unsafe))

    # Witness and notes

    @property
    def identity(self) -> str:
        """The journal's own id; copies share it."""
        return self._facts.text("id")

    def witnessed(self) -> WitnessRecord:
        """Return the witness record; a writer gets the one from before this journal was opened."""
        return self._read_witness() if self._witness is None else self._witness.before

    def update_witness(self) -> None:
        """Write the end of the journal, its registry and its versions into the witness; durable on return.

        A commit does it by itself. This is for changes of the registry without a slot, and for restores.
        """
        self.check_intact()
        committed, chain = self._slots.end()
        self._writing.update(
            journal=self.identity,
            committed=committed,
            chain=chain.hex(),
            before="",
            revision=self.registry.counted_under(),
            versions=hash_versions(self._stored_versions(), self.registry.restores()),
        )

    def _record_revision(self, revision: Revision) -> None:
        """Store a new state of the registry in the witness, so that a copy from before is noticed.

        A witness that shows no state yet is left as it is: a restore that was announced and not settled must not look like
        slots that were committed here.
        """
        self.check_intact()
        if self._writing.record.revision.number >= 0:
            self._writing.update(revision=revision)

    def take_over(self, batch: Batch, restore: Restore | None = None, *, changes_lost: bool = False) -> None:
        """Make a backup the journal, after the operator stated the last released slot. One transaction.

        Args:
            batch: the slots released elsewhere, charged; none if nothing was.
            restore: doubts that these slots leave.
            changes_lost: whether changes of the registry may have been lost; see `changes_lost`.
        """
        transaction = self._slots.build(batch, self._slots.end())
        self._write(transaction, lambda: self._take_over(transaction, restore, changes_lost))

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
        """True if changes of the registry may have been lost with slots released elsewhere.

        Users who left, were erased or chose a stricter level would be counted as before. So no slot is published until the
        operator imports the registry again, which clears this, or accepts the loss (`accept_lost_changes`).
        """
        return bool(self._facts.number("changes lost"))

    def accept_lost_changes(self) -> None:
        """Store that the operator accepts the loss."""
        self._database.write(lambda: self._facts.__setitem__("changes lost", 0))

    def read_note(self) -> bytes:
        """Return the last note of an output, padded; anything after a crash. A user of it checks it."""
        return b"" if self._witness is None else self._witness.read_note()

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        """Write a note beside the journal, if it is open for writing; forced to disk or not."""
        if self._witness is not None:
            self._witness.write_note(data, force=force)

    # The journal itself

    @property
    def name(self) -> str:
        return self._database.name

    def check(self) -> None:
        """Check everything that can be checked: pages, every kept slot, the registry and its queue.

        Raises:
            InvalidJournal: if something is not what was stored.
        """
        with self._database.readable():
            self._check_pages()
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

    @property
    def _writing(self) -> WitnessFile:
        assert self._witness is not None, "only the writer writes"
        return self._witness
