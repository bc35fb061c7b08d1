"""A journal in an SQLite file, with a side file beside it."""

from wevent.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
