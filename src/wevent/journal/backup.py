"""Backups of journal files: a copy made while the journal is in use, and a backup put in the place of a journal.

A copy is one file for its owner only, and knows that it is a copy: nothing is published from it until it is restored.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import cast

import apsw

from wevent.errors import InvalidInput, InvalidJournal, InvalidOutput, StorageFailed
from wevent.file_io import atomic_write, create_private, storage_errors, sync_path
from wevent.journal.address import JournalAddress, journal_file
from wevent.journal.sqlite import BESIDE, SqliteDatabase, SqliteJournal, own_files, translate_errors

_AGAIN = "Make room and make the folder writable, and run the same command again."


def back_up(place: str | JournalAddress, target: Path, *, replace: bool = False) -> int:
    """Copy a journal while it is in use, and return its last slot.

    The copy cannot be published from until it is told through which slot releases went out (spec 10).

    Args:
        place: the journal.
        target: path of the copy. A file there stays until the copy is whole.
        replace: whether to replace an existing file.

    Raises:
        InvalidJournal: for a database, which has ways of its own.
    """
    with SqliteJournal(journal_file(place, "wevent backup")) as journal:
        _refuse_target(journal.path, target, replace=replace)
        remedy = "Make room and make the folder writable; nothing was replaced."
        with storage_errors(f"to write {target}", remedy, target):
            try:
                with atomic_write(target) as partial:
                    slot = _copy(journal, partial)
                    _refuse_target(journal.path, target, replace=replace)
                return slot
            except (apsw.FullError, apsw.IOError) as error:
                raise OSError(
                    errno.ENOSPC if isinstance(error, apsw.FullError) else errno.EIO, "a full or failing disk"
                ) from None


def copy_backup(backup: Path, journal: Path) -> Path:
    """Copy a backup beside the journal, durable; the backup is only read. Refuse one that is no journal of this format."""
    _refuse_source(backup, journal)
    copy = _partial_path(journal)
    with storage_errors(f"to copy {backup} to {copy}", _AGAIN, copy):
        remove_partial(journal)
        with backup.open("rb") as source, open(create_private(copy), "wb") as to:
            shutil.copyfileobj(source, to, 1 << 20)
    try:
        SqliteDatabase(copy).connection.close()  # foreign, cut or newer: before a byte of it is changed
        _run_once(copy, "UPDATE head SET copied = 1")
    except InvalidJournal as error:
        fix = error.fix if "format" in error.facts else "Nothing was changed. Name another backup."
        raise InvalidJournal(error.problem.replace(str(copy), str(backup)), fix, path=str(backup)) from None
    return copy


def to_one_file(copy: Path) -> None:
    """Make one durable file of a copy that was opened for writing."""
    _run_once(copy)
    with storage_errors(f"to write {copy}", _AGAIN, copy):
        sync_path(copy)


def put_aside(journal: Path) -> list[Path]:
    """Rename a journal and what SQLite keeps beside it to the first free JOURNAL.replaced-N; return the new names.

    The journal goes first: a write-ahead log without it changes nothing, and the witness shows that it is missing.
    """
    present = [ending for ending in ("", *BESIDE) if os.path.lexists(f"{journal}{ending}")]
    number = 1
    while any(os.path.lexists(f"{journal}.replaced-{number}{ending}") for ending in ("", *BESIDE)):
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
    """Put the copy in the journal's place, durable."""
    with storage_errors(f"to put the copy in place of {journal}", _AGAIN, journal):
        os.replace(copy, journal)
        sync_path(journal.parent)


def remove_partial(journal: Path) -> None:
    """Remove a copy that was not moved in, also one that an earlier restore left when it was killed."""
    for ending in ("", *BESIDE):
        Path(f"{_partial_path(journal)}{ending}").unlink(missing_ok=True)


def _partial_path(journal: Path) -> Path:
    """Return the place of a copy before it is moved in: one, for the holder of the lock only."""
    return journal.with_name(f".{journal.name}.restoring")


def _is_own_file(journal: Path, path: Path) -> bool:
    """Return whether a path leads to one of the files that belong to a journal, by whatever name."""
    if os.path.realpath(path) in {os.path.realpath(file) for file in own_files(journal)}:
        return True
    return path.exists() and journal.exists() and path.samefile(journal)


def _copy(journal: SqliteJournal, partial: Path) -> int:
    database = journal.connection
    with translate_errors(journal.path):
        database.execute("SELECT count(*) FROM head").fetchall()  # an error of the journal is not one of the copy
    os.close(create_private(partial))  # ids of users are in it
    copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with copy.backup("main", database, "main") as steps:
            steps.step(-1)
        _make_single(copy)
        copy.execute("UPDATE head SET copied = 1")
        return cast(int, copy.execute("SELECT committed FROM head").fetchall()[0][0])
    finally:
        copy.close()


def _run_once(copy: Path, statement: str = "") -> None:
    """Run a statement without a write-ahead log."""
    with translate_errors(copy):
        database = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _make_single(database)
            database.execute(statement)
        finally:
            database.close()


def _make_single(database: apsw.Connection) -> None:
    """Do without a write-ahead log from now on, so that one file is all there is."""
    database.execute("PRAGMA journal_mode = DELETE").fetchall()
    database.execute("PRAGMA secure_delete = ON").fetchall()


def _refuse_target(journal: Path, target: Path, *, replace: bool) -> None:
    """Refuse a target that is there, and in any case the journal's own files and what is no file."""
    if not Path(os.path.realpath(target)).parent.is_dir():
        problem = f"The backup {target} is not in an existing folder."
        raise StorageFailed(problem, "Make the folder first.", path=str(target))
    if _is_own_file(journal, target):
        problem, fix = f"{target} is one of the journal's own files.", "Choose another name."
    elif (kind := _special_kind(target)) is not None:
        problem, fix = f"The backup cannot replace {kind} ({target}).", "Name a file; what is there is untouched."
    elif os.path.lexists(target) and not replace:
        problem, fix = f"{target} is there already.", "Choose another name, or say --force to replace it."
    else:
        return
    raise InvalidOutput(problem, fix, path=str(target))


def _refuse_source(backup: Path, journal: Path) -> None:
    logs = [f"{os.path.realpath(backup)}{ending}" for ending in ("-wal", "-journal")]
    log = next((log for log in logs if os.path.exists(log) and os.path.getsize(log)), None)
    if _is_own_file(journal, backup):
        problem, fix = f"The backup {backup} is one of the journal's own files.", "Name the backup."
    elif not os.path.exists(backup):
        problem, fix = f"There is no backup at {backup}.", "Check the path."
    elif not os.path.isfile(backup):
        problem, fix = f"The backup {backup} is no file.", "Name a file."
    elif log is not None:
        problem = f"The backup {backup} is not one file: there is a log beside it ({log})."
        fix = (
            f"It is a journal in use, or a plain copy of one: make a backup of it first (wevent backup {backup} TARGET) "
            "and restore that."
        )
    else:
        return
    raise InvalidInput(problem, fix, path=str(backup))


def _special_kind(path: Path) -> str | None:
    """Return what is at a path if it is neither a regular file nor nothing; a link is one whatever it leads to."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    kinds = {"l": "a symbolic link", "d": "a folder", "p": "a pipe", "s": "a socket"}
    return None if stat.S_ISREG(mode) else kinds.get(stat.filemode(mode)[0], "a device")
