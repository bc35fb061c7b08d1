"""Where a writer writes down what it drew before any of it is sent to the database: one file per fencing number (spec 10).

It is overwritten in place, and forced to disk once: it is whole, or says nothing, and then nothing of that draw was sent.
It never shrinks, so whether there is room for a draw does not depend on what was drawn, once there was for a larger one.
Only the writer with that number writes it; whoever comes next reads those before it, the newest first.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from contextlib import suppress
from pathlib import Path

from wevent.errors import InvalidJournal
from wevent.journal.place import PostgresPlace
from wevent.journal.tables.mark_file import failed_side
from wevent.journal.whole_file import sync_path

_HEAD = struct.Struct("<8sQ32s")  # name, length, digest
_NAME = b"draft1\0\0"
_ROOM = 1 << 16  # files are a multiple of it long


class DraftFiles:
    """The drafts of one journal.

    Args:
        place: the journal, with its side folder.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._name = re.compile(rf"{re.escape(place.schema)}\.([0-9]{{1,18}})\.draft")
        self._path: Path | None = None
        self._file, self._fence = -1, 0
        self._is_stored = True  # whether what the own file says is

    def begin(self, fence: int) -> None:
        """Make the own file; the fencing number is in force.

        Raises:
            StorageFailed: if it cannot be made.
        """
        self._fence, self._path = fence, self._of(fence)
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            sync_path(self._path.parent)
        except OSError as error:
            raise failed_side(self._path, error) from None

    def found(self) -> list[bytes]:
        """What writers before wrote down, the newest first; those that are not whole say nothing.

        Raises:
            InvalidJournal: for a draft of a later version of this program.
            StorageFailed: if the folder cannot be read.
        """
        read = (self._read(fence) for fence in sorted(self._fences(), reverse=True) if fence != self._fence)
        return [data for data in read if data is not None]

    def keep(self, data: bytes) -> None:
        """Write down what was drawn; on disk on return.

        Raises:
            StorageFailed: if it cannot be: nothing of it may be sent then.
        """
        assert self._path is not None
        self._is_stored = False
        whole = _HEAD.pack(_NAME, len(data), hashlib.sha256(data).digest()) + data
        try:
            self._overwrite(whole + bytes(-len(whole) % _ROOM))
        except OSError as error:
            raise failed_side(self._path, error) from None

    def stored(self, *, forget: bool = False) -> None:
        """What was written down last is committed.

        Args:
            forget: whether it has ids in it: then nothing of it stays.
        """
        self._is_stored = True
        if forget:
            assert self._path is not None
            try:
                self._overwrite(bytes(os.fstat(self._file).st_size))
            except OSError as error:
                raise failed_side(self._path, error) from None

    def drop_older(self) -> None:
        """Remove what writers before wrote down: it is stored, or is of a journal that was not like this."""
        for fence in self._fences():
            if fence < self._fence:
                self._of(fence).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the own file; it goes if what it says is stored."""
        if self._file < 0 or self._path is None:
            return
        os.close(self._file)
        self._file = -1
        if self._is_stored:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _overwrite(self, data: bytes) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self._file, data[done:], done)
        os.fsync(self._file)

    def _read(self, fence: int) -> bytes | None:
        path = self._of(fence)
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # whoever wrote it has just removed it
            return None
        except OSError as error:
            raise failed_side(path, error) from None
        if len(content) < _HEAD.size or not content[: _HEAD.size].strip(b"\0"):
            return None
        name, length, digest = _HEAD.unpack_from(content)
        if name != _NAME:
            raise InvalidJournal(
                "a draft of a slot that this version knows",
                f"{path.name}, which a later one wrote",
                "Upgrade wevent; the journal is untouched.",
                path=str(self._place),
            )
        data = content[_HEAD.size : _HEAD.size + length]
        return data if hashlib.sha256(data).digest() == digest else None

    def _fences(self) -> list[int]:
        folder = self._place.side_folder
        try:
            found = [self._name.fullmatch(name) for name in os.listdir(folder)]
        except OSError as error:
            raise failed_side(folder, error) from None
        return [int(name[1]) for name in found if name is not None]

    def _of(self, fence: int) -> Path:
        return self._place.side_folder / f"{self._place.schema}.{fence}.draft"
