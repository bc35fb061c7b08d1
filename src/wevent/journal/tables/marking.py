"""What a journal says of itself in its side file, and what that proves later (spec 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from wevent.journal.contents import Marked
from wevent.journal.tables.epoch_table import EpochTable
from wevent.journal.tables.evidence import Revision
from wevent.journal.tables.facts import Facts
from wevent.journal.tables.mark_file import MarkFile
from wevent.journal.tables.side_mark import Mark
from wevent.journal.tables.table_registry import TableRegistry
from wevent.people.holdout import Restore

_NOTE, _NOTE_AT = 4096, 1 << 14  # of the side file: behind the keys, before the changes


class Outside(Protocol):
    """What is kept outside the tables of a journal that is open."""

    @property
    def side(self) -> MarkFile | None:
        """The writer's side file; None for readers."""

    def seen(self) -> Mark:
        """What is known outside now, for readers."""

    def check_place(self) -> None:
        """Refuse to go on when something of the journal was taken away under its writer.

        Raises:
            StorageFailed: before anything more is stored or goes out.
        """


class Marking:
    """The side file of a journal that is open.

    Args:
        outside: what is kept outside.
        epochs: its epochs.
        registry: its registry.
        facts: what it knows of itself.
    """

    def __init__(self, outside: Outside, epochs: EpochTable, registry: TableRegistry, facts: Facts) -> None:
        self._outside, self._epochs, self._registry, self._facts = outside, epochs, registry, facts
        self._lasting: dict[str, Any] = {}  # what a mark says beside slot and link; the same for many slots

    def forget(self) -> None:
        """Epochs or the incarnation have changed: ask again."""
        self._lasting = {}

    def mark(self, end: Callable[[], tuple[int, bytes]], *, forced: bool) -> None:
        """See `wevent.journal.contract.Marks.mark`; `end` is the last slot that is stored, and the link there."""
        self._outside.check_place()
        side = self._outside.side
        if side is None:
            return
        if not self._lasting:
            identity, incarnation = self._facts.text("id"), self._facts.text("incarnation")
            side.changes.continue_with(identity, incarnation, self._registry.revision())
            self._lasting = {
                "journal": identity,
                "incarnation": incarnation,
                "epochs": len(self._epochs.all()),
                "widest": self._epochs.widest(),
            }
        committed, link = end()
        side.mark(committed=committed, link=link.hex(), **self._lasting)
        if forced:
            side.sync()

    def marked(self) -> Marked:
        """What the side file said before; a reader has none of its own, and reads it now."""
        side = self._outside.side
        mark = self._outside.seen() if side is None else side.before
        return Marked(mark.journal, mark.committed, mark.link)

    def proof(self, through: int) -> Restore | None:
        """What the side file proves about memberships through a slot that another copy released; None: nothing.

        It proves only through its own slot: older than that, both may have been rolled back.
        """
        side, incarnation = self._outside.side, self._facts.text("incarnation")
        if side is None:
            return None
        mark = side.before
        if mark.committed != through or mark.incarnation != incarnation:
            return None
        changed = side.changes.changed_since(self._facts.text("id"), incarnation, self._registry.revision())
        if changed is None:
            return None
        return Restore(through, mark.widest, mark.committed, mark.epochs == len(self._epochs.all()), changed)

    def sync(self) -> None:
        """Force the mark to disk: what is about to be dropped can no longer be compared with an older one."""
        if self._outside.side is not None:
            self._outside.side.sync()

    def read_note(self) -> bytes:
        """See `wevent.journal.contract.Notes.read_note`."""
        side = self._outside.side
        return b"" if side is None else side.read(_NOTE, _NOTE_AT)

    def write_note(self, data: bytes, *, force: bool) -> None:
        """See `wevent.journal.contract.Notes.write_note`."""
        side = self._outside.side
        if side is not None and len(data) <= _NOTE:
            side.overwrite(data.ljust(_NOTE), _NOTE_AT)
            if force:
                side.sync()


class ChangeNotes:
    """Evidence of changes, written to the side file before anybody can rely on them."""

    def __init__(self, outside: Outside, facts: Facts) -> None:
        self._outside, self._facts = outside, facts

    def __call__(self, buckets: Iterable[int] | None, before: Revision, after: Revision) -> None:
        """Memberships of these buckets (None: of any) change from one revision to another."""
        side = self._outside.side
        assert side is not None, "only the writer puts changes in force"
        self._outside.check_place()
        side.changes.continue_with(self._facts.text("id"), self._facts.text("incarnation"), before)
        side.changes.note(buckets, after)
