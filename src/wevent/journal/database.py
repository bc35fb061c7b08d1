"""Tables of a journal: portable SQL, the few parts that are not portable, and named values."""

from __future__ import annotations

import hashlib
import re
import secrets
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec

from wevent.errors import InvalidJournal, StorageFailed

Result = TypeVar("Result")
ALL = (1 << 63) - 1
"""Value of a LIMIT that limits nothing."""

UPSERT = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
UNREADABLE = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error, zlib.error, msgspec.MsgspecError,
)  # fmt: skip
"""Errors that stored bytes without a meaning cause."""


def out_of_memory(name: str) -> StorageFailed:
    """Return the error for a journal that does not fit the memory of the process."""
    return StorageFailed(
        "There is too little memory to read the journal.", "Give the process more memory.", path=name, passing=True
    )


class FoundRows(Protocol):
    """Result of a query; read once, before the next query."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]: ...

    def fetchone(self) -> Any: ...


class Database(Protocol):
    """A connection to the tables of one journal.

    Queries have `?` for values. Changes are made inside `write` only.
    """

    @property
    def name(self) -> str:
        """The name of the journal in messages."""

    @property
    def largest_value(self) -> int:
        """The largest number of bytes of a value."""

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

        No other write transaction of the journal overlaps it. Where a connection can be lost, the work may be done again
        from its beginning: it does the same again, and draws nothing (spec 10).

        Args:
            work: called inside the transaction.
            undone: called when the work is not stored: everything that was read or written is void.
            stands: returns whether the work is stored; called where a commit may have come through although another
                writer has the journal now.

        Raises:
            JournalLocked: if another writer has the journal: nothing is stored.
            StorageFailed: if it cannot be stored.
        """

    def read(self, work: Callable[[], Result]) -> Result:
        """Do some reading in one consistent view."""

    def readable(self) -> AbstractContextManager[None]:
        """Translate errors of the database; report stored bytes without a meaning as damage."""

    def damaged(self) -> InvalidJournal:
        """Return the error for a journal that cannot be trusted."""

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        """Run a query or a deletion of `members` for the rows of these ids."""

    def member_columns(self, after: Sequence[Any]) -> tuple[bytes, bytes, list[str]] | None:
        """Return the next rows of `members` behind a key (user, first, window, nano), in this order; None at the end.

        Ids are separated by NULs, levels too (none: empty). Windows, nano-epsilons, first and last slots (−1: held) are
        separated by blanks.
        """

    def add_members(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of `members`; inside a transaction."""


def stored_bytes(value: Any) -> bytes:
    """Return stored bytes.

    Raises:
        TypeError: for anything else, which is damage. `bytes` would make zeros of a number.
    """
    return memoryview(value).tobytes()


def maybe_row(database: Database, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """Return the first row of a query, None if there is none."""
    row: tuple[Any, ...] | None = database.execute(query, values).fetchone()
    return row


def only_row(database: Database, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Return the row of a query that always has one.

    Raises:
        InvalidJournal: if there is none: a row was removed.
    """
    row = maybe_row(database, query, values)
    if row is None:
        raise database.damaged()
    return row


class Facts:
    """Named values that describe a journal, stored as bytes; changed inside the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> bytes | None:
        """Return a value as it is stored, None without one."""
        row = maybe_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))
        if row is not None and not isinstance(row[0], bytes):
            raise self._database.damaged()
        return None if row is None else row[0]

    def data(self, name: str) -> bytes:
        value = self.get(name)
        if value is None:
            raise self._database.damaged()
        return value

    def text(self, name: str) -> str:
        try:
            return self.data(name).decode()
        except UnicodeDecodeError:
            raise self._database.damaged() from None

    def number(self, name: str) -> int:
        try:
            return int(self.data(name))
        except ValueError:
            raise self._database.damaged() from None

    def __setitem__(self, name: str, value: str | int | bytes) -> None:
        self._database.execute(UPSERT, (name, value if isinstance(value, bytes) else str(value).encode()))

    @property
    def unsafe(self) -> tuple[str, ...]:
        """Reasons why the guarantee is weaker."""
        return tuple(msgspec.json.decode(self.text("unsafe")))

    def add_unsafe(self, reasons: tuple[str, ...]) -> None:
        self["unsafe"] = msgspec.json.encode(list(dict.fromkeys(self.unsafe + reasons))).decode()


def begin_rows(database: Database) -> None:
    """Insert the rows of a new journal into its empty tables; inside a transaction."""
    identity = uuid.uuid4().hex
    genesis = hashlib.sha256(b"wevent journal" + identity.encode()).digest()
    database.execute("INSERT INTO head VALUES (1, 0, 0, 'null', ?, 1, ?, 0)", (genesis, genesis))
    facts = Facts(database)
    facts["id"] = identity
    facts["salt"] = secrets.token_bytes(32)
    facts["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts["unsafe"] = "[]"
    facts["revision"] = 0
    facts["registry chain"] = bytes(32).hex()
    facts["changes lost"] = 0
    facts["together"] = 0
    facts["registry"] = bytes(8)


FORMAT = 1

SQLITE_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE epochs (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, terms TEXT NOT NULL);
CREATE TABLE blobs (hash BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE slots (slot INTEGER PRIMARY KEY, payload BLOB NOT NULL, chain BLOB NOT NULL);
CREATE TABLE state (slot INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE head (
  "only" INTEGER PRIMARY KEY CHECK ("only" = 1),
  committed INTEGER NOT NULL,
  emitted INTEGER NOT NULL,
  position TEXT NOT NULL,
  chain BLOB NOT NULL,
  first INTEGER NOT NULL,
  anchor BLOB NOT NULL,
  copied INTEGER NOT NULL
);
CREATE TABLE changes (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE members (
  "user" TEXT NOT NULL, "window" INTEGER NOT NULL, nano INTEGER NOT NULL, level TEXT, first INTEGER NOT NULL,
  last INTEGER,
  PRIMARY KEY ("user", first, "window", nano)
) WITHOUT ROWID;
CREATE INDEX members_ended ON members (last) WHERE last IS NOT NULL;
CREATE TABLE restores (
  slot INTEGER PRIMARY KEY, silent_through INTEGER NOT NULL, doubted TEXT NOT NULL
);
"""

_POSTGRES_WORDS = {"INTEGER": "bigint", "BLOB": "bytea", "TEXT": 'text COLLATE "C"', " WITHOUT ROWID": ""}
POSTGRES_TABLES = (
    re.sub("|".join(_POSTGRES_WORDS), lambda found: _POSTGRES_WORDS[found[0]], SQLITE_TABLES)
    + """
ALTER TABLE blobs ALTER data SET STORAGE EXTERNAL;
ALTER TABLE changes ALTER id ADD GENERATED BY DEFAULT AS IDENTITY;
"""
)
TABLE_NAMES = set(re.findall(r"CREATE TABLE (\w+)", SQLITE_TABLES))


def newer_format(found: int, place: object) -> InvalidJournal:
    """Return the error for a journal of a later version."""
    problem = f"The journal has format {found}, from a newer wevent; this one reads format {FORMAT} ({place})."
    return InvalidJournal(problem, "Upgrade wevent; the journal is untouched.", path=str(place), format=found)
