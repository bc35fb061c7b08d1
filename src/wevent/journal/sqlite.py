"""The journal in one SQLite file: one writer, every commit forced to disk, its witness beside it (spec 10).

The writer watches its files. Removed, replaced or cut, they stop it before anything more is released.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from wevent.errors import InvalidJournal, StorageFailed, WeventError
from wevent.file_io import storage_errors
from wevent.journal.database import (
    FORMAT,
    SQLITE_TABLES,
    UNREADABLE,
    FoundRows,
    Result,
    begin_rows,
    newer_format,
    only_row,
    out_of_memory,
)
from wevent.journal.journal import Journal
from wevent.journal.record import Batch, Hook, Writer, no_hook
from wevent.journal.witness import (
    WitnessFile,
    WitnessRecord,
    check_lost,
    holder,
    lock_witness,
    read_witness,
    unlock_witness,
    witness_path,
)

LOG_LIMIT = 1 << 26
"""Size that SQLite may cut a write-ahead log to, in bytes."""

BESIDE = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a file, and would apply to another one in its place."""

_APPLICATION_ID = 0x77657674  # "wevt": tells a journal from other SQLite files
_BUSY_TIMEOUT_MS = 10_000
_PAGE_SIZE = 1024  # of new files: a change of one user writes a handful of pages
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
                self.connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
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
        except (MemoryError, apsw.NoMemError):
            raise out_of_memory(str(self._path)) from None
        except (*UNREADABLE, apsw.Error):
            raise self.damaged() from None

    def damaged(self) -> InvalidJournal:
        return _damaged(self._path)

    def keep_log(self) -> None:
        """Write to a write-ahead log from now on; for writers: a backup stays one file for those who only read it."""
        with self.readable():
            self.connection.execute("PRAGMA journal_mode = WAL").fetchall()

    # Dialect

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


def own_files(journal: Path) -> list[Path]:
    """Return the files that belong to a journal: its witness, itself, and what SQLite keeps beside it."""
    return [witness_path(journal), *(Path(os.path.realpath(journal) + ending) for ending in ("", *BESIDE))]


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


class SqliteJournal(Journal):
    """A journal file; see `wevent.journal.journal.Journal`. Arguments and errors: those of `wevent.journal.open_journal`.

    Args:
        path: the file; made on the first `begin` if it does not exist.
        held: the witness, if the caller has locked it already and keeps it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        write: bool = False,
        start_over: bool = False,
        held: WitnessFile | None = None,
        released_through: int | None = None,
    ) -> None:
        self.path = path = Path(path)
        if str(path) in (":memory:", "."):
            raise InvalidJournal(f"{str(path)!r} is no file.", "Name one: what is not stored is lost.", path=str(path))
        if path.is_dir():
            raise InvalidJournal(f"{path} is a folder, no journal.", "Name the file in it.", path=str(path))
        self.witness_name, self._is_held = witness_path(path).name, held is not None
        self._is_new = self._is_closed = self._is_made = False
        self._watch: FileWatch | None = None
        with ExitStack() as undo:
            self._witness = held if held is not None else lock_witness(path) if write else None
            undo.callback(self._let_go)  # whoever tries again must not be told that it is held
            if self._witness is not None:
                self._is_new = not path.exists()
                # A link that leads nowhere was there before.
                self._is_made = not os.path.lexists(os.path.realpath(path))
                if _has_second_name(path):  # each has a lock and a write-ahead log: slots would be drawn twice
                    fix = "Remove the other names; a symbolic link may stay."
                    raise InvalidJournal(f"The journal has hard links ({path}).", fix, path=str(path))
            if self._is_made or not path.exists() or not path.stat().st_size:
                self._check_lost(None, start_over)
            database = SqliteDatabase(path, create=self._witness is not None)
            self._database, self.connection, self._is_new = database, database.connection, database.is_new
            undo.callback(self._close_tables)
            if self._witness is not None:
                if not self._is_new:
                    self._check_pages()
                self._check_lost(None if self._is_new else database, start_over)
                database.keep_log()  # only now: what is refused stays as it is, byte for byte
                self._watch = FileWatch(path, self._witness.path)
            super().__init__(
                database,
                self._witness,
                is_new=database.is_new,
                started_over=start_over,
                released_through=released_through,
            )
            undo.pop_all()

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Journal.commit`. No page is written before the COMMIT itself, however large a release."""
        self.connection.execute("PRAGMA cache_spill = OFF")
        try:
            super().commit(batch, at)
        finally:
            self.connection.execute("PRAGMA cache_spill = ON")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it. An unforeseen error may come of damage: then that is raised instead."""
        try:
            if isinstance(error, Exception) and not isinstance(error, WeventError) and not self.is_new:
                with self._database.readable():
                    if isinstance(error, apsw.Error):
                        raise error
                    self.check()
        finally:
            self.close()

    def _check_lost(self, database: SqliteDatabase | None, start_over: bool) -> None:
        """Refuse another journal than the witness shows; reads only. Readers need no witness that can be read."""
        record = self._read_witness() if self._witness is None else self._witness.before
        if self._witness is not None or record.is_readable:
            check_lost(record, database, str(self.path), f"wevent restore BACKUP {self.path}", start_over=start_over)

    def check_intact(self) -> None:
        if self._watch is not None:
            self._watch.check()

    def _read_witness(self) -> WitnessRecord:
        return read_witness(witness_path(self.path))

    def _check_pages(self) -> None:
        with self._database.readable():
            found = self.connection.execute("PRAGMA quick_check(1)").fetchall()
        if found != [("ok",)]:
            raise self._database.damaged()

    def _create_tables(self) -> None:
        create_tables(self.connection)
        begin_rows(self._database)

    def files(self) -> list[Path]:
        return own_files(self.path)

    def size(self) -> int:
        return self.path.stat().st_size

    def writer(self) -> Writer | None:
        return holder(self.path)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._close_tables()
            self._let_go()

    def _close_tables(self) -> None:
        if self._watch is not None and not self._watch.is_surely_intact():
            # Putting a log that was cut into the journal would damage what is still whole in it.
            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close()

    def _let_go(self) -> None:
        """Release the lock, last of all: what was made for nothing is removed while nobody else can use it."""
        if self._witness is None or self._is_held:
            return
        if not self._is_new:
            self._witness.close()
            return
        if self._is_made:
            with suppress(OSError):
                for ending in ("", "-wal", "-shm"):
                    Path(os.path.realpath(self.path) + ending).unlink(missing_ok=True)
        unlock_witness(self._witness)


class FileWatch:
    """The files of a journal that is open for writing. Each stays, once it is there, and never gets shorter."""

    def __init__(self, path: Path, witness: Path) -> None:
        real = os.path.realpath(path)
        self._path = path
        self._limits: dict[Path, int | None] = {
            path: None,
            witness: None,
            Path(real + "-shm"): None,
            Path(real + "-wal"): LOG_LIMIT,
        }
        self._seen: dict[Path, tuple[tuple[int, int], int]] = {}  # device and number, and size
        self.is_intact()

    def is_intact(self) -> bool:
        """Return whether every file is still the one it was, and as long; remembers how long it is now."""
        for path, limit in self._limits.items():
            try:
                found = os.stat(path)
            except FileNotFoundError:
                if path in self._seen:
                    return False
                continue
            same = found.st_dev, found.st_ino
            size = found.st_size if limit is None else min(found.st_size, limit)
            known, least = self._seen.get(path, (same, 0))
            if same != known or size < least:
                return False
            self._seen[path] = same, size
        return not _has_second_name(self._path)

    def is_surely_intact(self) -> bool:
        """Return whether the files are intact; False if that cannot be told."""
        try:
            return self.is_intact()
        except OSError:
            return False

    def check(self) -> None:
        """Refuse to go on when one of the files was removed, replaced or cut: what is stored would be lost."""
        fix = "Nothing more was released, and nothing is lost: run the same command again when that is over."
        with storage_errors(f"to look at the files of the journal {self._path}", fix, self._path):
            if self.is_intact():
                return
        raise StorageFailed(
            f"The journal {self._path}, or a file beside it, was removed, replaced, cut, or given a second name while it "
            "was published into.",
            "Nothing more was released. Put it back, or restore a backup: wevent restore BACKUP JOURNAL --released-through "
            "SLOT.",
            path=str(self._path),
        )


def _has_second_name(path: Path) -> bool:
    try:
        return os.stat(path).st_nlink > 1
    except OSError:
        return False
