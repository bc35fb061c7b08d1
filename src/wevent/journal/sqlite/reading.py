"""SQLite files that are only read, wherever they are: also on a read-only disk or in a folder of somebody else."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import apsw

from wevent.errors import StorageFailed

BUSY_TIMEOUT_MS = 10_000


def open_for_reading(path: Path) -> apsw.Connection:
    """A connection to a file that may be in use.

    Reading a file with a write-ahead log needs a file beside it, and so a writable folder. Where there is none and no
    log either, nobody is writing: the file is read as it is.

    Raises:
        StorageFailed: if there is a log that cannot be read; without it the file would look older than it is.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    try:
        connection.pragma("schema_version")
        return connection
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
    real = os.path.realpath(path)
    log = Path(real + "-wal")
    if log.exists() and log.stat().st_size:
        raise StorageFailed(
            f"a folder that can be written, to read {path} together with its write-ahead log",
            "one that cannot",
            f"Copy {path.name} and {log.name} to a writable folder and read them there.",
            path=str(path),
        )
    return apsw.Connection(f"file:{quote(real)}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
