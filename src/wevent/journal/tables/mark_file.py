"""A side file that is open for writing: its mark, and places for what else is kept outside a journal."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wevent.file_io import read_at, storage_errors, write_at
from wevent.journal.contents import Writer
from wevent.journal.tables.side_mark import MARK_SIZE, Earlier, Mark


class MarkFile:
    """The side file of a journal's writer.

    Args:
        path: where it is.
        file: it, open for reading and writing; closed by `release`.
        before: what it said before.

    Attributes:
        path: where it is.
        file: it, open; −1 once it is released.
        before: what it said before.
        writes: how often something was written to it.
    """

    def __init__(self, path: Path, file: int, before: Mark) -> None:
        self.path, self.file, self.before = path, file, before
        self._mark, self.writes = before, 0

    def name_writer(self, writer: Writer) -> None:
        """Write down who writes the journal; a text that cannot be read stays as it is, and so does what it may say.

        Raises:
            StorageFailed: if it cannot be written.
        """
        self._mark = replace(self.before, pid=writer.pid, host=writer.host, since=writer.since, readable=True)
        if self.before.readable:
            self._write()

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

    def mark_revision(self, number: int, chain: str) -> None:
        """Store a new state of the registry, before it is committed.

        A witness that shows no state yet is left as it is: a restore that was announced and not settled must not look like
        slots that were committed here.
        """
        if self._mark.revision < 0:
            return
        self._mark = replace(self._mark, revision=number, chain=chain)
        self._write()

    @property
    def is_unsaid(self) -> bool:
        """Whether it says nothing of any journal, and never did."""
        return self.before == Mark() and not self._mark.journal

    def sync(self) -> None:
        """Force it to disk.

        Raises:
            StorageFailed: if that fails.
        """
        with side_errors(self.path):
            os.fsync(self.file)

    def read(self, number: int, place: int) -> bytes:
        """Bytes of it."""
        return read_at(self.file, number, place)

    def overwrite(self, data: bytes, place: int) -> None:
        """Overwrite bytes of it, in place.

        Raises:
            StorageFailed: if it cannot be written.
        """
        self.writes += 1
        with side_errors(self.path):
            write_at(self.file, data, place)

    def release(self) -> None:
        """Close it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _write(self) -> None:
        fields = msgspec.to_builtins(self._mark)
        del fields["readable"]
        while len(text := msgspec.json.encode(fields)) > MARK_SIZE:
            fields["earlier"] = fields["earlier"][1:]
        self.overwrite(text.ljust(MARK_SIZE), 0)


def side_errors(path: Path) -> AbstractContextManager[None]:
    """Raise `StorageFailed` if a side file cannot be written."""
    return storage_errors(f"to write {path}", "Make room and make the folder writable; nothing was lost.", path)
