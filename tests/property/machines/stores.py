"""Where the journal of a machine is kept, and what disasters can do to it: in a file, or in memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Protocol

from tests.support.memory_journal import MemoryJournal, Place
from wevent.journal import Journal, SqliteJournal, back_up
from wevent.journal.witness import WitnessRecord
from wevent.verification import verify_journal

FATES = ("kept", "lost", "rolled back")
"""What becomes of the witness when an older copy is put in place of the journal."""


class Store(Protocol):
    """Where a journal is kept."""

    journal: Any  # the class that is opened

    def open(self, *, write: bool = False) -> Journal:
        """Open it."""

    def copy(self, *, backup: bool) -> Any:
        """A copy: a backup that knows that it is one, or the bare files."""

    def put_back(self, made: Any, fate: str) -> None:
        """Put a copy in its place."""

    def violations(self) -> list[Any]:
        """What an audit finds."""


class FileStore:
    """In an SQLite file."""

    def __init__(self, folder: Path, journal: type[SqliteJournal] = SqliteJournal) -> None:
        self.journal = journal
        self._path, self._copies = folder / "run.journal", 0

    def open(self, *, write: bool = False) -> Journal:
        return self.journal(self._path, write=write)

    def copy(self, *, backup: bool) -> Path:
        self._copies += 1
        folder = self._path.parent / f"copy{self._copies}"
        folder.mkdir()
        if backup:
            back_up(self._path, folder / "run.journal")
            shutil.copy(self._beside(".witness"), folder / "run.journal.witness")
        else:
            for ending in ("", "-wal", ".witness"):
                if self._beside(ending).exists():
                    shutil.copy(self._beside(ending), folder / f"run.journal{ending}")
        return folder

    def put_back(self, made: Path, fate: str) -> None:
        for ending in ("", "-wal", "-shm"):
            self._beside(ending).unlink(missing_ok=True)
            if (made / f"run.journal{ending}").exists():
                shutil.copy(made / f"run.journal{ending}", self._beside(ending))
        if fate == "lost":
            self._beside(".witness").unlink()
        elif fate == "rolled back":
            shutil.copy(made / "run.journal.witness", self._beside(".witness"))

    def violations(self) -> list[Any]:
        return verify_journal(self._path).violations

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(f"run.journal{ending}")


class MemoryStore:
    """In memory; nothing reads it but the journal itself, so there is no audit."""

    def __init__(self, folder: Path, journal: type[MemoryJournal] = MemoryJournal) -> None:
        self.journal = journal
        self._place = Place()

    def open(self, *, write: bool = False) -> Journal:
        return self.journal(self._place, write=write)

    def copy(self, *, backup: bool) -> Place:
        assert self._place.stored is not None
        stored = self._place.stored.copied()
        if backup:
            stored.registry.copied = True
        return Place(stored, self._place.record)

    def put_back(self, made: Place, fate: str) -> None:
        assert made.stored is not None
        self._place.stored = made.stored.copied()
        if fate == "lost":
            self._place.record = WitnessRecord()
        elif fate == "rolled back":
            self._place.record = made.record

    def violations(self) -> list[Any]:
        return []
