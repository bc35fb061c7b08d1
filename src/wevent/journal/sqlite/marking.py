"""What a journal file says of itself in its side file, and what that proves later (spec 10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wevent.journal.contents import Marked
from wevent.journal.sqlite.epoch_table import EpochTable
from wevent.journal.sqlite.evidence import Revision
from wevent.journal.sqlite.facts import Facts
from wevent.journal.sqlite.file import JournalFile
from wevent.journal.sqlite.side_mark import lock_path, read_mark
from wevent.journal.sqlite.slot_table import SlotTable
from wevent.journal.sqlite.sqlite_registry import SqliteRegistry
from wevent.people.holdout import Restore

_NOTE, _NOTE_AT = 4096, 1 << 14  # of the side file: behind the keys, before the changes


class Marking:
    """The side file of a journal that is open.

    Args:
        file: the journal's file and its lock.
        slots: its slots.
        epochs: its epochs.
        registry: its registry.
    """

    def __init__(self, file: JournalFile, slots: SlotTable, epochs: EpochTable, registry: SqliteRegistry) -> None:
        self._file, self._slots, self._epochs, self._registry = file, slots, epochs, registry
        self._facts = Facts(file.database)
        self._lasting: dict[str, Any] = {}  # what a mark says beside slot and link; the same for many slots

    def forget(self) -> None:
        """Epochs or the incarnation have changed: ask again."""
        self._lasting = {}

    def mark(self, *, forced: bool) -> None:
        """See `wevent.journal.contract.Marks.mark`."""
        self._file.check_place()
        lock = self._file.lock
        if lock is None:
            return
        if not self._lasting:
            identity, incarnation = str(self._facts["id"]), str(self._facts["incarnation"])
            lock.changes.continue_with(identity, incarnation, self._registry.revision())
            self._lasting = {
                "journal": identity,
                "incarnation": incarnation,
                "epochs": len(self._epochs.all()),
                "widest": self._epochs.widest(),
            }
        committed, link = self._slots.end()
        lock.mark(committed=committed, link=link.hex(), **self._lasting)
        if forced:
            lock.sync()

    def marked(self) -> Marked:
        """What the side file said before; a reader has no lock, and reads it now."""
        lock = self._file.lock
        mark = read_mark(lock_path(self._file.path)) if lock is None else lock.before
        return Marked(mark.journal, mark.committed, mark.link)

    def proof(self, through: int) -> Restore | None:
        """What the side file proves about memberships through a slot that another copy released; None: nothing.

        It proves only through its own slot: older than that, both may have been rolled back.
        """
        lock, incarnation = self._file.lock, str(self._facts["incarnation"])
        if lock is None:
            return None
        mark = lock.before
        if mark.committed != through or mark.incarnation != incarnation:
            return None
        changed = lock.changes.changed_since(str(self._facts["id"]), incarnation, self._registry.revision())
        if changed is None:
            return None
        return Restore(through, mark.widest, mark.committed, mark.epochs == len(self._epochs.all()), changed)

    def sync(self) -> None:
        """Force the mark to disk: what is about to be dropped can no longer be compared with an older one."""
        if self._file.lock is not None:
            self._file.lock.sync()

    def read_note(self) -> bytes:
        """See `wevent.journal.contract.Notes.read_note`."""
        return self._file.read_side(_NOTE, _NOTE_AT)

    def write_note(self, data: bytes, *, force: bool) -> None:
        """See `wevent.journal.contract.Notes.write_note`."""
        if self._file.lock is not None and len(data) <= _NOTE:
            self._file.write_side(data.ljust(_NOTE), _NOTE_AT)
            if force:
                self._file.lock.sync()


class ChangeNotes:
    """Evidence of changes, written to the side file before anybody can rely on them."""

    def __init__(self, file: JournalFile, facts: Facts) -> None:
        self._file, self._facts = file, facts

    def __call__(self, buckets: Iterable[int] | None, before: Revision, after: Revision) -> None:
        """Memberships of these buckets (None: of any) change from one revision to another."""
        lock = self._file.lock
        assert lock is not None, "only the holder of the writer's lock puts changes in force"
        self._file.check_place()
        lock.changes.continue_with(str(self._facts["id"]), str(self._facts["incarnation"]), before)
        lock.changes.note(buckets, after)
