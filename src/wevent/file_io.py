"""Files: forced to disk, replaced whole, overwritten in place, destroyed; and the error when the system refuses."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wevent.errors import StorageFailed, may_pass


@contextmanager
def storage_errors(task: str, remedy: str, path: Path | str) -> Iterator[None]:
    """Raise `StorageFailed` if the operating system refuses a task, such as "to write a file"."""
    try:
        yield
    except OSError as error:
        problem = f"wevent failed {task}: {error.strerror or 'an error'}."
        raise StorageFailed(problem, remedy, path=str(path), passing=may_pass(error)) from None


@contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Yield a path for a file that then takes the target's place; the target stays until the file is whole.

    The path is in a folder of its own, for its owner only, with room for what a writer needs beside the file. If something
    fails, the folder is removed with its content.
    """
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".partial", dir=target.parent) as folder:
        made = Path(folder) / target.name
        yield made
        sync_path(made)
        os.replace(made, target)
        sync_path(target.parent)


def atomic_write_text(target: Path, text: str) -> None:
    """Write a text file whole or not at all, and its folder if it is missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as made:
        made.write_text(text, encoding="utf-8")


def create_private(path: Path) -> int:
    """Return the descriptor of a new file that only its owner can read. Raises `FileExistsError` if there is one."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def link_whole(path: Path, data: bytes, unfinished: Path) -> None:
    """Write a private file under another name, then link it: nobody sees a part of it. Raises `FileExistsError`."""
    with open(create_private(unfinished), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.link(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)


def probe_write(path: Path, size: int) -> None:
    """Write a new file, force it to disk and remove it."""
    file = create_private(path)
    try:
        path.unlink()  # first: a crash leaves nothing
        if os.write(file, bytes(size)) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
    finally:
        os.close(file)


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file, forced to disk; raise `StorageFailed` for a pipe, which would wait for its writer."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise StorageFailed(f"{path} is a pipe, a folder or a device, not a file.", "Remove it.", path=str(path))
        os.fsync(file)
        return read_at(file, status.st_size, 0)
    finally:
        os.close(file)


def sync_path(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def read_at(file: int, count: int, offset: int) -> bytes:
    """Read bytes of an open file; fewer at its end."""
    parts = []
    while count > 0 and (part := os.pread(file, count, offset)):
        parts.append(part)
        count, offset = count - len(part), offset + len(part)
    return b"".join(parts)


def write_at(file: int, data: bytes, offset: int) -> None:
    """Overwrite bytes of an open file in place, all of them."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file, rest, offset)
        rest, offset = rest[written:], offset + written


def destroy_file(path: Path, start: int, size: int) -> None:
    """Overwrite bytes of a file with zeros, forced to disk, and remove the file; a missing file is no error."""
    with suppress(FileNotFoundError):  # others may do the same at the same time
        with path.open("rb+") as file:
            file.seek(start)
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
