"""The tables of a journal in an SQLite file: see `wevent.journal.tables.database.Database`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from wevent.errors import InvalidJournal
from wevent.journal.sqlite_connection import clear_errors, damaged, readable, snapshot, transaction
from wevent.journal.tables.database import FoundRows, Kind, Result
from wevent.journal.tables.fingerprint import ROW_TEXT

_AT_ONCE = 1 << 16
_TEXTS = f"SELECT CAST({ROW_TEXT} iif(typeof(user) = 'text', user, '?') AS BLOB) FROM members"
_COLUMNS = (  # ids between NULs and numbers between blanks: read at a fifth of the cost of a row each
    "SELECT group_concat(replace(user, char(0), printf('%300s', '')), char(0)),"  # with a NUL: as long as no event's id
    " group_concat(window || ' ' || nano, ' '), max(user) FROM"
    f" (SELECT user, window, nano FROM members WHERE last IS NULL AND user > ? ORDER BY user LIMIT {_AT_ONCE})"
)
_ENROL = """
WITH kinds AS MATERIALIZED (
  SELECT key + 1 AS mark, value ->> 0 AS window, value ->> 1 AS nano, value ->> 2 AS level FROM json_each(?2)
)
INSERT INTO members SELECT substr(asked.value, 2), window, nano, level, ?3, NULL
FROM json_each(?1) AS asked CROSS JOIN kinds ON mark = unicode(asked.value)
"""  # the first character of each text says which kind its user is of


class SqliteDatabase:
    """A connection to a journal file.

    Args:
        connection: SQLite's.
        path: the file, for messages.
    """

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self.connection, self._path = connection, path
        self.execute: Callable[..., FoundRows] = (
            connection.execute
        )  # without a call in between: most of them take microseconds
        self.executemany: Callable[..., object] = connection.executemany

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    @property
    def largest_value(self) -> int:
        """SQLite's limit of a row."""
        return self.connection.limit(apsw.SQLITE_LIMIT_LENGTH)

    def write(
        self,
        work: Callable[[], Result],
        undone: Callable[[], None] | None = None,
        stands: Callable[[], bool] | None = None,
    ) -> Result:
        """See `Database.write`; what was committed is known here, so nothing is done twice."""
        try:
            with clear_errors(self._path), transaction(self.connection):
                return work()
        except BaseException:
            if undone is not None:
                undone()
            raise

    def read(self, work: Callable[[], Result]) -> Result:
        with snapshot(self.connection):
            return work()

    def clear_errors(self) -> AbstractContextManager[None]:
        return clear_errors(self._path)

    def readable(self) -> AbstractContextManager[None]:
        return readable(self._path)

    def damaged(self) -> InvalidJournal:
        return damaged(self._path)

    def insert(self, table: str, data: bytes) -> int:
        self.connection.execute(f"INSERT INTO {table} (data) VALUES (?)", (data,))
        return self.connection.last_insert_rowid()

    def fact(self, value: str | int | bytes) -> Any:
        """See `Dialect.fact`: a value of any kind is stored as what it is."""
        return value

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        asked = msgspec.json.encode(list(users)).decode()
        return self.execute(f"{select} WHERE user IN (SELECT value FROM json_each(?))", (asked,))

    def member_texts(self) -> Iterator[list[bytes]]:
        texts = iter(self.execute(_TEXTS))
        while part := list(itertools.islice(texts, _AT_ONCE)):
            yield [text for (text,) in part]

    def member_columns(self, after: str) -> tuple[bytes, str, str | None]:
        names, numbers, last = self.execute(_COLUMNS, (after,)).fetchone()
        return (b"", "", None) if last is None else (names.encode(), numbers, last)

    def enrol(self, users: list[str], each: list[int], kinds: list[Kind], slot: int) -> None:
        marked = list(map(operator.add, map(chr, map((1).__add__, each)), users))
        values = msgspec.json.encode(marked).decode(), msgspec.json.encode(kinds).decode(), slot
        self.connection.execute(_ENROL, values)
