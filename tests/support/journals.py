"""Every implementation of the journal, as the contract suite uses it; a new one adds itself to JOURNALS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.support.memory_journal import MemoryJournal, Place, Stored
from wevent.journal import Journal, SqliteJournal


class Kept(Protocol):
    """Where one journal is kept."""

    def open(self, *, write: bool = True) -> Journal:
        """Open it."""

    def back_up(self) -> None:
        """Make a backup."""

    def put_back(self) -> None:
        """Put the backup in its place; what is kept outside the journal stays."""


class InFile:
    """A journal in an SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._path, self._backup = folder / "run.journal", folder / "backup.journal"

    def open(self, *, write: bool = True) -> Journal:
        return SqliteJournal(self._path, write=write)

    def back_up(self) -> None:
        with SqliteJournal(self._path) as journal:
            journal.backup(self._backup, replace=True)

    def put_back(self) -> None:
        for ending in ("-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        self._path.write_bytes(self._backup.read_bytes())


class InMemory:
    """A journal in memory."""

    def __init__(self, folder: Path) -> None:
        self._place = Place()
        self._backup: Stored | None = None

    def open(self, *, write: bool = True) -> Journal:
        return MemoryJournal(self._place, write=write)

    def back_up(self) -> None:
        assert self._place.stored is not None
        self._backup = self._place.stored.copied()
        self._backup.registry.copied, self._backup.pending = True, b""

    def put_back(self) -> None:
        assert self._backup is not None
        self._place.stored = self._backup.copied()


JOURNALS: dict[str, Callable[[Path], Kept]] = {"sqlite": InFile, "memory": InMemory}
