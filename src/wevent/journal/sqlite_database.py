"""The tables of a journal in an SQLite file: whether it is a journal, is whole and may be written; its errors translated."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from wevent.errors import InvalidJournal, StorageFailed
from wevent.file_io import storage_errors
from wevent.journal.database import UNREADABLE, FoundRows, Result, only_row
from wevent.journal.schema import FORMAT, SQLITE_TABLES, newer_format

LOG_LIMIT = 1 << 26
"""Size that SQLite may cut a write-ahead log to, in bytes."""

_APPLICATION_ID = 0x77657674  # "wevt": tells a journal from other SQLite files
_BUSY_TIMEOUT_MS = 10_000
_AT_ONCE = 1 << 16
_MEMBER_COLUMNS = f"""
SELECT CAST(group_concat(iif(typeof(user) = 'text', user, '?'), char(0)) AS BLOB),
  CAST(group_concat(coalesce(level, ''), char(0)) AS BLOB),
  group_concat(window, ' '), group_concat(nano, ' '), group_concat(first, ' '), group_concat(coalesce(last, -1), ' ')
FROM (
  SELECT * FROM members WHERE (user, first, window, nano) > (?, ?, ?, ?) ORDER BY user, first, window, nano
  LIMIT {_AT_ONCE}
)
"""  # a fifth of the cost of a Python tuple for each row
_COLUMNS = (
    'SELECT tables.name, columns.name, columns.type, columns."notnull", columns.pk FROM sqlite_master AS tables,'
    " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' ORDER BY tables.name, columns.cid"
)


class SqliteDatabase:
    """Connection to the tables of a journal file; see `wevent.journal.database.Database`.

    Args:
        path: the journal.
        create: make a missing file; for writers.

    Attributes:
        connection: SQLite's.
        is_new: whether there are no tables yet.

    Raises:
        InvalidJournal: if it is missing, foreign, truncated, damaged or of another format.
        StorageFailed: if it cannot be opened or written.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.name, self._path = str(path), path
        if not create and not path.exists():
            raise InvalidJournal(
                f"There is no journal at {path}.", "Check the path; `wevent publish` makes one.", path=str(path)
            )
        if path.exists() and not os.access(path, os.R_OK):  # SQLite cannot tell it from a missing one
            raise StorageFailed(f"There is no read permission for {path}.", "Check its permissions.", path=str(path))
        with self.readable():
            if create and not path.exists():  # ids of users are in it: nobody else may read it
                with storage_errors(
                    f"to write {path}", "Check the path, make room and make the folder writable.", path
                ):
                    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            if create:
                flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
                self.connection = apsw.Connection(str(path), flags=flags)
                self.connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            else:
                self.connection = open_for_reading(path)
            self.largest_value = self.connection.limit(apsw.SQLITE_LIMIT_LENGTH)
            # Without a call in between: most of them take microseconds.
            self.execute: Callable[..., FoundRows] = self.connection.execute
            self.executemany: Callable[..., object] = self.connection.executemany
            try:
                self._refuse_short_file()
                self.is_new = self._find_format(create)
                prepare(self.connection)
            except BaseException:
                self.connection.close()
                raise

    def _refuse_short_file(self) -> None:
        """Refuse a file that is shorter than its header says, when no write-ahead log can complete it.

        One read transaction covers header, size and log: while the log is empty in it, no writer changes the file. SQLite
        alone would read a page that was cut as one that ends with zeros.
        """
        with transaction(self.connection, "BEGIN"):
            pages, page = (self.connection.pragma(name) for name in ("page_count", "page_size"))
            size = _size(self._path)  # not by opening it: closing that again would drop SQLite's locks
            if size and not pages:  # SQLite takes one byte for an empty file
                raise _foreign(self._path)
            if size < pages * page and not _size(_log(self._path)):
                raise self.damaged()

    def _find_format(self, create: bool) -> bool:
        """Refuse another format than this version's; return whether there are no tables yet."""
        application, found = self.connection.pragma("application_id"), self.connection.pragma("user_version")
        if create and application == 0 and only_row(self, "SELECT count(*) FROM sqlite_master") == (0,):
            return True
        if application != _APPLICATION_ID:
            raise _foreign(self._path)
        if found != FORMAT:
            raise newer_format(found, self._path)
        if self.execute(_COLUMNS).fetchall() != _expected_columns():  # a flipped bit in a layout reads like another one
            raise self.damaged()
        return False

    def write(
        self,
        work: Callable[[], Result],
        undone: Callable[[], None] | None = None,
        stands: Callable[[], bool] | None = None,
    ) -> Result:
        """See `Database.write`; what was committed is known here, so nothing is done twice."""
        try:
            with translate_errors(self._path), transaction(self.connection):
                return work()
        except BaseException:
            if undone is not None:
                undone()
            raise

    def read(self, work: Callable[[], Result]) -> Result:
        with transaction(self.connection, "BEGIN"):
            return work()

    @contextmanager
    def readable(self) -> Iterator[None]:
        try:
            with translate_errors(self._path):
                yield
        except InvalidJournal:
            raise
        except (*UNREADABLE, apsw.Error):
            raise self.damaged() from None

    def damaged(self) -> InvalidJournal:
        return _damaged(self._path)

    def keep_log(self) -> None:
        """Write to a write-ahead log from now on; for writers: a backup stays one file for those who only read it."""
        with self.readable():
            self.connection.execute("PRAGMA journal_mode = WAL").fetchall()

    def check_pages(self) -> None:
        """Refuse a file whose pages contradict each other."""
        with translate_errors(self._path):
            found = self.connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != [("ok",)]:
            raise self.damaged()

    # Dialect

    def fact(self, value: str | int | bytes) -> Any:
        return value

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        asked = msgspec.json.encode(list(users)).decode()
        return self.execute(f"{select} WHERE user IN (SELECT value FROM json_each(?))", (asked,))

    def member_columns(self, after: Sequence[Any]) -> tuple[bytes, bytes, list[str]] | None:
        users, levels, *numbers = self.execute(_MEMBER_COLUMNS, after).fetchone()
        return None if users is None else (users, levels, numbers)

    def add_members(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?, ?)", rows)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours: a full disk, a read-only folder, a damaged or foreign file."""
    try:
        yield
    except apsw.FullError:
        problem, fix = f"The disk of {path} is full.", "Nothing was lost: make room and run the same command again."
        raise StorageFailed(problem, fix, path=str(path), passing=True) from None
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError):
        fix = "Make the file and its folder writable, or choose another place."
        raise StorageFailed(f"{path} cannot be written.", fix, path=str(path)) from None
    except apsw.NotADBError:
        raise _foreign(path) from None
    except (apsw.CorruptError, UnicodeDecodeError):  # a text that is none any more
        raise _damaged(path) from None
    except apsw.IOError as error:
        fix = "What is committed is intact: check the disk and run the same command again."
        raise StorageFailed(f"{path}: input/output error ({error}).", fix, path=str(path), passing=True) from None
    except apsw.BusyError:
        problem = f"Another process kept {path} busy for ten seconds."
        fix = "Wait for the backup or import to end and run the same command again."
        raise StorageFailed(problem, fix, path=str(path), passing=True) from None


@contextmanager
def transaction(connection: apsw.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Run one transaction, all of it or nothing; a part of the one that is open, if one is."""
    if connection.in_transaction:
        yield
        return
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # an input/output error ends it
            connection.execute("ROLLBACK")
        raise


def open_for_reading(path: Path) -> apsw.Connection:
    """Return a connection to a file that may be in use.

    Reading a file with a write-ahead log needs a file beside it, and so a writable folder. Where there is none and no
    log either, nobody is writing: the file is read as it is.

    Raises:
        StorageFailed: if there is a log that cannot be read; without it the file would look older than it is.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    try:
        connection.pragma("schema_version")
        return connection
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
    log = _log(path)
    if _size(log):
        raise StorageFailed(
            f"Reading {path} together with its write-ahead log needs a folder that can be written.",
            f"Copy {path.name} and {log.name} to a writable folder and read them there.",
            path=str(path),
        )
    address = f"file:{quote(os.path.realpath(path))}?immutable=1"
    return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def prepare(connection: apsw.Connection) -> None:
    """Force every commit to disk, and overwrite deleted rows."""
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}").fetchall()


def create_tables(connection: apsw.Connection) -> None:
    """Create the tables of a new journal; inside a transaction."""
    connection.execute(SQLITE_TABLES)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


@cache
def _expected_columns() -> list[Any]:
    """Return every table with its columns, types and keys."""
    connection = apsw.Connection(":memory:")
    create_tables(connection)
    return connection.execute(_COLUMNS).fetchall()


def _log(path: Path) -> Path:
    return Path(f"{os.path.realpath(path)}-wal")


def _size(path: Path) -> int:
    """Return the bytes of a file, 0 for a missing one."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _damaged(path: Path) -> InvalidJournal:
    fix = "Restore a backup: wevent restore BACKUP JOURNAL --released-through SLOT."
    return InvalidJournal(f"The journal is damaged ({path}).", fix, path=str(path))


def _foreign(path: Path) -> InvalidJournal:
    problem = f"This is another kind of file, no wevent journal ({path})."
    return InvalidJournal(problem, "Check the path; the file is untouched.", path=str(path))
