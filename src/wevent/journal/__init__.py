"""The journal: charges, releases and registry of one stream, durable (spec 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wevent.errors import InvalidJournal, StaleJournal
from wevent.journal.address import JournalAddress, NoJournal, PostgresAddress, parse_address, psycopg_needed
from wevent.journal.backup import back_up
from wevent.journal.journal import Journal
from wevent.journal.record import Batch, Head, Record, Shown
from wevent.journal.sqlite import SqliteJournal
from wevent.journal.terms import Epoch, Terms
from wevent.journal.user_registry import Registry

if TYPE_CHECKING:  # only databases are shared, with a package that files do without
    from wevent.journal.postgres import SharedJournal as SharedJournal

__all__ = [
    "Batch",
    "Epoch",
    "Head",
    "Journal",
    "JournalAddress",
    "PostgresAddress",
    "Record",
    "Registry",
    "Shown",
    "SqliteJournal",
    "Terms",
    "back_up",
    "examine_database",
    "is_begun",
    "open_journal",
    "parse_address",
    "share_journal",
]


def open_journal(
    place: str | JournalAddress,
    *,
    write: bool = False,
    start_over: bool = False,
    released_through: int | None = None,
    patience_s: float | None = None,
) -> Journal:
    """Open a journal.

    Args:
        place: the journal's file, or the address of its database: postgresql://…
        write: take the writer's lock; reading needs none, also while a publisher runs.
        start_over: make a new journal where another one was lost.
        released_through: last slot that another copy released, by the operator.
        patience_s: limit for reconnecting to a database; None: as long as a server takes to restart.

    Raises:
        InvalidJournal: if it is no journal, damaged or newer.
        JournalLocked: naming the writer.
        StaleJournal: if it is to be written, and its witness shows slots of a journal that is not here.
        StorageFailed: if it cannot be opened or written.
    """
    if not isinstance(place, (str, Path, PostgresAddress)):
        raise InvalidJournal(f"{type(place).__name__} is not the path of a journal.", "Name its file.", path=None)
    place = parse_address(place)
    if not isinstance(place, PostgresAddress):
        return SqliteJournal(place, write=write, start_over=start_over, released_through=released_through)
    with psycopg_needed(place):
        from wevent.journal.postgres import PostgresJournal
    return PostgresJournal(
        place, write=write, start_over=start_over, released_through=released_through, patience_s=patience_s
    )


def share_journal(place: PostgresAddress) -> SharedJournal:
    """Return the parts of a journal that replicas of a service share, beside the journal itself.

    Raises:
        InvalidJournal: for a Python without psycopg.
    """
    with psycopg_needed(place):
        from wevent.journal.postgres import SharedJournal
    return SharedJournal(place)


def examine_database(place: PostgresAddress) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield checks whether a database can hold a journal; nothing in it is changed.

    Raises:
        InvalidJournal: for a Python without psycopg.
    """
    with psycopg_needed(place):
        from wevent.journal.postgres import examine
    return examine(place)


def is_begun(place: str | JournalAddress) -> bool:
    """Return whether there is a journal, with settings or damaged.

    Raises:
        StorageFailed: if a database cannot be asked.
    """
    place = parse_address(place)
    if isinstance(place, Path):
        return place.is_file() and place.stat().st_size > 0
    try:
        with open_journal(place) as journal:
            return not journal.is_new
    except (NoJournal, StaleJournal):  # none; or the one that was there is lost, as a file that is gone
        return False
    except InvalidJournal:
        return True
