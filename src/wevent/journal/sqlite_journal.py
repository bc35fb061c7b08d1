"""The journal in one SQLite file: one writer, every commit forced to disk, its witness beside it (spec 10).

The writer watches its files. Removed, replaced or cut, they stop it before anything more is released.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw

from wevent.errors import InvalidJournal, StorageFailed, WeventError
from wevent.file_io import storage_errors
from wevent.journal.backup import copy_journal, own_files
from wevent.journal.database import begin_rows
from wevent.journal.journal import Journal
from wevent.journal.record import Batch, Hook, Writer, no_hook
from wevent.journal.sqlite_database import LOG_LIMIT, SqliteDatabase, create_tables
from wevent.journal.witness import (
    WitnessFile,
    WitnessRecord,
    check_lost,
    holder,
    read_witness,
    release_witness,
    take_witness,
    witness_path,
)


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
        self.path = Path(path)
        self._file = JournalFile(self.path, write=write, start_over=start_over, held=held)
        with ExitStack() as undo:
            undo.callback(self._file.close)  # the lock too: whoever tries again must not be told that it is held
            super().__init__(self._file, started_over=start_over, released_through=released_through)
            undo.pop_all()

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Journal.commit`. No page is written before the COMMIT itself, however large a release."""
        self._file.connection.execute("PRAGMA cache_spill = OFF")
        try:
            super().commit(batch, at)
        finally:
            self._file.connection.execute("PRAGMA cache_spill = ON")

    def backup(self, target: Path, *, replace: bool = False) -> int:
        """Copy the journal while it is in use, and return its last slot. `replace` allows to replace an existing file.

        The copy cannot be published from until it is told through which slot releases went out (spec 10).
        """
        return copy_journal(self._file.connection, self.path, target, replace=replace)

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


class JournalFile:
    """An open journal file and its witness; see `wevent.journal.journal.Storage`."""

    def __init__(self, path: Path, *, write: bool, start_over: bool, held: WitnessFile | None) -> None:
        if str(path) in (":memory:", "."):
            raise InvalidJournal(f"{str(path)!r} is no file.", "Name one: what is not stored is lost.", path=str(path))
        if path.is_dir():
            raise InvalidJournal(f"{path} is a folder, no journal.", "Name the file in it.", path=str(path))
        self.path, self.witness_name, self._is_held = path, witness_path(path).name, held is not None
        self.is_new = self._is_closed = self._is_made = False
        with ExitStack() as undo:
            self.witness = held if held is not None else take_witness(path) if write else None
            undo.callback(self._let_go)
            if self.witness is not None:
                self.is_new = not path.exists()
                # A link that leads nowhere was there before.
                self._is_made = not os.path.lexists(os.path.realpath(path))
                if _has_second_name(path):  # each has a lock and a write-ahead log: slots would be drawn twice
                    fix = "Remove the other names; a symbolic link may stay."
                    raise InvalidJournal(f"The journal has hard links ({path}).", fix, path=str(path))
            if self._is_made or not path.exists() or not path.stat().st_size:
                self._check_lost(start_over, has_tables=False)
            self.database = SqliteDatabase(path, create=self.witness is not None)
            self.connection, self.is_new = self.database.connection, self.database.is_new
            self.check_pages = self.database.check_pages
            undo.callback(self.connection.close)
            if self.witness is not None:
                if not self.is_new:
                    self.check_pages()
                self._check_lost(start_over, has_tables=not self.is_new)
                self.database.keep_log()  # only now: what is refused stays as it is, byte for byte
                self._place = Place(path, self.witness.path)
            undo.pop_all()

    def _check_lost(self, start_over: bool, *, has_tables: bool) -> None:
        """Refuse another journal than the witness shows; reads only. Readers need no witness that can be read."""
        record = self.seen() if self.witness is None else self.witness.before
        if self.witness is not None or record.is_readable:
            database = self.database if has_tables else None
            check_lost(record, database, str(self.path), f"wevent restore BACKUP {self.path}", start_over=start_over)

    def check_place(self) -> None:
        if self.witness is not None:
            self._place.check()

    def seen(self) -> WitnessRecord:
        return read_witness(witness_path(self.path))

    def create_tables(self) -> None:
        create_tables(self.connection)
        begin_rows(self.database)

    def files(self) -> list[Path]:
        return own_files(self.path)

    def size(self) -> int:
        return self.path.stat().st_size

    def writer(self) -> Writer | None:
        return holder(self.path)

    def close(self) -> None:
        """Close it and let the next writer in; a journal that was never begun leaves no file."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.witness is not None:
            try:
                is_intact = self._place.is_intact()
            except OSError:  # it cannot be told
                is_intact = False
            if not is_intact:
                # Putting a log that was cut into the journal would damage what is still whole in it.
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.connection.close()
        self._let_go()

    def _let_go(self) -> None:
        """Release the lock, last of all: what was made for nothing is removed while nobody else can use it."""
        if self.witness is None or self._is_held:
            return
        if not self.is_new:
            self.witness.close()
            return
        if self._is_made:
            with suppress(OSError):
                for ending in ("", "-wal", "-shm"):
                    Path(os.path.realpath(self.path) + ending).unlink(missing_ok=True)
        release_witness(self.witness)


class Place:
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
