"""A copy of a journal, made while it is in use: one file for its owner only, which knows that it is a copy."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw

from wevent.errors import InvalidOutput, StorageFailed
from wevent.file_io import atomic_write, create_private, storage_errors
from wevent.journal.sqlite.lock import is_own_file
from wevent.journal.sqlite.storage import clear_errors, only_number


def copy_journal(database: apsw.Connection, journal: Path, target: Path, *, replace: bool) -> int:
    """Copy a journal; see `SqliteJournal.backup`. What is at the target stays until the copy is whole."""
    _refuse(journal, target, replace=replace)
    with storage_errors(f"to write {target}", "Make room and make the folder writable; nothing was replaced.", target):
        try:
            with atomic_write(target) as partial:
                slot = _copy(database, journal, partial)
                _refuse(journal, target, replace=replace)
            return slot
        except (apsw.FullError, apsw.IOError):
            raise OSError(0, "a full or failing disk") from None


def _copy(database: apsw.Connection, journal: Path, partial: Path) -> int:
    with clear_errors(journal):
        database.execute("SELECT count(*) FROM head").fetchall()  # an error of the journal is not one of the copy
    os.close(create_private(partial))  # ids of users are in it
    copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with copy.backup("main", database, "main") as steps:
            steps.step(-1)
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()
        copy.execute("PRAGMA secure_delete = ON").fetchall()
        copy.execute("UPDATE head SET copied = 1")
        return only_number(copy, "SELECT committed FROM head")
    finally:
        copy.close()


def _refuse(journal: Path, target: Path, *, replace: bool) -> None:
    """Refuse a target that is there, and in any case the journal's own files and what is no file: it stays as it is.

    Raises:
        InvalidOutput: naming what it is.
        StorageFailed: if its folder is not there.
    """
    if is_own_file(journal, target):
        raise InvalidOutput(
            "another file for the backup",
            f"one of the journal's own ({target})",
            "Choose another name.",
            path=str(target),
        )
    if not Path(os.path.realpath(target)).parent.is_dir():
        raise StorageFailed("a backup in an existing folder", f"{target}", "Make the folder first.", path=str(target))
    if (kind := _special_kind(target)) is not None:
        raise InvalidOutput(
            "a file for the backup",
            f"{kind} ({target})",
            "Name a file; what is there is untouched.",
            path=str(target),
        )
    if os.path.lexists(target) and not replace:
        raise InvalidOutput(
            "a new file for the backup",
            f"one that is there already ({target})",
            "Choose another name, or say --force to replace it.",
            path=str(target),
        )


def _special_kind(path: Path) -> str | None:
    """What is at a path, in words, if it is neither a regular file nor nothing; a link is one whatever it leads to."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return None if stat.S_ISREG(mode) else kinds.get(stat.S_IFMT(mode), "a device")
