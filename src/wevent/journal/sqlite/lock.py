"""One writer per journal: an operating-system lock on a side file that names its holder.

The system drops the lock when its process ends, however it ends, so a dead holder never blocks anyone and a live one is
never pushed aside. What the file says: `wevent.journal.sqlite.side_mark`.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wevent.errors import JournalLocked, StorageFailed
from wevent.journal.contents import Writer
from wevent.journal.sqlite.evidence import ChangeTable
from wevent.journal.sqlite.places import read_at, write_at
from wevent.journal.sqlite.side_mark import MARK_SIZE, Earlier, Mark, lock_path, read_mark

try:
    import fcntl
except ImportError:  # a system without these locks, Windows: journals can be read there
    fcntl = None  # type: ignore[assignment]


class WriterLock:
    """The lock of one journal, held from construction to `release`.

    Args:
        journal: the journal's path; the side file is the same with ".lock" behind.

    Raises:
        JournalLocked: naming the holder, if another process has it.
        StorageFailed: if the side file cannot be made or written.

    Attributes:
        before: what the side file said before.
        file: its open file.
    """

    def __init__(self, journal: Path) -> None:
        self.path = lock_path(journal)
        if fcntl is None:
            raise _without_locks(journal)
        self.file = self._take(journal)
        self.before = read_mark(self.path)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._mark = replace(self.before, pid=os.getpid(), host=socket.gethostname(), since=since, readable=True)
        try:
            if self.before.readable:
                self._write()
        except BaseException:
            self.forget()  # a text that is torn at its first writing would look like one that says something
            self.release()
            raise
        self.changes = ChangeTable(self)

    def mark(self, **known: Any) -> None:
        """Write down how far the journal is, after a commit and before its releases go out.

        Not forced to disk: it survives a crash of the process. After a power failure it may be older, never wrong.

        Args:
            **known: the fields of `Mark` that are known of the journal.
        """
        # A foreign mark is kept, whoever allowed it.
        if self._mark.committed and self._mark.journal != known["journal"]:
            earlier = [*self._mark.earlier, Earlier(self._mark.journal, self._mark.committed)]
            self._mark = replace(self._mark, earlier=earlier)
        self._mark = replace(self._mark, **known)
        self._write()

    def sync(self) -> None:
        """Force the side file to disk."""
        try:
            os.fsync(self.file)
        except OSError as error:
            raise self._failed(error) from None

    def read(self, number: int, place: int) -> bytes:
        """Bytes of the side file."""
        return read_at(self.file, number, place)

    def overwrite(self, data: bytes, place: int) -> None:
        """Overwrite bytes of the side file, in place.

        Raises:
            StorageFailed: if it cannot be written.
        """
        try:
            write_at(self.file, data, place)
        except OSError as error:
            raise self._failed(error) from None

    def forget(self) -> None:
        """Remove the side file of a journal that was never begun, unless it says something; the lock is still held."""
        if self.before == Mark() and not self._mark.journal:
            self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let the next writer in."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _take(self, journal: Path) -> int:
        """Open and lock the side file; again if it was removed meanwhile by a holder that had no use for it."""
        while True:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise self._failed(error) from None
            if not _try_lock(file, tries=4):  # another process may only be looking, see `holder`
                os.close(file)
                raise _held(journal, read_mark(self.path))
            if same_file(self.path, os.fstat(file)):
                return file
            os.close(file)

    def _write(self) -> None:
        fields = msgspec.to_builtins(self._mark)
        del fields["readable"]
        while len(text := msgspec.json.encode(fields)) > MARK_SIZE:
            fields["earlier"] = fields["earlier"][1:]
        self.overwrite(text.ljust(MARK_SIZE), 0)

    def _failed(self, error: OSError) -> StorageFailed:
        return StorageFailed(
            f"to write {self.path}",
            error.strerror or "an error",
            "Make room and make the folder writable; nothing was lost.",
            path=str(self.path),
        )


def own_files(journal: Path) -> list[Path]:
    """The files that belong to a journal: it, its side file, and what SQLite keeps beside it."""
    real = os.path.realpath(journal)
    return [lock_path(journal), *(Path(real + ending) for ending in ("", "-wal", "-shm", "-journal"))]


def is_own_file(journal: Path, path: Path) -> bool:
    """Whether a path leads to one of the files that belong to a journal, by whatever name."""
    if os.path.realpath(path) in {os.path.realpath(file) for file in own_files(journal)}:
        return True
    return path.exists() and journal.exists() and path.samefile(journal)


def holder(journal: Path) -> Writer | None:
    """Who is publishing into a journal now, None if nobody is."""
    path = lock_path(journal)
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    if fcntl is None:  # nobody can publish here
        os.close(file)
        return None
    try:
        if _try_lock(file):
            return None
        mark = read_mark(path)
        return Writer(mark.pid, mark.host, mark.since)
    finally:
        os.close(file)


def same_file(path: Path, known: os.stat_result) -> bool:
    """Whether a path still leads to a file that was seen before."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (known.st_dev, known.st_ino)


def has_second_name(path: Path) -> bool:
    """Whether a file has hard links: under each name it would have a lock and a write-ahead log of its own."""
    try:
        return os.stat(path).st_nlink > 1
    except OSError:
        return False


def _held(journal: Path, mark: Mark) -> JournalLocked:
    return JournalLocked(
        "to be the only writer of the journal",
        f"one held by process {mark.pid} on {mark.host} since {mark.since}",
        "Stop that process first, or publish into another journal.",
        path=str(journal),
        holder={"pid": mark.pid, "host": mark.host, "since": mark.since},
    )


def _without_locks(journal: Path) -> StorageFailed:
    return StorageFailed(
        "a system that keeps a second writer out (Linux or macOS)",
        "one without such locks",
        "Publish there; reading journals and the library itself work here too.",
        path=str(journal),
    )


def _try_lock(file: int, tries: int = 1) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if tries == 1:
            return False
        time.sleep(0.05)
        return _try_lock(file, tries - 1)
    return True
