"""Opening a journal file: is it one, is it whole, may it be written; and SQLite's errors in one clear sentence each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from wevent.errors import InvalidJournal, StorageFailed
from wevent.file_io import storage_errors
from wevent.journal import sqlite_schema as schema
from wevent.journal.database import UNREADABLE

BUSY_TIMEOUT_MS = 10_000

LOG_LIMIT = 1 << 26
"""Size that SQLite may cut a write-ahead log to, in bytes."""


def connect(path: Path, *, create: bool) -> tuple[apsw.Connection, bool]:
    """A checked connection to a journal, and whether the journal is new and still has no tables.

    Raises:
        InvalidJournal: if it is missing, foreign, truncated, damaged or of another format.
        StorageFailed: if it cannot be opened or written.
    """
    if not create and not path.exists():
        raise InvalidJournal(
            f"a journal at {path}", "no such file", "Check the path; `wevent publish` makes one.", path=str(path)
        )
    _check_readable(path)
    with readable(path):
        if create and not path.exists():  # ids of users are in it: nobody else may read it
            _make_private(path)
        connection = _open_for_writing(path) if create else open_for_reading(path)
        _check_whole(connection, path)
        found, application, tables = _identity(connection)
        if create and not tables and application == 0:
            return _prepared(connection), True
        if application != schema.APPLICATION_ID:
            raise _foreign(path)
        if found != schema.FORMAT:
            raise InvalidJournal(
                f"a journal of format {schema.FORMAT}",
                f"format {found}, from a newer wevent",
                "Upgrade wevent; the journal is untouched.",
                path=str(path),
                format=found,
            )
        if schema.columns(connection) != schema.expected_columns():
            raise damaged(path)
        return _prepared(connection), False


def keep_log(connection: apsw.Connection, path: Path) -> None:
    """Write to a write-ahead log from now on; for writers: a backup stays one file for those who only read it.

    Raises:
        StorageFailed: if the file cannot be written.
    """
    with readable(path):
        connection.execute("PRAGMA journal_mode = WAL").fetchall()


def check_pages(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose pages contradict each other.

    Raises:
        InvalidJournal: if SQLite finds damage.
    """
    with clear_errors(path):
        found = connection.execute("PRAGMA quick_check(1)").fetchall()
    if found != [("ok",)]:
        raise damaged(path)


def damaged(path: Path) -> InvalidJournal:
    """What is said about a journal that cannot be trusted."""
    return InvalidJournal(
        "a whole journal",
        f"a damaged one ({path})",
        "Restore a backup: wevent restore BACKUP JOURNAL --released-through SLOT.",
        path=str(path),
    )


def only_number(connection: apsw.Connection, query: str) -> int:
    """The number that a query always finds.

    Raises:
        InvalidJournal: if it finds none: something was removed from the file.
    """
    rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    if not rows:
        raise damaged(Path(connection.filename))
    return int(rows[0][0])


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as ours: full disk, read-only folder, damaged or foreign file."""
    try:
        yield
    except apsw.FullError:
        raise StorageFailed(
            "room on the disk",
            f"a full one ({path.parent})",
            "Nothing was lost: make room and run the same command again.",
            path=str(path),
            passing=True,
        ) from None
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError):
        raise StorageFailed(
            "a journal in a writable folder",
            f"{path}, which cannot be written",
            "Make the file and its folder writable, or choose another place.",
            path=str(path),
        ) from None
    except apsw.NotADBError:
        raise _foreign(path) from None
    except (apsw.CorruptError, UnicodeDecodeError):  # a text that is none any more
        raise damaged(path) from None
    except apsw.IOError as error:
        raise StorageFailed(
            "the disk to store the slot",
            f"an input/output error ({error})",
            "What is committed is intact: check the disk and run the same command again.",
            path=str(path),
            passing=True,
        ) from None
    except apsw.BusyError:
        raise StorageFailed(
            "the journal within ten seconds",
            "one that another process keeps busy",
            "Wait for the backup or import to end and run the same command again.",
            path=str(path),
            passing=True,
        ) from None


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Stored bytes that mean nothing are damage: one sentence, whatever broke over them.

    Raises:
        InvalidJournal: instead of any error of reading them.
    """
    try:
        with clear_errors(path):
            yield
    except InvalidJournal:
        raise
    except (*UNREADABLE, apsw.Error):
        raise damaged(path) from None


def _prepared(connection: apsw.Connection) -> apsw.Connection:
    """Every commit forced to disk, deleted rows overwritten."""
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}").fetchall()
    return connection


def _open_for_writing(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def _make_private(path: Path) -> None:
    with storage_errors(f"to write {path}", "Make room and make the folder writable.", path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _identity(connection: apsw.Connection) -> tuple[int, int, int]:
    found = connection.pragma("user_version")
    application = connection.pragma("application_id")
    tables = only_number(connection, "SELECT count(*) FROM sqlite_master")
    return int(found), int(application), tables


def _check_readable(path: Path) -> None:
    """Refuse a file without read permission, which SQLite cannot tell from a missing one."""
    if path.exists() and not os.access(path, os.R_OK):
        raise StorageFailed(
            "a readable journal", f"one without read permission ({path})", "Check its permissions.", path=str(path)
        )


def _check_whole(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is shorter than its header says, when no write-ahead log can complete it.

    One read transaction covers header, size and log: while the log is empty in it, no writer changes the file. SQLite alone
    would read a page that was cut as one that ends with zeros.
    """
    log = Path(os.path.realpath(path) + "-wal")
    with snapshot(connection):
        pages, page = (only_number(connection, f"PRAGMA {name}") for name in ("page_count", "page_size"))
        size = _size(path)  # not by opening it: closing that again would drop SQLite's locks
        if size and not pages:  # SQLite takes one byte for an empty file
            raise _foreign(path)
        if size < pages * page and not _size(log):
            raise damaged(path)


def _size(path: Path) -> int:
    """Return the bytes of a file, 0 for a missing one."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _foreign(path: Path) -> InvalidJournal:
    return InvalidJournal(
        "a wevent journal",
        f"another kind of file ({path})",
        "Check the path; the file is untouched.",
        path=str(path),
    )


@contextmanager
def transaction(database: apsw.Connection) -> Iterator[None]:
    """One write transaction, all of it or nothing; a part of the one that is open, if one is."""
    if database.in_transaction:
        yield
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(database: apsw.Connection) -> Iterator[None]:
    """Read within one transaction, or within the open one, if one is open."""
    if database.in_transaction:
        yield
        return
    database.execute("BEGIN")
    try:
        yield
    finally:
        if database.in_transaction:  # an input/output error ends it
            database.execute("ROLLBACK")


def open_for_reading(path: Path) -> apsw.Connection:
    """A connection to a file that may be in use.

    Reading a file with a write-ahead log needs a file beside it, and so a writable folder. Where there is none and no
    log either, nobody is writing: the file is read as it is.

    Raises:
        StorageFailed: if there is a log that cannot be read; without it the file would look older than it is.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    try:
        connection.pragma("schema_version")
        return connection
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
    real = os.path.realpath(path)
    log = Path(real + "-wal")
    if log.exists() and log.stat().st_size:
        raise StorageFailed(
            f"a folder that can be written, to read {path} together with its write-ahead log",
            "one that cannot",
            f"Copy {path.name} and {log.name} to a writable folder and read them there.",
            path=str(path),
        )
    return apsw.Connection(f"file:{quote(real)}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
