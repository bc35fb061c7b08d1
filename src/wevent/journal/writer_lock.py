"""One writer per journal: an operating-system lock on the witness, which names its holder.

The system drops the lock when its process ends, however it ends. So a dead holder blocks nobody, and a live one keeps the
journal.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from wevent.errors import JournalLocked, StorageFailed
from wevent.journal.record import Writer
from wevent.journal.witness import WitnessFile, WitnessRecord, read_witness, witness_errors

try:
    import fcntl
except ImportError:  # a system without these locks, Windows: journals can be read there
    fcntl = None  # type: ignore[assignment]


def take_witness(journal: Path) -> WitnessFile:
    """Be the one writer of a journal: lock its witness, which then names this process. `close` ends the lock.

    Raises:
        JournalLocked: naming the holder, if another process has it.
        StorageFailed: if the witness cannot be made or written.
    """
    path = witness_path(journal)
    if fcntl is None:
        raise _without_locks(journal)
    witness = WitnessFile(path, _take(path, journal))
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        witness.name_writer(Writer(os.getpid(), socket.gethostname(), since))
    except BaseException:
        release_witness(witness)  # a record that is torn at its first writing would look like one that shows something
        raise
    return witness


def release_witness(witness: WitnessFile) -> None:
    """End the lock; the witness of a journal that was never begun is removed first, while the lock is held."""
    if witness.is_blank:
        witness.path.unlink(missing_ok=True)
    witness.close()


def witness_path(journal: Path) -> Path:
    """Return the witness of a journal; links are followed, so two names of a journal share it."""
    real = Path(os.path.realpath(journal))
    return real.with_name(real.name + ".witness")


def own_files(journal: Path) -> list[Path]:
    """The files that belong to a journal: it, its witness, and what SQLite keeps beside it."""
    real = os.path.realpath(journal)
    return [witness_path(journal), *(Path(real + ending) for ending in ("", "-wal", "-shm", "-journal"))]


def is_own_file(journal: Path, path: Path) -> bool:
    """Whether a path leads to one of the files that belong to a journal, by whatever name."""
    if os.path.realpath(path) in {os.path.realpath(file) for file in own_files(journal)}:
        return True
    return path.exists() and journal.exists() and path.samefile(journal)


def holder(journal: Path) -> Writer | None:
    """Who is publishing into a journal now, None if nobody is."""
    path = witness_path(journal)
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
        return read_witness(path).writer
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


def _take(path: Path, journal: Path) -> int:
    """Open and lock the witness; again if it was removed meanwhile by a holder that had no use for it."""
    while True:
        with witness_errors(path):
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(file, tries=4):  # another process may only be looking, see `holder`
            os.close(file)
            raise _held(journal, read_witness(path))
        if same_file(path, os.fstat(file)):
            return file
        os.close(file)


def _held(journal: Path, record: WitnessRecord) -> JournalLocked:
    return JournalLocked(
        "to be the only writer of the journal",
        f"one held by process {record.pid} on {record.host} since {record.since}",
        "Stop that process first, or publish into another journal.",
        path=str(journal),
        holder=record.writer._asdict(),
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
