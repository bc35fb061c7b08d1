"""What the tables of a journal are kept in: a database that speaks portable SQL, and the little that is not portable."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec

from wevent.errors import InvalidJournal

Result = TypeVar("Result")
ALL = (1 << 63) - 1
"""What a LIMIT that limits nothing says."""

UNREADABLE = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError, struct.error, zlib.error,
    msgspec.MsgspecError,
)  # fmt: skip
"""What breaks over stored bytes that mean nothing."""


class FoundRows(Protocol):
    """What a query found; read once, before anything else is asked."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]:
        """Every row."""

    def fetchone(self) -> Any:
        """The next row, None if there is none."""


class Dialect(Protocol):
    """What SQL has no portable words for."""

    def fact(self, value: str | int | bytes) -> Any:
        """A value of the table `facts` as it is stored; what is read is taken apart by `Facts`."""

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        """A query of `members`, or its deletion, for the rows whose id is one of these."""

    def member_columns(self, after: Sequence[Any]) -> tuple[bytes, bytes, list[str]] | None:
        """The next rows of `members` behind a key (user, first, window, nano), in this order; None behind the last one.

        Ids between NULs; levels between NULs (none: an empty one); and between blanks each of window, nano-epsilons, first,
        and last (−1: held).
        """

    def add_members(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of `members`. In a transaction."""


class Database(Dialect, Protocol):
    """A connection to the tables of one journal.

    Queries are written with `?` for values. Those that change something are made inside `write` only.
    """

    @property
    def name(self) -> str:
        """What the journal is called in messages."""

    @property
    def largest_value(self) -> int:
        """How many bytes a value can have."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> FoundRows:
        """Run one query."""

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run one query for each of many rows."""

    def write(
        self,
        work: Callable[[], Result],
        undone: Callable[[], None] | None = None,
        stands: Callable[[], bool] | None = None,
    ) -> Result:
        """Do some work in one write transaction, all of it or nothing; within the one that is open, if one is.

        No other write transaction of the journal, by whomever, overlaps it. Where a connection can be lost, the work may
        be done again from its beginning: it does the same again, and draws nothing (spec 10).

        Args:
            work: what is to be done.
            undone: called when what was done is not stored: nothing that was read or written counts.
            stands: whether what the work stores is there, by what it is; asked where a commit may have come through
                although another writer has the journal now.

        Raises:
            JournalLocked: if another writer has the journal: nothing is stored.
            StorageFailed: if it cannot be stored.
        """

    def read(self, work: Callable[[], Result]) -> Result:
        """Do some reading in one consistent view, whoever commits meanwhile."""

    def readable(self) -> AbstractContextManager[None]:
        """The database's errors as ours: a full disk, no rights; stored bytes that mean nothing are damage."""

    def damaged(self) -> InvalidJournal:
        """What is said about a journal that cannot be trusted."""


def stored_bytes(value: Any) -> bytes:
    """Bytes as they are stored.

    Raises:
        TypeError: for anything else, which is damage; of a number `bytes` would make as many zeros.
    """
    return memoryview(value).tobytes()


def maybe_row(database: Database, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of a query, None if there is none."""
    row: tuple[Any, ...] | None = database.execute(query, values).fetchone()
    return row


def only_row(database: Database, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
    """The row of a query that always has one.

    Raises:
        InvalidJournal: if it has none: something was removed.
    """
    row = maybe_row(database, query, values)
    if row is None:
        raise database.damaged()
    return row
