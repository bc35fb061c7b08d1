"""The journal in one SQLite file: write-ahead log, every commit forced to disk, one writer (spec 10)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import apsw

from wevent.errors import WeventError
from wevent.journal.backup import copy_journal
from wevent.journal.contents import Batch, Hook, no_hook
from wevent.journal.journal import SqlJournal
from wevent.journal.sqlite.file import JournalFile
from wevent.journal.sqlite.storage import readable
from wevent.journal.witness import WitnessFile


class SqliteJournal(SqlJournal):
    """A journal file; see `wevent.journal.contract.Journal`.

    Args:
        path: the file; made on the first `begin` if it does not exist.
        write: be the one writer. Readers, and requests to the registry, need not.
        start_over: make a new journal where another one was lost.
        held: the witness, if the caller has locked it already and keeps it.
        released_through: see `SqlJournal`.

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
