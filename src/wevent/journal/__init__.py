"""The journal: charges, releases and registry of one stream, durable (spec 10)."""

from wevent.journal.contract import Batch, Head, Journal, Registry
from wevent.journal.record import Record, Shown
from wevent.journal.sqlite.journal import SqliteJournal
from wevent.journal.terms import Epoch, Terms

__all__ = ["Batch", "Epoch", "Head", "Journal", "Record", "Registry", "Shown", "SqliteJournal", "Terms"]
