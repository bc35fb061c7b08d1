"""The tables of a journal in an SQLite file: see `wevent.journal.database.Database`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from wevent.errors import InvalidJournal
from wevent.journal.database import FoundRows, Result
from wevent.journal.sqlite_connection import clear_errors, damaged, readable, snapshot, transaction

_AT_ONCE = 1 << 16
_COLUMNS = f"""
SELECT CAST(group_concat(iif(typeof(user) = 'text', user, '?'), char(0)) AS BLOB),
  CAST(group_concat(coalesce(level, ''), char(0)) AS BLOB),
  group_concat(window, ' '), group_concat(nano, ' '), group_concat(first, ' '), group_concat(coalesce(last, -1), ' ')
FROM (
  SELECT * FROM members WHERE (user, first, window, nano) > (?, ?, ?, ?) ORDER BY user, first, window, nano
  LIMIT {_AT_ONCE}
)
"""  # a fifth of the cost of a Python tuple for each row


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

    def fact(self, value: str | int | bytes) -> Any:
        """See `Dialect.fact`: a value of any kind is stored as what it is."""
        return value

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        asked = msgspec.json.encode(list(users)).decode()
        return self.execute(f"{select} WHERE user IN (SELECT value FROM json_each(?))", (asked,))

    def member_columns(self, after: Sequence[Any]) -> tuple[bytes, bytes, list[str]] | None:
        """See `Dialect.member_columns`."""
        users, levels, *numbers = self.execute(_COLUMNS, after).fetchone()
        return None if users is None else (users, levels, numbers)

    def add_members(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """See `Dialect.add_members`."""
        self.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?, ?)", rows)
