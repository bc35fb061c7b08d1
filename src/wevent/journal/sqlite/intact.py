"""The files of an open journal, watched by its writer: removed, replaced or cut, they stop it (spec 10).

What only ever grows while the writer is there is remembered by its size. The journal, its side file and the shared memory
do. SQLite cuts the write-ahead log only when it begins it anew, and then never below `LOG_LIMIT`; the log is checkpointed,
also by other processes, without becoming shorter, and it is removed by the last who closes it, which the writer is. So
below that limit any log that is shorter than it was has been cut by somebody else.

A log that was cut and written to afterwards is long again, with a hole of zeros before what was written last. No frame of
a log begins with zeros, so every frame written since the last look is looked at, and the one before them.
"""

from __future__ import annotations

import os
from pathlib import Path

from wevent.errors import StorageFailed
from wevent.file_io import read_at, storage_errors
from wevent.journal.sqlite.lock import has_second_name

LOG_LIMIT = 1 << 26
"""The size that SQLite may cut a write-ahead log to, in bytes; every connection is told."""

_LOG_HEAD = 32  # bytes: magic, version, size of a page, …
_FRAME_HEAD = 24  # bytes: number of the page, …, before the page itself


class Place:
    """The files of a journal that is open for writing, as they were last seen.

    Args:
        path: the journal.
        side: its side file.
    """

    def __init__(self, path: Path, side: Path) -> None:
        self._path = path
        real = os.path.realpath(path)
        self._growing = [_Growing(path), _Growing(side), _Growing(Path(real + "-shm"))]
        self._log = _Log(Path(real + "-wal"))
        self.is_intact()

    def is_intact(self) -> bool:
        """Whether every file is still the one it was, and as long.

        Raises:
            OSError: if that cannot be told.
        """
        return (
            all(file.is_intact() for file in self._growing)
            and self._log.is_intact()
            and not has_second_name(self._path)
        )

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


class _Log:
    """The write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._file = _Growing(path, LOG_LIMIT)
        self._seen: int | None = None  # where a frame begins that was written; after it all frames up to the end are

    def is_intact(self) -> bool:
        """Whether nobody cut it, also if it was written to afterwards."""
        if not self._file.is_intact():
            return False
        if self._file.size < _LOG_HEAD + _FRAME_HEAD:
            return True
        try:
            file = os.open(self._file.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            return False
        try:
            return self._are_written(file)
        finally:
            os.close(file)

    def _are_written(self, file: int) -> bool:
        """Whether no frame since the last look begins with zeros, nor the log itself."""
        head = read_at(file, _LOG_HEAD, 0)
        if not any(head):  # left so by a power failure, or cut and gone on
            return self._seen is None
        frame = _FRAME_HEAD + int.from_bytes(head[8:12], "big")
        last = _LOG_HEAD + (self._file.size - _LOG_HEAD) // frame * frame - frame
        if last < _LOG_HEAD:
            return True
        if self._seen is None:
            self._seen = last if any(read_at(file, _FRAME_HEAD, last)) else None
            return True
        written = all(any(read_at(file, _FRAME_HEAD, place)) for place in range(self._seen, last + 1, frame))
        self._seen = last
        return written
