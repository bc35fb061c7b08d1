"""The journal: charges, releases and registry of one stream, durable (spec 10)."""

from pathlib import Path

from wevent.journal.contract import Batch, Head, Journal, Registry
from wevent.journal.record import Record, Shown
from wevent.journal.sqlite.journal import SqliteJournal
from wevent.journal.terms import Epoch, Terms

__all__ = ["Batch", "Epoch", "Head", "Journal", "Record", "Registry", "Shown", "SqliteJournal", "Terms", "open_journal"]


def open_journal(path: str | Path, *, write: bool = False) -> SqliteJournal:
    """Open a journal: its releases, where it stands, its epochs and its registry.

    Args:
        path: the journal's file.
        write: take the writer's lock; reading needs none, also while somebody publishes.

    Raises:
        InvalidJournal: if it is no journal, damaged or newer.
        JournalLocked: naming the writer.
    """
    return SqliteJournal(path, write=write)
