"""Witness of a journal: its last slot and the state of its registry, in the side file (spec 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from wevent.journal.contents import Marked, Revision
from wevent.journal.tables.epoch_table import EpochTable
from wevent.journal.tables.facts import Facts
from wevent.journal.tables.mark_file import MarkFile
from wevent.journal.tables.side_mark import Mark
from wevent.journal.terms import hash_versions
from wevent.journal.user_registry import UserRegistry

_NOTE, _NOTE_AT = 4096, 1 << 14  # of the side file: behind the keys


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

    def __init__(self, outside: Outside, epochs: EpochTable, registry: UserRegistry, facts: Facts) -> None:
        self._outside, self._epochs, self._registry, self._facts = outside, epochs, registry, facts
        self._lasting: dict[str, Any] = {}  # what a mark says beside slot and link; the same for many slots

    def forget(self) -> None:
        """Versions have changed: ask again."""
        self._lasting = {}

    def mark(self, end: Callable[[], tuple[int, bytes]], *, forced: bool) -> None:
        """See `wevent.journal.contract.Marks.mark`; `end` is the last slot that is stored, and the link there."""
        self._outside.check_place()
        side = self._outside.side
        if side is None:
            return
        committed, link = end()
        if not self._lasting:
            self._lasting = {
                "journal": self._facts.text("id"),
                "versions": hash_versions(self._epochs.all_stored(), self._registry.restores()),
            }
        revision = self._registry.counted_under()
        state = {"revision": revision.number, "chain": revision.chain, "applied": revision.number}
        side.mark(committed=committed, link=link.hex(), **state, **self._lasting)
        if forced:
            side.sync()

    def marked(self) -> Marked:
        """What the side file said before; a reader has none of its own, and reads it now."""
        side = self._outside.side
        mark = self._outside.seen() if side is None else side.before
        revision = Revision(mark.revision, mark.chain)
        return Marked(mark.journal, mark.committed, mark.link, revision, mark.versions, mark.applied)

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


def witness_revision(outside: Outside, revision: Revision) -> None:
    """Store a new state of the registry in the side file, on disk, before it is committed."""
    side = outside.side
    assert side is not None, "only the writer applies changes"
    outside.check_place()
    side.mark_revision(revision.number, revision.chain)
    side.sync()
