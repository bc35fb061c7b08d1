"""A journal opened for its audit: the rows of its tables, in one consistent view, whoever writes to it.

All that is shared with the journal itself is how a file or a database is opened, which understands nothing of it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Protocol

import apsw

from wevent.errors import InvalidJournal
from wevent.journal.place import PostgresPlace, psycopg_needed
from wevent.journal.sqlite.reading import open_for_reading

_APPLICATION, _FORMAT = 0x77657674, 1
_BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, zlib.error, struct.error)
_ONE_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout TO 0"


class OpenedJournal(Protocol):
    """The tables of a journal."""

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        """What a query finds, with `?` for values; other queries may be made before all of it is read."""

    def __hash__(self) -> int: ...


class _File:
    """The tables of a journal file."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        return iter(self._connection.execute(query, values))


@contextmanager
def opened_file(path: Path) -> Iterator[OpenedJournal]:
    """A journal file.

    Raises:
        InvalidJournal: if it is none, or cannot be read as one.
    """
    if not path.is_file():
        _refuse(path, "no such file")
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                _refuse(path, "another kind of file")
        connection = open_for_reading(path)
        try:
            connection.execute("PRAGMA query_only = ON")
            if connection.pragma("application_id") != _APPLICATION:
                _refuse(path, "another kind of file")
            if connection.pragma("user_version") != _FORMAT:
                _refuse(path, "one from a newer wevent")
            connection.execute("BEGIN")
            yield _File(connection)
        finally:
            connection.close()
    except InvalidJournal:
        raise
    except (apsw.Error, *_BROKEN) as error:
        _refuse(path, f"one that is damaged ({type(error).__name__})")


class _Schema:
    """The tables of a journal in PostgreSQL; `connection` is in a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursors = 0

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        self._cursors += 1
        with self._connection.cursor(f"audit{self._cursors}") as cursor:  # on the server: a journal may be long
            cursor.itersize = 4096
            cursor.execute(query.replace("?", "%s"), values or None)
            yield from cursor


@contextmanager
def opened_database(place: PostgresPlace) -> Iterator[OpenedJournal]:
    """A journal in PostgreSQL.

    Raises:
        InvalidJournal: if there is none, or it cannot be read as one.
        StorageFailed: if the database does not answer.
    """
    with psycopg_needed(place):
        import psycopg

        from wevent.journal.connection import connect, translated
    connection = connect(place, "audit")
    try:
        connection.execute(_ONE_VIEW, prepare=False)
        journal = _Schema(connection)
        found = list(journal.rows("SELECT value FROM facts WHERE name = 'format'"))
        if not found or int(found[0][0]) != _FORMAT:
            _refuse(place, "one from a newer wevent")
        yield journal
    except InvalidJournal:
        raise
    except psycopg.Error as error:
        raise translated(error, place) from None
    except _BROKEN as error:
        _refuse(place, f"one that is damaged ({type(error).__name__})")
    finally:
        connection.close()


def _refuse(place: Path | PostgresPlace, received: str) -> NoReturn:
    raise InvalidJournal(
        "a journal that can be read",
        f"{received} ({place})",
        "Check the path; if it is the right one, restore a backup of it.",
        path=str(place),
    ) from None
