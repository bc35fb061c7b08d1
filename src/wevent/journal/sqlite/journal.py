"""The journal in one SQLite file: write-ahead log, every commit forced to disk, one writer (spec 10)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import apsw

from wevent.errors import WeventError
from wevent.journal.contents import Batch, Hook, Writer, no_hook
from wevent.journal.sqlite import schema
from wevent.journal.sqlite.copying import copy_journal
from wevent.journal.sqlite.file import JournalFile
from wevent.journal.sqlite.lock import WriterLock, holder, lock_path, own_files
from wevent.journal.sqlite.storage import check_pages, readable
from wevent.journal.tables.lost import STARTED_OVER
from wevent.journal.tables.table_journal import TableJournal


class SqliteJournal(TableJournal):
    """A journal file; see `wevent.journal.contract.Journal`.

    Args:
        path: the file; made on the first `begin` if it does not exist.
        write: take the writer's lock. Readers, and the registry's queue, need none.
        start_over: make a new journal where another one was lost.
        held: the writer's lock, if the caller has it already and keeps it.

    Raises:
        InvalidJournal: if the file is no journal, damaged or newer.
        JournalLocked: naming the holder.
        StaleJournal: if the side file knows slots of a journal that is not here.
        StorageFailed: if it cannot be opened or written.
    """

    def __init__(
        self, path: str | Path, *, write: bool = False, start_over: bool = False, held: WriterLock | None = None
    ) -> None:
        self.path = Path(path)
        self._file = JournalFile(self.path, write=write or held is not None, start_over=start_over, held=held)
        super().__init__(self._file.database, self._file, started_over=start_over)
        with ExitStack() as undo:
            undo.callback(self._file.close)  # the lock too: whoever tries again must not be told that it is held
            if start_over and not self.is_new:
                self.note_unsafe((STARTED_OVER,))
            undo.pop_all()

    @property
    def is_new(self) -> bool:
        """See `Epochs.is_new`."""
        return self._file.is_new

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """See `Slots.commit`. No page is written before the COMMIT itself, however large a release."""
        self._file.connection.execute("PRAGMA cache_spill = OFF")
        try:
            super().commit(batch, at)
        finally:
            self._file.connection.execute("PRAGMA cache_spill = ON")

    def _write_down(self, batch: Batch, at: Hook) -> None:
        """Nothing: before its COMMIT a draw is in memory alone, and was seen by nobody (spec 10)."""

    @property
    def mark_name(self) -> str:
        """See `Marks.mark_name`: the side file."""
        return lock_path(self.path).name

    def files(self) -> list[Path]:
        """See `Journal.files`."""
        return own_files(self.path)

    def size(self) -> int:
        """See `Journal.size`: of the file."""
        return self.path.stat().st_size

    def writer(self) -> Writer | None:
        """See `Journal.writer`: the holder of the lock."""
        return holder(self.path)

    def backup(self, target: Path, *, replace: bool = False) -> int:
        """Copy the journal while it is in use; the copy knows that it is one. Returns its last slot.

        The copy cannot be published from until it is told through which slot releases went out (spec 10).

        Args:
            target: the copy.
            replace: whether a file that is there may be replaced; never the journal itself or its side files.

        Raises:
            InvalidOutput: if the target is there, or is one of the journal's own files.
            StorageFailed: if it cannot be written.
        """
        return copy_journal(self._file.connection, self.path, target, replace=replace)

    def check(self) -> None:
        """Everything that can be checked, pages included.

        Raises:
            InvalidJournal: if something is not what was stored.
        """
        with readable(self.path):
            check_pages(self._file.connection, self.path)
            super().check()

    def close(self) -> None:
        """See `Journal.close`."""
        self._file.close()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close it. An error that nobody foresaw may come of damage: then that is said instead.

        Raises:
            InvalidJournal: if it does.
        """
        try:
            if isinstance(error, Exception) and not isinstance(error, WeventError) and not self.is_new:
                with readable(self.path):
                    if isinstance(error, apsw.Error):
                        raise error
                    self.check()
        finally:
            self.close()

    def _lay_out(self) -> None:
        schema.lay_out(self._file.database)

    def _is_begun(self) -> None:
        self._file.is_new = False
