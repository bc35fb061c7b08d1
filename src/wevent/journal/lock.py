"""One writer per journal: an operating-system lock on a side file that names its holder.

The system drops the lock when its process ends, however it ends, so a dead holder never blocks anyone and a live one is
never pushed aside. The file's text only names the holder, and the last slot it committed: a journal that knows less was
restored from an old copy (see `mark`).
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
from wevent.journal.evidence import ChangeTable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_SIZE = 1024  # bytes of the mark, at the start of the side file


class Mark(msgspec.Struct, kw_only=True):
    """The text of the side file.

    Attributes:
        pid, host, since: who holds the lock, or held it last.
        journal: the journal's own id.
        committed: the last slot committed by the holder, in a journal that ended with `link`.
        link: hexadecimal end of the hash chain at that slot.
        incarnation: of the journal: a copy that went on by itself has another one.
        epochs: how many epochs the journal had.
        widest: the widest window of any of them.
    """

    pid: int = 0
    host: str = ""
    since: str = ""
    journal: str = ""
    committed: int = 0
    link: str = ""
    incarnation: str = ""
    epochs: int = 0
    widest: int = 0


class WriterLock:
    """The lock of one journal, held from construction to `release`.

    Args:
        journal: the journal's path; the side file is the same with ".lock" behind.

    Raises:
        JournalLocked: naming the holder, if another process has it.
    """

    def __init__(self, journal: Path) -> None:
        self.path = lock_path(journal)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageFailed(
                f"to write {self.path}", error.strerror or "an error", "Make the folder writable.", path=str(journal)
            ) from None
        if not _try_lock(self._file, tries=4):  # another process may only be looking, see `holder`
            holder = read_mark(self.path)
            os.close(self._file)
            raise JournalLocked(
                "to be the only writer of the journal",
                f"one held by process {holder.pid} on {holder.host} since {holder.since}",
                "Stop that process first, or publish into another journal.",
                path=str(journal),
                holder={"pid": holder.pid, "host": holder.host, "since": holder.since},
            )
        self.before = read_mark(self.path)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._mark = replace(self.before, pid=os.getpid(), host=socket.gethostname(), since=since)
        self.changes = ChangeTable(self._file)
        self._write()

    def mark(self, **known: Any) -> None:
        """Write down how far the journal is, after a commit and before its releases go out.

        Not forced to disk: it survives a crash of the process. After a power failure it may be older, never wrong.

        Args:
            **known: the fields of `Mark` that are known of the journal.
        """
        self._mark = replace(self._mark, **known)
        self._write()

    def release(self) -> None:
        """Let the next writer in."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self) -> None:
        text = msgspec.json.encode(self._mark)
        text += b" " * max(0, _SIZE - len(text))  # always the same length: overwriting never leaves a mixed text
        os.pwrite(self._file, text, 0) if hasattr(os, "pwrite") else _write_at_start(self._file, text)


def lock_path(journal: Path) -> Path:
    """The side file of a journal; links are followed, so two names of a journal share it."""
    real = Path(os.path.realpath(journal))
    return real.with_name(real.name + ".lock")


def read_mark(path: Path) -> Mark:
    """What a side file says; an empty mark if there is none or it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(_SIZE)
        return msgspec.json.decode(text.strip(b" \0") or b"{}", type=Mark)
    except (OSError, msgspec.MsgspecError):
        return Mark()


def holder(journal: Path) -> dict[str, Any] | None:
    """Who is publishing into a journal now, None if nobody is."""
    path = lock_path(journal)
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if _try_lock(file):
            return None
        mark = read_mark(path)
        return {"pid": mark.pid, "host": mark.host, "since": mark.since}
    finally:
        os.close(file)


def _try_lock(file: int, tries: int = 1) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _lock_windows(file)
    except OSError:
        if tries == 1:
            return False
        time.sleep(0.05)
        return _try_lock(file, tries - 1)
    return True


def _lock_windows(file: int) -> None:
    import msvcrt

    os.lseek(file, 4096, os.SEEK_SET)  # beyond the text, so that others can read who holds it
    msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]


def _write_at_start(file: int, text: bytes) -> None:
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, text)
