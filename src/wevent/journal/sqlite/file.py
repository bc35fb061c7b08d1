"""The file of a journal, opened: locked if it is to be written, whole, and the one whose slots its witness shows."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw
import msgspec

from wevent.errors import InvalidJournal
from wevent.journal.contents import Writer
from wevent.journal.lost import STARTED_OVER, Home, check_lost, is_lost, refuse_lost
from wevent.journal.sqlite import schema
from wevent.journal.sqlite.intact import Place
from wevent.journal.sqlite.lock import has_second_name, holder, own_files, release_witness, take_witness, witness_path
from wevent.journal.sqlite.sqlite_database import SqliteDatabase
from wevent.journal.sqlite.storage import check_pages, clear_errors, connect, keep_log
from wevent.journal.tables.beginning import begin_rows
from wevent.journal.tables.database import only_row
from wevent.journal.witness import WitnessFile, WitnessRecord, read_witness


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
