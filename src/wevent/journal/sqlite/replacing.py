"""A journal put back from a backup: copied beside its place, checked there, and moved in; what was there is kept."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import apsw

from wevent.errors import InvalidInput, InvalidJournal
from wevent.file_io import create_private, storage_errors, sync_path
from wevent.journal.sqlite.lock import is_own_file
from wevent.journal.sqlite.storage import clear_errors, connect

_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file, and would apply to another one in its place
_AGAIN = "Make room and make the folder writable, and run the same command again."


def copy_backup(backup: Path, journal: Path) -> Path:
    """Copy a backup beside the journal, for its owner only and on disk; the backup is only read.

    The copy knows that it is one, whether or not the backup does: until it is settled nothing is published from it.

    Raises:
        InvalidInput: if the backup is no file of its own.
        InvalidJournal: if it is no wevent journal, of a newer format, or not readable.
        StorageFailed: if it cannot be copied.
    """
    _refuse_source(backup, journal)
    copy = partial_path(journal)
    with storage_errors(f"to copy {backup} to {copy}", _AGAIN, copy):
        remove_partial(journal)
        with backup.open("rb") as source, open(create_private(copy), "wb") as to:
            shutil.copyfileobj(source, to, 1 << 20)
    try:
        connect(copy, create=False)[0].close()  # foreign, cut or newer: before a byte of it is changed
        with clear_errors(copy):
            _run_once(copy, "UPDATE head SET copied = 1")
    except InvalidJournal as error:
        raise _about(error, copy, backup) from None
    return copy


def settle_copy_mode(copy: Path) -> None:
    """One file again, after it was opened for writing, and forced to disk."""
    with clear_errors(copy):
        _run_once(copy)
    with storage_errors(f"to write {copy}", _AGAIN, copy):
        sync_path(copy)


def put_aside(journal: Path) -> list[Path]:
    """Rename a journal and what SQLite keeps beside it to the first free JOURNAL.replaced-N; returns the new names.

    The journal goes first: a write-ahead log without it changes nothing, and the side file says that it is missing.

    Raises:
        StorageFailed: if it cannot be renamed.
    """
    present = [ending for ending in ("", *_BESIDE) if os.path.lexists(f"{journal}{ending}")]
    number = 1
    while any(os.path.lexists(f"{journal}.replaced-{number}{ending}") for ending in ("", *_BESIDE)):
        number += 1
    moved = []
    with storage_errors(f"to rename {journal}", _AGAIN, journal):
        for ending in present:
            target = Path(f"{journal}.replaced-{number}{ending}")
            os.rename(f"{journal}{ending}", target)
            with suppress(OSError):
                target.chmod(0o600)
            moved.append(target)
        sync_path(journal.parent)
    return moved


def move_in(copy: Path, journal: Path) -> None:
    """Put the copy in the journal's place, on disk.

    Raises:
        StorageFailed: if it cannot be renamed.
    """
    with storage_errors(f"to put the copy in place of {journal}", _AGAIN, journal):
        os.replace(copy, journal)
        sync_path(journal.parent)


def partial_path(journal: Path) -> Path:
    """Where a backup is copied to before it is moved in: one place, for the holder of the lock only."""
    return journal.with_name(f".{journal.name}.restoring")


def remove_partial(journal: Path) -> None:
    """Remove a copy that was not moved in, also one that an earlier restore left when it was killed."""
    for ending in ("", *_BESIDE):
        Path(f"{partial_path(journal)}{ending}").unlink(missing_ok=True)


def _refuse_source(backup: Path, journal: Path) -> None:
    if is_own_file(journal, backup):
        raise InvalidInput(
            "a backup that is another file",
            f"one of the journal's own ({backup})",
            "Name the backup.",
            path=str(backup),
        )
    try:
        mode = backup.stat().st_mode
    except OSError as error:
        raise InvalidInput(
            f"a backup at {backup}", (error.strerror or "an error").lower(), "Check the path.", path=str(backup)
        ) from None
    if not stat.S_ISREG(mode):
        raise InvalidInput("a backup file", f"something else ({backup})", "Name a file.", path=str(backup))
    for ending in ("-wal", "-journal"):
        log = Path(os.path.realpath(backup) + ending)
        if log.exists() and log.stat().st_size:
            raise InvalidInput(
                "a backup, which is one file",
                f"one with a log beside it ({log})",
                f"It is a journal in use, or a plain copy of one: make a backup of it first (wevent backup {backup} "
                "TARGET) and restore that.",
                path=str(backup),
            )


def _run_once(copy: Path, statement: str = "") -> None:
    """Without a write-ahead log, so that one file is all there is; one statement if there is any."""
    database = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        database.execute("PRAGMA journal_mode = DELETE").fetchall()
        database.execute("PRAGMA secure_delete = ON").fetchall()
        if statement:
            database.execute(statement)
    finally:
        database.close()


def _about(error: InvalidJournal, copy: Path, backup: Path) -> InvalidJournal:
    """The same, said of the backup."""
    damaged = "damaged" in error.received
    return InvalidJournal(
        "a whole backup of a wevent journal" if damaged else error.expected,
        error.received.replace(str(copy), str(backup)),
        "Take an older backup; nothing was changed." if damaged else "Nothing was changed. " + error.remedy,
        path=str(backup),
    )
