"""The journal: charges, releases and registry of one stream, durable (spec 10)."""

from pathlib import Path

from wevent.errors import InvalidJournal
from wevent.journal.contents import Batch, Head
from wevent.journal.contract import Journal, Registry
from wevent.journal.record import Record, Shown
from wevent.journal.sqlite.journal import SqliteJournal
from wevent.journal.terms import Epoch, Terms

__all__ = [
    "Batch",
    "Epoch",
    "Head",
    "Journal",
    "Record",
    "Registry",
    "Shown",
    "SqliteJournal",
    "Terms",
    "back_up",
    "open_journal",
]


def open_journal(path: str | Path, *, write: bool = False, start_over: bool = False) -> Journal:
    """Open a journal: its releases, where it stands, its epochs and its registry.

    Args:
        path: the journal's file.
        write: take the writer's lock; reading needs none, also while somebody publishes.
        start_over: make a new journal where another one was lost.

    Raises:
        InvalidJournal: if it is no journal, damaged or newer.
        JournalLocked: naming the writer.
        StaleJournal: if it is to be written, and its mark knows slots of a journal that is not here.
        StorageFailed: if it cannot be opened or written.
    """
    if not isinstance(path, (str, Path)):
        raise InvalidJournal("the path of a journal", type(path).__name__, "Give the name of its file.", path=None)
    return SqliteJournal(path, write=write, start_over=start_over)


def back_up(path: str | Path, target: Path, *, replace: bool = False) -> int:
    """Copy a journal while it is in use; see `SqliteJournal.backup`. Returns its last slot."""
    with SqliteJournal(path) as journal:
        return journal.backup(target, replace=replace)
