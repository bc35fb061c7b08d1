"""The files of an open journal, watched by its writer: removed, replaced or cut, they stop it (spec 10).

Files that only grow while the writer is there are remembered by their size: the journal, its witness, the shared memory, and
the write-ahead log, which SQLite never cuts below `LOG_LIMIT`.
"""

from __future__ import annotations

import os
from pathlib import Path

from wevent.errors import StorageFailed
from wevent.file_io import storage_errors
from wevent.journal.sqlite.lock import has_second_name

LOG_LIMIT = 1 << 26
"""The size that SQLite may cut a write-ahead log to, in bytes; every connection is told."""


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
