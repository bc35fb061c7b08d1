"""A journal in memory, for tests: the whole contract in plain Python, so that the seam is proven by two implementations."""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.support.memory_registry import MemoryRegistry, StoredRegistry
from wevent.errors import JournalLocked
from wevent.journal import Journal
from wevent.journal.record import Batch, Head, Hook, Loaded, Record, Revision, Writer, chain_hash, no_hook
from wevent.journal.terms import Epoch, Terms, changes_to_queue, hash_versions
from wevent.journal.witness import NOTE_SIZE, WitnessRecord
from wevent.people.classes import Restore
from wevent.people.membership import Change, Changes


@dataclass
class Stored:
    """Everything that a journal stores; a transaction works on a copy of it."""

    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    registry: StoredRegistry = field(default_factory=StoredRegistry)
    epochs: tuple[Epoch, ...] = ()
    records: dict[int, Record] = field(default_factory=dict)
    links: dict[int, bytes] = field(default_factory=dict)  # after a slot; of the one before the first kept too
    committed: int = 0
    emitted: int = 0
    first: int = 1
    position: Any = None
    state: tuple[int, bytes] | None = None
    unsafe: tuple[str, ...] = ()
    imported: bytes = b""
    changes_lost: bool = False

    def __post_init__(self) -> None:
        self.links = self.links or {0: hashlib.sha256(self.identity.encode()).digest()}

    def copied(self) -> Stored:
        """Another one that is equal; what cannot change is shared."""
        other = copy.copy(self)
        other.records, other.links, other.registry = dict(self.records), dict(self.links), copy.copy(self.registry)
        other.registry.histories = dict(self.registry.histories)
        return other


@dataclass
class Place:
    """Where a journal lives: what outlives the process."""

    stored: Stored | None = None
    record: WitnessRecord = field(default_factory=WitnessRecord)
    note: bytes = b""
    writer: Writer | None = None


class Planned(NamedTuple):
    """A version that begins, and what comes with it."""

    epoch: Epoch
    unsafe: tuple[str, ...]
    changes: Sequence[Change]
    imported: bytes | None


class MemoryJournal(Journal):
    """Another implementation of every method of `Journal`.

    Args:
        place: where it lives.
        write: be the writer.
    """

    registry: MemoryRegistry
    witness_name = "the witness"

    def __init__(self, place: Place, *, write: bool = False) -> None:
        if write and place.writer is not None:
            raise JournalLocked("to be the only writer", "another one", "Stop it first.", path="memory", holder={})
        self._place, self._is_writer = place, write
        self._before = place.record
        self._planned: Planned | None = None
        self._imported_before = b""
        self._working: Stored | None = None  # inside a transaction
        self.registry = MemoryRegistry(
            lambda: self._stored.registry, self._transaction, self._record_revision, lambda: len(self._stored.epochs)
        )
        if write:
            place.writer = Writer(1, "memory", "now")

    @property
    def _stored(self) -> Stored:
        stored = self._place.stored if self._working is None else self._working
        assert stored is not None, "not begun"
        return stored

    @contextmanager
    def _transaction(self) -> Iterator[Stored]:
        if self._working is not None:
            yield self._working
            return
        self._working = self._stored.copied()
        try:
            yield self._working
            self._place.stored = self._working
        finally:
            self._working = None

    # Slots

    def load(self) -> Loaded:
        head, state = self.head(), self._stored.state
        start = 0 if state is None else state[0]
        since = [record for record in self.releases() if record.slot > start]
        last = self._stored.records.get(head.committed)
        return Loaded(head, None if state is None else state[1], since, last)

    def head(self) -> Head:
        stored = self._stored
        epoch = stored.epochs[-1] if self._planned is None else self._planned.epoch
        link, copied = stored.links[stored.committed], stored.registry.copied
        return Head(stored.committed, stored.emitted, stored.position, link, epoch, copied, stored.first, stored.unsafe)

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        if batch.records:
            at("written ahead")  # nothing outlives the process, so the draw is made again
        with self._transaction():
            self._append(batch, at)
        if batch.records:
            self._planned = self.registry.before = None
            self.update_witness()

    def _append(self, batch: Batch, at: Hook) -> None:
        stored = self._stored
        if batch.records and batch.records[0].slot != stored.committed + 1:
            raise JournalLocked("the next slot", "another", "This draw is discarded.", path="memory", holder={})
        at("began")
        for record in batch.records:
            payload = msgspec.msgpack.encode(record.entry())
            stored.links[record.slot] = chain_hash(stored.links[record.slot - 1], payload)
            stored.records[record.slot] = record
            stored.committed = record.slot
        at("slots stored")
        if batch.records and self._planned is not None:
            since = self._stored.registry.queue[self.registry.before :]
            self._store_epoch(self._settled(self._planned), since)
        at("version stored")
        stored.emitted = max(stored.emitted, batch.emitted)
        stored.position = stored.position if batch.position is None else batch.position
        if batch.state is not None:
            stored.state = stored.committed, batch.state
        at("position stored")

    def releases(self, first: int = 1) -> Iterator[Record]:
        stored = self._stored
        return (stored.records[slot] for slot in range(max(first, stored.first), stored.committed + 1))

    def chain_at(self, slot: int) -> bytes | None:
        return self._stored.links.get(slot)

    def is_elsewhere(self, slot: int) -> bool:
        record = self._stored.records.get(slot)
        return record is not None and record.kind == "elsewhere"

    def compact(self, keep: int) -> int:
        with self._transaction() as stored:
            state = 0 if stored.state is None else stored.state[0]
            first = min(stored.committed - max(keep, self._widest()) + 1, stored.emitted + 1, state + 1)
            for slot in range(stored.first, max(first, stored.first)):
                del stored.records[slot], stored.links[slot - 1]
            stored.first = max(first, stored.first)
            return stored.first

    # Epochs

    @property
    def is_new(self) -> bool:
        return self._place.stored is None

    def begin(
        self,
        terms: Terms,
        unsafe: tuple[str, ...] = (),
        changes: Changes = (),
        imported: bytes | None = None,
        asked: int | None = None,
    ) -> None:
        before = self._place.stored
        stored = Stored() if before is None else before
        if stored.committed:
            epoch = Epoch(len(stored.epochs) + 1, stored.committed + 1, terms)
            self._planned = Planned(epoch, unsafe, tuple(changes), imported)
            self._imported_before = stored.imported
            self.registry.before = self.registry.pending() if asked is None else asked
            return
        try:
            self._place.stored = stored
            with self._transaction() as working:
                working.epochs, working.unsafe = (), ()
                self._store_epoch(Planned(Epoch(1, 1, terms), unsafe, tuple(changes), imported))
        except BaseException:
            self._place.stored = before
            raise

    def _settled(self, coming: Planned) -> Planned:
        words = None
        if coming.imported is not None and self._stored.imported != self._imported_before:
            words = {member.user: member.level for member in self.registry.members()}
            coming = coming._replace(imported=None)
        registry = self._stored.registry
        since = registry.queue[self.registry.before :]
        registry.queue = registry.queue[: self.registry.before]
        return coming._replace(changes=changes_to_queue(coming.epoch.terms, coming.changes, since, words))

    def _store_epoch(self, coming: Planned, since: tuple[Change, ...] = ()) -> None:
        self._stored.epochs += (coming.epoch,)
        self.note_unsafe(coming.unsafe)
        self.registry.ask(coming.changes)
        self._stored.registry.together = bool(self._stored.registry.queue)
        if coming.imported is not None:
            self._stored.imported, self._stored.changes_lost = coming.imported, False
            self.registry.file_imported(since)

    def epochs(self) -> list[Epoch]:
        return [*self._stored.epochs, *([] if self._planned is None else [self._planned.epoch])]

    @property
    def epoch_waits(self) -> bool:
        return self._planned is not None

    def imported(self) -> bytes:
        return self._stored.imported

    def note_imported(self, digest: bytes) -> None:
        with self._transaction() as stored:
            stored.registry.together |= stored.changes_lost
            stored.imported, stored.changes_lost = digest, False
            self.registry.file_imported(())

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        with self._transaction() as stored:
            stored.unsafe += tuple(reason for reason in unsafe if reason not in stored.unsafe)

    def _widest(self) -> int:
        return max(epoch.terms.widest for epoch in self.epochs())

    # Witness and notes

    @property
    def identity(self) -> str:
        return self._stored.identity

    def update_witness(self) -> None:
        if self._is_writer:
            stored = self._stored
            self._place.record = WitnessRecord(
                journal=stored.identity,
                committed=stored.committed,
                chain=stored.links[stored.committed].hex(),
                revision=stored.registry.revision,
                versions=hash_versions(stored.epochs, stored.registry.restores),
            )

    def witnessed(self) -> WitnessRecord:
        return self._before if self._is_writer else self._place.record

    def take_over(self, batch: Batch, restore: Restore | None = None, *, changes_lost: bool = False) -> None:
        with self._transaction() as stored:
            self._append(batch, no_hook)
            record = self.witnessed()
            shown = record.revision.number if record.journal == self.identity else 0
            if restore is not None:
                self.registry.store_restore(restore, shown)
            elif changes_lost:
                self.registry.advance(shown)
            stored.changes_lost |= changes_lost
            stored.registry.copied, stored.emitted = False, stored.committed

    @property
    def changes_lost(self) -> bool:
        return self._stored.changes_lost

    def accept_lost_changes(self) -> None:
        with self._transaction() as stored:
            stored.changes_lost = False

    def read_note(self) -> bytes:
        return self._place.note if self._is_writer else b""

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        if self._is_writer and len(data) <= NOTE_SIZE:
            self._place.note = data.ljust(NOTE_SIZE)

    def _record_revision(self, revision: Revision) -> None:
        if self._place.record.revision.number >= 0:
            self._place.record = msgspec.structs.replace(self._place.record, revision=revision)

    # The journal itself

    @property
    def name(self) -> str:
        return "a journal in memory"

    def check_intact(self) -> None:
        pass

    def _create_tables(self) -> None:
        pass

    def _read_witness(self) -> WitnessRecord:
        return self._place.record

    def files(self) -> list[Path]:
        return []

    def size(self) -> int:
        return 0

    def writer(self) -> Writer | None:
        return self._place.writer

    def close(self) -> None:
        if self._is_writer:
            self._place.writer, self._is_writer = None, False

    def __enter__(self) -> MemoryJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
