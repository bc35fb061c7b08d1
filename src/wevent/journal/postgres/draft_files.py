"""Where a writer writes down what it drew before any of it is sent to the database: one file per fencing number (spec 10).

It is overwritten in place, and forced to disk once: it is whole, or says nothing, and then nothing of that draw was sent.
Room for it is taken before anything is drawn: for a slot of so many cells, then twice what the last draw took.
▲ So whether a draw can be written down hardly depends on it. Only the writer with that number writes the file; whoever
comes next reads those before it, the newest first. It goes once its slots are committed and known outside.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import struct
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from wevent.errors import InvalidJournal, StorageFailed
from wevent.file_io import create_private, destroy_file, sync_path, write_at
from wevent.journal.place import PostgresPlace
from wevent.journal.tables.draft import Draft, decode_draft, encode_draft
from wevent.journal.tables.mark_file import side_errors

_HEAD = struct.Struct("<8sQ32s")  # name, length, digest
_NAME = b"draft1\0\0"
_ROOM = 1 << 20  # for a draw of few cells, and a multiple of it for others
_PER_CELL = 64  # bytes: value, error and measurement, each of eight bytes or two numbers of eight


class DraftFiles:
    """The drafts of one journal.

    Args:
        place: the journal, with its side folder.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._name = re.compile(rf"{re.escape(place.schema)}\.([0-9]{{1,18}})\.draft")
        self._path: Path | None = None
        self._file, self._fence, self._room = -1, 0, 0
        self._state: Literal["nothing", "written", "committed"] = (
            "nothing"  # what the own file says, and what became of it
        )
        self._length = 0  # of the last draft

    def begin(self, fence: int) -> None:
        """Make the own file; the fencing number is in force.

        Raises:
            StorageFailed: if it cannot be made.
        """
        self._fence, self._path = fence, self._of(fence)
        with side_errors(self._path):
            self._file = create_private(self._path)
            sync_path(self._path.parent)

    def take_room(self, cells: int) -> None:
        """Have room for a slot of so many cells, which is not drawn yet.

        Raises:
            StorageFailed: if there is none.
        """
        if self._path is None:
            return
        with side_errors(self._path):
            self._take_room(_PER_CELL * cells)

    def found(self) -> list[Draft]:
        """What writers before wrote down, the newest first; those that are not whole say nothing.

        Raises:
            InvalidJournal: for a draft of a later version of this program, or one that cannot be understood.
            StorageFailed: if the folder cannot be read.
        """
        read = (self._read(fence) for fence in sorted(self.fences(), reverse=True) if fence != self._fence)
        return [draft for draft in read if draft is not None]

    def keep(self, draft: Draft) -> None:
        """Write down what was drawn; on disk on return.

        Raises:
            StorageFailed: if it cannot be: nothing of it may be sent then, and nothing of it stays.
        """
        assert self._path is not None
        if not os.fstat(self._file).st_nlink:
            raise StorageFailed(
                f"{self._path} to stay in its place while the journal is published into",
                "one that was removed",
                "Nothing more went out: run the same command again.",
                path=str(self._path),
            )
        data = encode_draft(draft)
        self._state, self._length = "written", _HEAD.size + len(data)
        try:
            with side_errors(self._path):
                self._overwrite(_HEAD.pack(_NAME, len(data), hashlib.sha256(data).digest()) + data)
        except StorageFailed:
            self.unsent()
            raise

    def unsent(self) -> None:
        """Nothing of what was written down last was sent, nor will be: it is no draw of anything."""
        with suppress(OSError):
            self._clear()
            self._state = "nothing"

    def committed(self) -> None:
        """What was written down last is committed."""
        self._state = "committed"

    def marked(self, *, forget: bool = False) -> None:
        """What is committed is known outside; room is taken for the next draw, which is not made yet.

        Args:
            forget: whether ids were in it: then nothing of it stays.

        Raises:
            StorageFailed: if there is no room.
        """
        if self._state != "committed":
            return
        assert self._path is not None
        self._state = "nothing"
        with side_errors(self._path):
            if forget:
                self._clear()
            self._take_room(2 * self._length)

    def drop_older(self) -> None:
        """Overwrite and remove what writers before wrote down: it is stored, or was settled otherwise."""
        for fence in self.fences():
            path = self._of(fence)
            if fence >= self._fence:
                continue
            with side_errors(path), suppress(FileNotFoundError):  # whoever wrote it may have just removed it
                destroy_file(path, 0, path.stat().st_size)

    def close(self) -> None:
        """Close the own file; it goes if it says nothing that is not known elsewhere."""
        if self._file < 0 or self._path is None:
            return
        os.close(self._file)
        self._file = -1
        if self._state == "nothing":
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _take_room(self, size: int) -> None:
        """Have the disk keep so much for the file, and something for its head."""
        room = (size // _ROOM + 1) * _ROOM
        if room > self._room:
            _allocate(self._file, room)
            self._room = room

    def _clear(self) -> None:
        self._overwrite(bytes(os.fstat(self._file).st_size))

    def _overwrite(self, data: bytes) -> None:
        write_at(self._file, data, 0)
        os.fsync(self._file)

    def _read(self, fence: int) -> Draft | None:
        path = self._of(fence)
        with side_errors(path):
            try:
                with path.open("rb") as file:
                    head = file.read(_HEAD.size)
                    name, length, digest = _HEAD.unpack(head.ljust(_HEAD.size, b"\0"))
                    data = file.read(length) if name == _NAME else b""
            except FileNotFoundError:  # whoever wrote it has just removed it
                return None
        if len(head) < _HEAD.size or not head.strip(b"\0"):
            return None
        if name == _NAME and hashlib.sha256(data).digest() != digest:
            return None
        try:
            if name == _NAME:
                return decode_draft(data)
        except (msgspec.DecodeError, ValueError):
            pass
        raise InvalidJournal(
            "a draft of the next slot that this version can read",
            f"another file ({path})",
            "If a later version wrote it, upgrade wevent. If it is damaged, move it away and publish with --released-through "
            "SLOT, the last one that may have been drawn (of live slots the one after the last that went out, of files up to "
            "256 later): these are charged, not drawn again.",
            path=str(self._place),
        )

    def fences(self) -> list[int]:
        """The fencing numbers that have a draft.

        Raises:
            InvalidJournal: if the address names no folder.
            StorageFailed: if it cannot be read.
        """
        folder = self._place.side_folder
        with side_errors(folder):
            found = [self._name.fullmatch(name) for name in os.listdir(folder)]
        return [int(name[1]) for name in found if name is not None]

    def _of(self, fence: int) -> Path:
        return self._place.side_folder / f"{self._place.schema}.{fence}.draft"


def _allocate(file: int, size: int) -> None:
    """Take room for a file on its disk; where the system does not know how, by writing."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    there = os.fstat(file).st_size
    while there < size:
        there += os.pwrite(file, bytes(size - there), there)
