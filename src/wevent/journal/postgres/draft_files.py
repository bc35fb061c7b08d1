"""Where a writer writes down what it drew before any of it is sent to the database: one file per fencing number (spec 10).

It is overwritten in place, and forced to disk once: it is whole, or says nothing, and then nothing of that draw was sent.
Room for it is taken before anything is drawn: as much as cells ask for, then twice what the last draw took, and never less.
▲ So whether a draw can be written down does not depend on it. Only the writer with that number writes the file; whoever
comes next reads those before it, the newest first.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from contextlib import suppress
from pathlib import Path

import msgspec

from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal.overwriting import destroy_file
from wevent.journal.place import PostgresPlace
from wevent.journal.tables.draft import Draft, decode_draft, encode_draft
from wevent.journal.tables.mark_file import failed_side
from wevent.journal.whole_file import sync_path

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
        self._is_stored = True  # whether what the own file says is
        self._length = 0  # of the last draft

    def begin(self, fence: int, cells: int) -> None:
        """Make the own file, with room for a draw of so many cells; the fencing number is in force.

        Raises:
            StorageFailed: if it cannot be made.
        """
        self._fence, self._path = fence, self._of(fence)
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self._take_room(_PER_CELL * cells)
            sync_path(self._path.parent)
        except OSError as error:
            raise failed_side(self._path, error) from None

    def found(self) -> list[Draft]:
        """What writers before wrote down, the newest first; those that are not whole say nothing.

        Raises:
            InvalidJournal: for a draft of a later version of this program, or one that cannot be understood.
            StorageFailed: if the folder cannot be read.
        """
        read = (self._read(fence) for fence in sorted(self._fences(), reverse=True) if fence != self._fence)
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
        self._is_stored = False
        try:
            self._overwrite(_HEAD.pack(_NAME, len(data), hashlib.sha256(data).digest()) + data)
        except OSError as error:
            with suppress(OSError):
                self._clear()
                self._is_stored = True
            raise failed_side(self._path, error) from None

    def stored(self, *, forget: bool = False) -> None:
        """What was written down last is committed; room is taken for the next one, which is not drawn yet.

        Args:
            forget: whether it has ids in it: then nothing of it stays.

        Raises:
            StorageFailed: if there is no room.
        """
        assert self._path is not None
        self._is_stored = True
        try:
            if forget:
                self._clear()
            self._take_room(2 * self._length)
        except OSError as error:
            raise failed_side(self._path, error) from None

    def drop_older(self) -> None:
        """Overwrite and remove what writers before wrote down: it is stored, or was settled otherwise."""
        for fence in self._fences():
            path = self._of(fence)
            if fence >= self._fence or not path.exists():
                continue
            try:
                destroy_file(path, 0, path.stat().st_size)
            except FileNotFoundError:  # whoever wrote it has just removed it
                continue
            except OSError as error:
                raise failed_side(path, error) from None

    def close(self) -> None:
        """Close the own file; it goes if what it says is stored."""
        if self._file < 0 or self._path is None:
            return
        os.close(self._file)
        self._file = -1
        if self._is_stored:
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
        done, self._length = 0, len(data)
        while done < len(data):
            done += os.pwrite(self._file, data[done:], done)
        os.fsync(self._file)

    def _read(self, fence: int) -> Draft | None:
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
        data = content[_HEAD.size : _HEAD.size + length]
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
            "SLOT, the slot after the last one: it may have been drawn, and is charged, not drawn again.",
            path=str(self._place),
        )

    def _fences(self) -> list[int]:
        folder = self._place.side_folder
        try:
            found = [self._name.fullmatch(name) for name in os.listdir(folder)]
        except OSError as error:
            raise failed_side(folder, error) from None
        return [int(name[1]) for name in found if name is not None]

    def _of(self, fence: int) -> Path:
        return self._place.side_folder / f"{self._place.schema}.{fence}.draft"


def _allocate(file: int, size: int) -> None:
    """Take room for a file on its disk; where the system does not know how, by writing."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    there = os.fstat(file).st_size
    os.pwrite(file, bytes(max(0, size - there)), there)
