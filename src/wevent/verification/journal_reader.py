"""Journals opened for verification: rows of all tables in one view, while a publisher may write.

The module shares with the journal only how a file or a database is opened. It decodes stored values by the documented
format (docs/reference/journal-format.md).
"""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import apsw
import msgspec

from wevent.errors import InvalidJournal
from wevent.journal.address import PostgresAddress, psycopg_needed
from wevent.journal.sqlite import open_for_reading

ELSEWHERE, PUBLISHED = 3, 0
"""Kinds of slots."""

_APPLICATION, _FORMAT = 0x77657674, 1
_BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    zlib.error,
    msgspec.MsgspecError,
)
_ONE_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout TO 0"
_PAGE = 1024  # slots that are checked at once
_MEMBERS = 'SELECT "user", "window", nano, level, first, last FROM members'
_ERASED = ("erased:", "erased;")  # ids from the first to before the second are digests


class StoredEntry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Payload of a slot. Blobs are named by SHA-256, empty for none."""

    slot: int
    kind: int
    version: int
    version_digest: bytes
    population: bytes
    probe: bytes
    publication: bytes
    threshold: int | None
    dissimilarity: float | None
    shown: int
    histogram: bytes
    measured: int


class SlotRow(NamedTuple):
    """One stored slot: number, payload as stored and decoded, and chain hash."""

    slot: int
    payload: bytes
    entry: StoredEntry
    chain: bytes


class HeadRow(NamedTuple):
    """Head of a journal: last slot and its chain hash, first kept slot and the chain hash before it."""

    committed: int
    chain: bytes
    first: int
    anchor: bytes
    copied: bool


class JournalTables:
    """Tables of a journal.

    Args:
        rows: yields the rows of a query with `?` for values. Queries may overlap. The function sha256 is available.
    """

    def __init__(self, rows: Callable[[str, tuple[Any, ...]], Iterator[Any]]) -> None:
        self._rows = rows

    def head(self) -> HeadRow:
        """Return the head."""
        for committed, chain, first, anchor, copied in self._find(
            "SELECT committed, chain, first, anchor, copied FROM head"
        ):
            return HeadRow(committed, _bytes(chain), first, _bytes(anchor), bool(copied))
        raise LookupError("no head")

    def facts(self) -> dict[str, bytes]:
        """Return all facts."""
        return dict(self._find("SELECT name, value FROM facts"))

    def versions(self) -> Iterator[tuple[int, int, str]]:
        """Yield number, first slot and pinned configuration of every version."""
        return self._find("SELECT number, first, terms FROM epochs ORDER BY number")

    def restores(self) -> Iterator[tuple[int, int, str]]:
        """Yield slot, last silent slot and doubted classes of every restore."""
        return self._find("SELECT slot, silent_through, doubted FROM restores")

    def members(self) -> Iterator[Any]:
        """Yield rows of users. Rows of one id are adjacent, and erased ids come first."""
        yield from self._find(f'{_MEMBERS} WHERE "user" >= ? AND "user" < ? ORDER BY "user"', *_ERASED)
        yield from self._find(f'{_MEMBERS} WHERE "user" < ? OR "user" >= ? ORDER BY "user"', *_ERASED)

    def slot_pages(self) -> Iterator[list[SlotRow]]:
        """Yield all slots in order."""
        found = self._find("SELECT slot, payload, chain FROM slots ORDER BY slot")
        while page := list(itertools.islice(found, _PAGE)):
            yield [
                SlotRow(slot, _bytes(payload), msgspec.msgpack.decode(payload, type=StoredEntry), _bytes(chain))
                for slot, payload, chain in page
            ]

    def chain_at(self, slot: int) -> tuple[bytes, int] | None:
        """Return chain hash and kind of a kept slot."""
        for payload, chain in self._find("SELECT payload, chain FROM slots WHERE slot = ?", slot):
            return _bytes(chain), msgspec.msgpack.decode(payload, type=StoredEntry).kind
        return None

    def blobs(self, names: Collection[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield name and content of the blobs that are stored."""
        if names:
            query = f"SELECT hash, data FROM blobs WHERE hash IN ({', '.join('?' * len(names))})"
            yield from ((_bytes(name), _bytes(data)) for name, data in self._find(query, *names))

    def intact_blobs(self, names: Collection[bytes]) -> set[bytes]:
        """Return the names of blobs with the SHA-256 that they are named by; the database hashes the content."""
        if not names:
            return set()
        query = f"SELECT hash FROM blobs WHERE hash IN ({', '.join('?' * len(names))}) AND sha256(data) = hash"
        return {_bytes(name) for (name,) in self._find(query, *names)}

    def _find(self, query: str, *values: Any) -> Iterator[Any]:
        return self._rows(query, values)


def open_reader(place: Path | PostgresAddress) -> AbstractContextManager[JournalTables]:
    """Open a journal.

    Raises:
        InvalidJournal: if there is none, or it cannot be read as one.
        StorageFailed: if its database does not answer.
    """
    return _open_file(place) if isinstance(place, Path) else _open_database(place)


@contextmanager
def _open_file(path: Path) -> Iterator[JournalTables]:
    if not path.is_file():
        _refuse(path, "There is no such file")
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                _refuse(path, "This is another kind of file, no wevent journal")
        connection = open_for_reading(path)
        try:
            connection.execute("PRAGMA query_only = ON")
            if connection.pragma("application_id") != _APPLICATION:
                _refuse(path, "This is another kind of file, no wevent journal")
            if connection.pragma("user_version") != _FORMAT:
                _refuse(path, "The journal is from a newer wevent")
            connection.create_scalar_function("sha256", _sha256, 1, deterministic=True)
            connection.execute("BEGIN")
            yield JournalTables(lambda query, values: iter(connection.execute(query, values)))
        finally:
            connection.close()
    except InvalidJournal:
        raise
    except (apsw.Error, *_BROKEN) as error:
        _refuse(path, f"The journal is damaged: {type(error).__name__}")


@contextmanager
def _open_database(place: PostgresAddress) -> Iterator[JournalTables]:
    with psycopg_needed(place):
        import psycopg

        from wevent.journal.connection import connect, translated
    connection = connect(place, "verify")
    numbers = itertools.count()

    def rows(query: str, values: tuple[Any, ...]) -> Iterator[Any]:
        with connection.cursor(f"verify{next(numbers)}") as cursor:  # on the server: a journal may be long
            cursor.itersize = _PAGE
            cursor.execute(query.replace("?", "%s"), values or None)
            yield from cursor

    try:
        connection.execute(_ONE_VIEW, prepare=False)
        found = list(rows("SELECT value FROM facts WHERE name = 'format'", ()))
        if not found or int(found[0][0]) != _FORMAT:
            _refuse(place, "The journal is from a newer wevent")
        yield JournalTables(rows)
    except InvalidJournal:
        raise
    except psycopg.Error as error:
        raise translated(error, place) from None
    except _BROKEN as error:
        _refuse(place, f"The journal is damaged: {type(error).__name__}")
    finally:
        connection.close()


def _bytes(value: Any) -> bytes:
    """Return stored bytes. A number in their place is damage: `bytes` would make as many zeros of it."""
    return memoryview(value).tobytes()


def _sha256(*values: Any) -> Any:
    return hashlib.sha256(_bytes(values[0])).digest()


def _refuse(place: Path | PostgresAddress, problem: str) -> NoReturn:
    fix = "Check the path. If it is right, restore a backup."
    raise InvalidJournal(f"{problem} ({place}).", fix, path=str(place)) from None
