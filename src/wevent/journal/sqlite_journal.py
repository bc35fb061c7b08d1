"""The journal in one SQLite file: one writer, every commit forced to disk, its witness beside it (spec 10).

The writer watches its files. Removed, replaced or cut, they stop it before anything more is released.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw
import msgspec

from wevent.errors import InvalidJournal, StorageFailed, WeventError
from wevent.file_io import storage_errors
from wevent.journal import sqlite_schema as schema
from wevent.journal.backup import copy_journal
from wevent.journal.database import begin_rows, only_row
from wevent.journal.journal import Journal
from wevent.journal.lost import STARTED_OVER, Home, check_lost, is_lost, refuse_lost
from wevent.journal.record import Batch, Hook, Writer, no_hook
from wevent.journal.sqlite_connection import LOG_LIMIT, check_pages, clear_errors, connect, keep_log, readable
from wevent.journal.sqlite_database import SqliteDatabase
from wevent.journal.witness import WitnessFile, WitnessRecord, read_witness
from wevent.journal.writer_lock import has_second_name, holder, own_files, release_witness, take_witness, witness_path


class SqliteJournal(Journal):
    """A journal file; see `wevent.journal.journal.Journal`.

    Args:
        path: the file; made on the first `begin` if it does not exist.
        write: be the one writer. Readers, and requests to the registry, need not.
        start_over: make a new journal where another one was lost.
        held: the witness, if the caller has locked it already and keeps it.
        released_through: see `Journal`.

    Raises:
        InvalidJournal: if the file is no journal, damaged or newer.
        JournalLocked: naming the holder.
        StaleJournal: if the witness shows slots of a journal that is not here.
        StorageFailed: if it cannot be opened or written.
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
        self.path = Path(path)
        self._file = JournalFile(self.path, write=write or held is not None, start_over=start_over, held=held)
        with ExitStack() as undo:
            undo.callback(self._file.close)  # the lock too: whoever tries again must not be told that it is held
            super().__init__(self._file, started_over=start_over, released_through=released_through)
            undo.pop_all()

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Slots.commit`. No page is written before the COMMIT itself, however large a release."""
        self._file.connection.execute("PRAGMA cache_spill = OFF")
        try:
            super().commit(batch, at)
        finally:
            self._file.connection.execute("PRAGMA cache_spill = ON")

    def backup(self, target: Path, *, replace: bool = False) -> int:
        """Copy the journal while it is in use; the copy knows that it is one. Returns its last slot.

        The copy cannot be published from until it is told through which slot releases went out (spec 10).

        Args:
            target: the copy.
            replace: whether an existing file may be replaced; never the journal itself or its own files.

        Raises:
            InvalidOutput: if the target is there, or is one of the journal's own files.
            StorageFailed: if it cannot be written.
        """
        return copy_journal(self._file.connection, self.path, target, replace=replace)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it. An unforeseen error may come of damage: then that is raised instead.

        Raises:
            InvalidJournal: if the journal is damaged.
        """
        try:
            if isinstance(error, Exception) and not isinstance(error, WeventError) and not self.is_new:
                with readable(self.path):
                    if isinstance(error, apsw.Error):
                        raise error
                    self.check()
        finally:
            self.close()


class JournalFile:
    """An open journal file; made empty if it is to be written and does not exist.

    Args:
        path: where it is.
        write: take the writer's lock.
        start_over: the operator says that a lost journal is to be replaced.
        held: the witness, if the caller has locked it already and keeps it.

    Attributes:
        connection: SQLite's.
        database: the tables in it.
        witness: the witness of the writer, None for readers.
        is_new: whether it has no tables yet.

    Raises:
        InvalidJournal, JournalLocked, StaleJournal, StorageFailed: as of `SqliteJournal`.
    """

    def __init__(self, path: Path, *, write: bool, start_over: bool, held: WitnessFile | None = None) -> None:
        if str(path) in (":memory:", "."):
            raise InvalidJournal(
                "a journal on disk", f"{str(path)!r}", "Name a file: what is not stored is lost.", path=str(path)
            )
        if path.is_dir():
            raise InvalidJournal("a journal file", f"a folder ({path})", "Name the file in it.", path=str(path))
        self._closed = False
        self.path = path
        self.is_new = False
        self._made = False
        self._home = Home(str(path), f"wevent restore BACKUP {path}")
        with ExitStack() as undo:
            self._held = held is not None
            self.witness = held if held is not None else take_witness(path) if write else None
            undo.callback(self._let_go)
            if self.witness is not None:
                self.is_new = not path.exists()
                self._made = not os.path.lexists(os.path.realpath(path))  # a link that leads nowhere was there before
                _refuse_second_name(path)
                if self._made or not path.stat().st_size:
                    check_lost(self._home, self.witness.before, None, start_over=start_over)
            elif not path.exists() or not path.stat().st_size:
                refuse_lost(self._home, self.seen())
            self.connection, self.is_new = connect(path, create=write)
            undo.callback(self.connection.close)
            self.database = SqliteDatabase(self.connection, path)
            if self.witness is not None:
                self._check(start_over, self.witness)
                keep_log(self.connection, path)  # only now: what is refused stays as it is, byte for byte
                self._place = Place(path, self.witness.path)
            undo.pop_all()

    def check_place(self) -> None:
        """Refuse to go on when a file of the journal was taken away or cut under its writer.

        Raises:
            StorageFailed: before anything more is stored or goes out.
        """
        if self.witness is not None:
            self._place.check()

    @property
    def witness_name(self) -> str:
        return witness_path(self.path).name

    def seen(self) -> WitnessRecord:
        return read_witness(witness_path(self.path))

    def create_tables(self) -> None:
        schema.create(self.connection)
        begin_rows(self.database)

    def check_pages(self) -> None:
        check_pages(self.connection, self.path)

    def files(self) -> list[Path]:
        return own_files(self.path)

    def size(self) -> int:
        """See `Storage.size`: of the file."""
        return self.path.stat().st_size

    def writer(self) -> Writer | None:
        """See `Storage.writer`: the holder of the lock."""
        return holder(self.path)

    def close(self) -> None:
        """Close it and let the next writer in; a journal that was never begun leaves no file."""
        if self._closed:
            return
        self._closed = True
        if self.witness is not None:
            try:
                is_intact = self._place.is_intact()
            except OSError:  # nobody knows
                is_intact = False
            if not is_intact:
                # Putting a log that was cut into the journal would damage what is still whole in it.
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close()
        self._let_go()

    def _check(self, start_over: bool, witness: WitnessFile) -> None:
        """Refuse damage, and another journal than the witness shows; reads only."""
        identity = None
        if not self.is_new:
            with clear_errors(self.path):
                check_pages(self.connection, self.path)
                identity, slots, unsafe = only_row(
                    self.database,
                    "SELECT (SELECT value FROM facts WHERE name = 'id'), committed,"
                    " (SELECT value FROM facts WHERE name = 'unsafe') FROM head",
                )
                if not slots and STARTED_OVER in msgspec.json.decode(unsafe):
                    start_over = is_lost(witness.before, identity)  # said before, by a run that came to no slot
        check_lost(self._home, witness.before, identity, start_over=start_over)

    def _let_go(self) -> None:
        """Release the lock, last of all: what was made for nothing is removed while nobody else can use it."""
        if self.witness is None or self._held:
            return
        if not self.is_new:
            self.witness.close()
            return
        if self._made:
            with suppress(OSError):
                for ending in ("", "-wal", "-shm"):
                    Path(os.path.realpath(self.path) + ending).unlink(missing_ok=True)
        release_witness(self.witness)


def _refuse_second_name(path: Path) -> None:
    """A file with two names has two locks and two write-ahead logs: it would be drawn from twice.

    Raises:
        InvalidJournal: if it has.
    """
    if has_second_name(path):
        raise InvalidJournal(
            "a journal with one name",
            f"one with hard links ({path})",
            "Remove the other names; a symbolic link may stay.",
            path=str(path),
        )


class Place:
    """The files of a journal that is open for writing, as they were last seen.

    Args:
        path: the journal.
        witness: its witness.
    """

    def __init__(self, path: Path, witness: Path) -> None:
        self._path = path
        real = os.path.realpath(path)
        self._growing = [
            _Growing(path),
            _Growing(witness),
            _Growing(Path(real + "-shm")),
            _Growing(Path(real + "-wal"), LOG_LIMIT),
        ]
        self.is_intact()

    def is_intact(self) -> bool:
        """Whether every file is still the one it was, and as long.

        Raises:
            OSError: if that cannot be told.
        """
        return all(file.is_intact() for file in self._growing) and not has_second_name(self._path)

    def check(self) -> None:
        """Refuse to go on when one of the files was removed, replaced or cut: what is stored would be lost.

        Raises:
            StorageFailed: before anything more is stored or goes out.
        """
        remedy = "Nothing more went out, and nothing is lost: run the same command again when that is over."
        with storage_errors(f"to look at the files of the journal {self._path}", remedy, self._path):
            if self.is_intact():
                return
        raise StorageFailed(
            f"the journal {self._path} to stay in its place while it is published into",
            "one that was removed, replaced, cut, or given a second name (it, or a file beside it)",
            "Nothing more went out. Put it back, or restore a backup: wevent restore BACKUP JOURNAL --released-through "
            "SLOT.",
            path=str(self._path),
        )


class _Growing:
    """A file that stays, once it is there, and never gets shorter."""

    def __init__(self, path: Path, limit: int | None = None) -> None:
        self.path = path
        self.size = 0
        self._limit = limit
        self._same: tuple[int, int] | None = None

    def is_intact(self) -> bool:
        """Whether it is; remembers how long it is now."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return self._same is None
        size = found.st_size if self._limit is None else min(found.st_size, self._limit)
        if self._same not in (None, (found.st_dev, found.st_ino)) or size < self.size:
            return False
        self._same, self.size = (found.st_dev, found.st_ino), size
        return True
