"""The journal: charges, releases and registry of one stream, durable (spec 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wevent.errors import InvalidJournal, StaleJournal
from wevent.journal.contents import Batch, Head
from wevent.journal.contract import Journal, Registry
from wevent.journal.place import JournalPlace, NoJournal, PostgresPlace, journal_file, journal_place, psycopg_needed
from wevent.journal.record import Record, Shown
from wevent.journal.sqlite_journal import SqliteJournal
from wevent.journal.terms import Epoch, Terms

if TYPE_CHECKING:  # only databases are shared, with a package that files do without
    from wevent.journal.postgres_database import SharedJournal as SharedJournal

__all__ = [
    "Batch",
    "Epoch",
    "Head",
    "Journal",
    "JournalPlace",
    "PostgresPlace",
    "Record",
    "Registry",
    "Shown",
    "SqliteJournal",
    "Terms",
    "back_up",
    "examine_database",
    "is_begun",
    "journal_place",
    "open_journal",
    "share_journal",
]


def open_journal(
    place: str | JournalPlace,
    *,
    write: bool = False,
    start_over: bool = False,
    released_through: int | None = None,
    patience_s: float | None = None,
) -> Journal:
    """Open a journal: its releases, where it stands, its epochs and its registry.

    Args:
        place: the journal's file, or the address of its database: postgresql://…
        write: take the writer's lock; reading needs none, also while somebody publishes.
        start_over: make a new journal where another one was lost.
        released_through: what the operator says went out elsewhere, if the journal is to be settled with that.
        patience_s: how long a database that no longer answers is waited for; None: as long as a server takes to restart.

    Raises:
        InvalidJournal: if it is no journal, damaged or newer.
        JournalLocked: naming the writer.
        StaleJournal: if it is to be written, and its witness shows slots of a journal that is not here.
        StorageFailed: if it cannot be opened or written.
    """
    if not isinstance(place, (str, Path, PostgresPlace)):
        raise InvalidJournal("the path of a journal", type(place).__name__, "Give the name of its file.", path=None)
    place = journal_place(place)
    if isinstance(place, PostgresPlace):
        told = {"start_over": start_over, "released_through": released_through, "patience_s": patience_s}
        return _open_database(place, write=write, **told)
    return SqliteJournal(place, write=write, start_over=start_over, released_through=released_through)


def share_journal(place: PostgresPlace) -> SharedJournal:
    """What several replicas of a service share of a journal beside what `open_journal` opens.

    Raises:
        InvalidJournal: for a Python without what databases need.
    """
    with psycopg_needed(place):
        from wevent.journal.postgres_database import SharedJournal
    return SharedJournal(place)


def examine_database(place: PostgresPlace) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield checks whether a database can hold a journal; nothing in it is changed.

    Raises:
        InvalidJournal: for a Python without what databases need.
    """
    with psycopg_needed(place):
        from wevent.journal.postgres_database import examine
    return examine(place)


def _open_database(place: PostgresPlace, **how: Any) -> Journal:
    with psycopg_needed(place):
        from wevent.journal.postgres_journal import PostgresJournal
    return PostgresJournal(place, **how)


def is_begun(place: str | JournalPlace) -> bool:
    """Whether there is a journal at a place, which has terms or will be refused with what is wrong with it.

    Raises:
        StorageFailed: if a database cannot be asked.
    """
    place = journal_place(place)
    if isinstance(place, Path):
        return place.is_file() and place.stat().st_size > 0
    try:
        with open_journal(place) as journal:
            return not journal.is_new
    except (NoJournal, StaleJournal):  # none; or the one that was there is lost, as a file that is gone
        return False
    except InvalidJournal:
        return True


def back_up(place: str | JournalPlace, target: Path, *, replace: bool = False) -> int:
    """Copy a journal while it is in use; see `SqliteJournal.backup`. Returns its last slot.

    Raises:
        InvalidJournal: for a database, which has ways of its own.
    """
    with SqliteJournal(journal_file(place, "wevent backup")) as journal:
        return journal.backup(target, replace=replace)
