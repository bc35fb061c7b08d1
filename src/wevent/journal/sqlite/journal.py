"""The journal in one SQLite file: write-ahead log, every commit forced to disk, one writer (spec 10)."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from wevent.errors import JournalLocked, WeventError
from wevent.journal.contract import Batch, Head, Hook, Loaded, no_hook
from wevent.journal.rebuild import holdout_of
from wevent.journal.record import KINDS, Record, encode_charges
from wevent.journal.sqlite import schema
from wevent.journal.sqlite.chain import SHOWN_ANCHOR, SlotChain
from wevent.journal.sqlite.copying import copy_journal
from wevent.journal.sqlite.evidence import Revision
from wevent.journal.sqlite.file import JournalFile
from wevent.journal.sqlite.lock import WriterLock
from wevent.journal.sqlite.lost import STARTED_OVER
from wevent.journal.sqlite.sealed import PendingKeys
from wevent.journal.sqlite.shelf import Shelf
from wevent.journal.sqlite.sqlite_registry import SqliteRegistry
from wevent.journal.sqlite.storage import (
    check_pages,
    clear_errors,
    damaged,
    maybe_row,
    only_row,
    readable,
    transaction,
)
from wevent.journal.terms import Epoch, Terms, decode_terms, encode_terms
from wevent.people.holdout import Restore
from wevent.people.membership import Changes, Enrolment

_NOTE, _NOTE_AT = 4096, 1 << 14  # of the side file: behind the keys, before the changes


class _Planned(NamedTuple):
    """An epoch that is stored with its first slot, and what comes with it."""

    epoch: Epoch
    unsafe: tuple[str, ...]
    changes: Changes
    imported: bytes | None


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
        self._database, self.lock = self._file.database, self._file.lock
        self._started_over = start_over
        self._keys = PendingKeys(self._file.read_side, self._file.write_side)
        self.registry = SqliteRegistry(self._database, self.path, self._note_changes)
        self._epochs: dict[int, Epoch] = {}
        self._planned: _Planned | None = None
        self._shelf = Shelf(self._database)
        self._chain = SlotChain(self._database, self.path, self._shelf, self._epoch)
        self._standing: dict[str, Any] = {}  # what a mark says beside slot and link; the same for many slots
        if self._file.migrated:
            self._doubt_older_restores()
        if start_over and not self.is_new:
            self.note_unsafe((STARTED_OVER,))

    @property
    def is_new(self) -> bool:
        """Whether it has no terms yet."""
        return self._file.is_new

    def begin(
        self,
        terms: Terms,
        unsafe: tuple[str, ...] = (),
        changes: Changes = (),
        imported: bytes | None = None,
    ) -> None:
        """Put terms in force for the slots to come; the first slot that is committed under them pins them.

        A journal without slots keeps them, and takes others until its first slot: a failed start binds nobody. An epoch
        of a journal with slots is stored, with everything that comes with it, in the transaction of its first slot;
        changes of the registry then take effect at the boundary after it.

        Args:
            terms: what to pin.
            unsafe: what weakens the promise.
            changes: what the registry is to be told with it.
            imported: the digest of the requirements file that the changes come from.
        """
        with clear_errors(self.path), self._transaction():
            if self.is_new:
                self._lay_out()
            slots, number = only_row(self._database, "SELECT committed, (SELECT count(*) FROM epochs) + 1 FROM head")
            planned = _Planned(Epoch(number, slots + 1, terms), unsafe, changes, imported)
            if not slots:
                self._database.execute("DELETE FROM epochs")
                self._put("unsafe", _json([STARTED_OVER] if self._started_over or self._is_started_over() else []))
                self._epochs.clear()
                planned = planned._replace(epoch=Epoch(1, 1, terms))
                self._store(planned)
        self._planned = planned if slots else None
        self._file.is_new = False
        self._standing = {}

    def load(self) -> Loaded:
        """See `Journal.load`; checks the hash chain of the slots since the stored state.

        Raises:
            InvalidJournal: if state or slots are not what was stored.
        """
        with readable(self.path), self._snapshot():
            head = self.head()
            row = maybe_row(self._database, "SELECT slot, data, digest FROM states ORDER BY slot DESC LIMIT 1")
            start, state = 0, None
            if row is not None:
                start, state = row[0], row[1]
                if hashlib.sha256(state).digest() != row[2]:
                    raise damaged(self.path)
            since, last = [], None
            for record in self.releases(max(start, head.first)):  # each is confirmed by its link
                last = record
                if record.slot > start:
                    since.append(record)
            if (last.slot if last else 0) != head.committed or self._link(head.committed) != head.digest:
                raise damaged(self.path)
            return Loaded(head, state, since, last, self._pending())

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Journal.commit`. Nothing of the batch is public before this returns."""
        self._file.check_place()
        pending = self._keys.seal(batch.pending)
        with clear_errors(self.path), self._transaction():
            self._append(batch._replace(pending=pending), at)
        self._keys.committed()
        if batch.records:
            self._planned = None

    def _append(self, batch: Batch, at: Hook) -> None:
        """Charges, releases and position of consecutive slots; inside a transaction."""
        committed, link = only_row(self._database, "SELECT committed, link FROM head")
        if batch.records and committed != batch.records[0].slot - 1:
            raise JournalLocked(
                f"slot {committed + 1} to be the next",
                f"slot {batch.records[0].slot}",
                "Another writer was faster: its release stands, this draw is discarded.",
                path=str(self.path),
            )
        at("began")
        rows = []
        for record in batch.records:
            link = record.digest(link)
            rows.append(self._row(record, link))
        if batch.records and self._planned is not None:
            self._store(self._planned)
        at("charges stored")
        self._database.executemany("INSERT INTO slots VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
        at("releases stored")
        self._advance(batch, link)
        at("position stored")

    def releases(self, first: int = 1) -> Iterator[Record]:
        """See `Journal.releases`; each slot is checked against the hash chain before it is given out.

        Raises:
            InvalidJournal: at the first slot that is not what was stored.
        """
        return self._chain.records(first)

    def head(self) -> Head:
        """Where the journal stands."""
        with readable(self.path):
            row = only_row(
                self._database,
                "SELECT committed, emitted, position, link, copied, first, (SELECT max(number) FROM epochs) FROM head",
            )
            if row[6] is None:
                raise damaged(self.path)
            committed, emitted, position, link, copied, first, epoch = row
            unsafe = tuple(msgspec.json.decode(self._fact("unsafe")))
            place = msgspec.json.decode(position)
            terms = self._epoch(epoch) if self._planned is None else self._planned.epoch
            return Head(committed, emitted, place, link, terms, bool(copied), first, unsafe)

    def epochs(self) -> list[Epoch]:
        """Every epoch, the first one first; the last may wait for its first slot."""
        numbers = self._database.execute("SELECT number FROM epochs ORDER BY number")
        return [self._epoch(row[0]) for row in numbers] + ([] if self._planned is None else [self._planned.epoch])

    @property
    def epoch_waits(self) -> bool:
        """Whether an epoch is to be stored with its first slot."""
        return self._planned is not None

    @property
    def identity(self) -> str:
        """The journal's own id; copies share it."""
        return str(self._fact("id"))

    @property
    def salt(self) -> bytes:
        """The key of digests of ids; it stays in the journal and its copies."""
        return bytes(self._fact("salt"))

    def link_at(self, slot: int) -> bytes | None:
        """The hash chain's link at a committed slot that is still kept, or right before the first one that is."""
        return self._chain.link_at(slot)

    def is_elsewhere(self, slot: int) -> bool:
        """Whether a slot is known to have been released by another copy of the journal."""
        row = maybe_row(self._database, "SELECT kind FROM slots WHERE slot = ?", (slot,))
        return row is not None and KINDS[row[0]] == "elsewhere"

    def settle(self, batch: Batch, restore: Restore | None = None) -> int:
        """A backup was told through which slot releases went out: from now on it is the journal. One transaction.

        Args:
            batch: the slots released elsewhere, charged; none if nothing was.
            restore: what is known of memberships in these slots; needed if there are any.

        Returns:
            How many members have to wait.
        """
        with clear_errors(self.path), self._transaction():
            self._append(batch, no_hook)
            held = 0
            if restore is not None:
                held = self.registry.settle(restore, holdout_of(self.epochs(), self.registry.restores()))
            self._database.execute("UPDATE head SET copied = 0, emitted = committed")
            self._put("incarnation", secrets.token_hex(16))  # other copies' evidence is not about this one
        self._standing = {}
        return held

    def imported(self) -> bytes:
        """The digest of the requirements file that was imported last, empty if none was."""
        row = maybe_row(self._database, "SELECT value FROM facts WHERE name = 'imported'")
        return b"" if row is None else bytes(row[0])

    def note_imported(self, digest: bytes) -> None:
        """Write down which requirements file was imported."""
        with clear_errors(self.path), self._transaction():
            self._put("imported", digest)

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        """Write down what weakens the promise; it never goes away."""
        with clear_errors(self.path), self._transaction():
            self._add_unsafe(unsafe)

    def compact(self, keep: int) -> int:
        """Drop all but the last `keep` slots, as far as nothing still needs them; returns the first slot kept.

        Kept in any case: what is not yet emitted, what the stored state is replayed from, and the largest window.
        """
        head = self.head()
        widest = max(epoch.terms.widest for epoch in self.epochs())
        state = only_row(self._database, "SELECT coalesce(max(slot), 0) FROM states")[0]
        first = min(head.committed - max(keep, widest) + 1, head.emitted + 1, int(state) + 1)
        anchor = self.link_at(first - 1)
        if first <= head.first or anchor is None:
            return head.first
        if self.lock is not None:
            self.lock.sync()  # what is dropped can no longer be compared with an older mark
        with clear_errors(self.path), self._transaction():
            run = self._database.execute
            if (shown := self._chain.keep_shown(first)) is not None:
                self._put(SHOWN_ANCHOR, shown)
            run("UPDATE head SET first = ?, anchor = ?", (first, anchor))
            run("DELETE FROM slots WHERE slot < ?", (first,))
            run("DELETE FROM histograms WHERE slot < (SELECT min(shown) FROM slots WHERE shown > 0)")
            run("DELETE FROM charges WHERE id NOT IN (SELECT probe FROM slots UNION SELECT publication FROM slots)")
            run("DELETE FROM populations WHERE id NOT IN (SELECT population FROM slots)")
        self._shelf.forget()
        return first

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

    def read_note(self) -> bytes:
        """See `Journal.read_note`."""
        return self._file.read_side(_NOTE, _NOTE_AT)

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        """See `Journal.write_note`."""
        if self.lock is not None and len(data) <= _NOTE:
            self._file.write_side(data.ljust(_NOTE), _NOTE_AT)
            if force:
                self.lock.sync()

    def mark(self) -> None:
        """Tell the side file how far the journal is, before anything of it goes out."""
        self._file.check_place()
        if self.lock is None:
            return
        if not self._standing:
            epochs, incarnation = self.epochs(), str(self._fact("incarnation"))
            self.lock.changes.continue_with(self.identity, incarnation, self.registry.revision())
            self._standing = {
                "journal": self.identity,
                "incarnation": incarnation,
                "epochs": len(epochs),
                "widest": max(epoch.terms.widest for epoch in epochs),
            }
        committed, link = only_row(self._database, "SELECT committed, link FROM head")
        self.lock.mark(committed=committed, link=link.hex(), **self._standing)

    def proof(self, through: int) -> Restore | None:
        """What the side file proves about memberships through a slot that another copy released; None: nothing.

        It proves only through its own slot: older than that, both may have been rolled back.
        """
        mark = None if self.lock is None else self.lock.before
        incarnation = str(self._fact("incarnation"))
        if self.lock is None or mark is None or mark.committed != through or mark.incarnation != incarnation:
            return None
        changed = self.lock.changes.changed_since(self.identity, incarnation, self.registry.revision())
        if changed is None:
            return None
        return Restore(through, mark.widest, mark.committed, mark.epochs == len(self.epochs()), changed)

    def close(self) -> None:
        """Close the file and let the next writer in; a journal that was never begun leaves none."""
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

    def check(self) -> None:
        """Everything that can be checked: pages, every slot that is kept, the registry and its queue.

        Raises:
            InvalidJournal: if something is not what was stored.
        """
        with readable(self.path):
            check_pages(self._database, self.path)
            with self._snapshot():
                kept = deque(self.releases(1), maxlen=1)
                head = self.head()
                if (kept[0].slot if kept else head.first - 1) != head.committed:
                    raise damaged(self.path)
            self.load()
            self.registry.check()
            self.registry.queued()
            self._database.execute("SELECT * FROM facts").fetchall()  # text that is none

    def _note_changes(self, buckets: Iterable[int] | None, before: Revision, after: Revision) -> None:
        assert self.lock is not None, "only the holder of the writer's lock puts changes in force"
        self._file.check_place()
        self.lock.changes.continue_with(self.identity, str(self._fact("incarnation")), before)
        self.lock.changes.note(buckets, after)

    def _doubt_older_restores(self) -> None:
        """The first format proves nothing of slots released elsewhere, nor who was counted as a stranger: all wait."""
        with clear_errors(self.path), self._transaction():
            committed, elsewhere = only_row(
                self._database,
                "SELECT committed, coalesce((SELECT max(slot) FROM slots WHERE kind = ?), 0) FROM head",
                (KINDS.index("elsewhere"),),
            )
            holdout = holdout_of(self.epochs(), ())
            doubtful = elsewhere > committed - holdout.widest or holdout.as_stranger(committed + 1)
            if committed and doubtful:
                self.registry.settle(Restore(committed, holdout.widest, 0, False, None), holdout)

    def _lay_out(self) -> None:
        """The tables of a new journal, and what it will always know of itself."""
        schema.create(self._database)
        identity = uuid.uuid4().hex
        genesis = hashlib.sha256(b"wevent journal" + identity.encode()).digest()
        self._database.execute("INSERT INTO head VALUES (1, 0, 0, 'null', ?, 1, ?, 0, x'')", (genesis, genesis))
        self._put("id", identity)
        self._put("salt", secrets.token_bytes(32))
        self._put("created", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        self._put("unsafe", "[]")
        schema.begin_registry(self._database, 1)

    def _is_started_over(self) -> bool:
        """Whether this journal replaced a lost one and has no slot yet."""
        slots = only_row(self._database, "SELECT committed FROM head")[0]
        return slots == 0 and STARTED_OVER in msgspec.json.decode(self._fact("unsafe"))

    def _store(self, planned: _Planned) -> None:
        """An epoch and what comes with it, inside an open transaction."""
        epoch = planned.epoch
        terms = encode_terms(epoch.terms).decode()
        self._database.execute("INSERT INTO epochs VALUES (?, ?, ?)", (epoch.number, epoch.first, terms))
        self._add_unsafe(planned.unsafe)
        changes = planned.changes
        if epoch.first == 1 and isinstance(changes, Enrolment):  # the registry is empty: no need to queue everybody
            changes = () if self.registry.enrol(changes, 1, holdout_of([epoch], self.registry.restores())) else changes
        if len(changes):
            self.registry.ask(changes)
        if planned.imported is not None:
            self._put("imported", planned.imported)

    def _row(self, record: Record, link: bytes) -> tuple[Any, ...]:
        """One slot as it is stored; charges, populations and histograms that occurred lately are not stored again."""
        shown = record.shown
        if shown is not None and shown.slot == record.slot:
            self._database.execute("INSERT INTO histograms VALUES (?, ?)", (record.slot, shown.data))
        return (
            record.slot,
            KINDS.index(record.kind),
            record.epoch.number,
            self._shelf.store("populations", record.group.data),
            self._shelf.store("charges", encode_charges(record.probe)),
            self._shelf.store("charges", encode_charges(record.publication)),
            record.threshold,
            record.dissimilarity,
            0 if shown is None else shown.slot,
            link,
        )

    def _pending(self) -> bytes | None:
        """What is pending; only the writer has its key."""
        if self.lock is None:
            return b""
        sealed = only_row(self._database, "SELECT pending FROM head")[0]
        return self._keys.unseal(sealed if isinstance(sealed, bytes) else b"damaged")

    def _advance(self, batch: Batch, link: bytes) -> None:
        """Move the head: input position, end of the chain; and the state, when one comes with the batch."""
        last = batch.records[-1].slot if batch.records else None
        self._database.execute(
            "UPDATE head SET committed = coalesce(?, committed), emitted = max(emitted, ?), link = ?,"
            " position = coalesce(?, position), pending = ?",
            (last, batch.emitted, link, None if batch.position is None else _json(batch.position), batch.pending),
        )
        if batch.state is not None:
            digest = hashlib.sha256(batch.state).digest()
            self._database.execute("DELETE FROM states")
            self._database.execute("INSERT INTO states SELECT committed, ?, ? FROM head", (batch.state, digest))

    def _epoch(self, number: int) -> Epoch:
        if number not in self._epochs:
            first, terms = only_row(self._database, "SELECT first, terms FROM epochs WHERE number = ?", (number,))
            self._epochs[number] = Epoch(number, first, decode_terms(terms), terms.encode())
        return self._epochs[number]

    def _link(self, slot: int) -> bytes:
        """The chain's link after a slot; before the first kept one it is the anchor."""
        link = self.link_at(slot)
        if link is None:
            link = bytes(only_row(self._database, "SELECT anchor FROM head")[0])
        return link

    def _fact(self, name: str) -> Any:
        return only_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))[0]

    def _put(self, name: str, value: Any) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _add_unsafe(self, unsafe: tuple[str, ...]) -> None:
        known = msgspec.json.decode(self._fact("unsafe"))
        self._put("unsafe", _json([*known, *(one for one in unsafe if one not in known)]))

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """One consistent view over several queries, whoever commits meanwhile."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("ROLLBACK")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with transaction(self._database):
                yield
        except BaseException:
            self._shelf.forget()  # rows of the lost transaction are not there
            raise


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
