"""Events that were acknowledged and are not counted yet: an append-only file for each open slot, gone with its commit.

A record is written, then forced to disk, then its sender gets an answer; so what was acknowledged survives a kill and a power
failure. When the slot is committed its file is removed: from then on none of its events is in any file (spec 1 and 10).

A file is a header and records, each with its length and checksum; what a crash left half-written at the end was acknowledged
to nobody and is cut off.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.cells import Cells
from wevent.counting.lookup import Labels
from wevent.errors import StorageFailed
from wevent.streams.records.decoding import EventColumns

_log = logging.getLogger("wevent.streams.live.spool")
_FORMAT = 1
_FRAME = Struct("<II")  # length and checksum of what follows
_NAME = re.compile(r"slot-(\d{1,19})\.events")


class BatchAnswer(msgspec.Struct, frozen=True):
    """What a sender is told about a batch: a function of that batch, the clock and public settings alone.

    Attributes:
        accepted: how many events will be counted if their people are registered.
        rejected: how many were not, by reason (`wevent.streams.uncounted`), without reasons that do not occur.
    """

    accepted: int
    rejected: dict[str, int]


class Spooled(NamedTuple):
    """What one batch left in the file of one slot.

    Attributes:
        sender, batch: whose batch, and its id.
        digest: of its content.
        answer: what the sender was told; in the file of the slot that was open when the batch came, None in others.
        events: of this slot.
    """

    sender: str
    batch: str
    digest: bytes
    answer: BatchAnswer | None
    events: EventColumns


class Spool:
    """The files of open slots, in a folder of their own.

    Args:
        folder: made if it is not there; nobody else may read it.
        cells: the declared cells; events of a file that was begun under other cells are found by their labels.

    Raises:
        StorageFailed: if the folder cannot be made or read.
    """

    def __init__(self, folder: Path, cells: Cells) -> None:
        self.folder = folder
        self._cells = cells
        self._files: dict[int, _SlotFile] = {}
        self._lock = threading.Lock()  # of the table of files and what is written to them
        self._forcing = threading.Lock()  # one thread forces to disk what all have written
        self._written = self._durable = 0
        self._refused: OSError | None = None  # what the disk said when it was last asked to keep something
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync(folder.parent)  # the folder's own name is there after a power failure, too
        except OSError as error:
            raise _failed(folder, error) from None

    def load(self, after: int) -> Iterator[tuple[int, Spooled]]:
        """What earlier runs left of slots after a committed one, slot by slot; files of committed slots are removed.

        All of it is on disk at the end: a run that was killed may have written what it had not forced yet, and whoever sends
        that again is told that it is kept.
        """
        for slot, path in sorted(self._found()):
            if slot <= after:
                _remove(path)
                continue
            with self._lock:
                file = self._files[slot] = _SlotFile(path, self._cells)
            try:
                yield from ((slot, spooled) for spooled in file.read())
            except OSError as error:
                raise _failed(path, error) from None
        with self._forcing:
            self._force_all()
        self._sync_folder()

    def append(self, slot: int, spooled: Spooled) -> int:
        """Write what a batch has for a slot; returns the number to `force`.

        Raises:
            StorageFailed: if it could not be written; then nothing of it is there.
        """
        with self._lock:
            if slot not in self._files:
                self._files[slot] = _SlotFile(self.folder / f"slot-{slot}.events", self._cells)
            self._files[slot].append(_encode(spooled))
            self._written += 1
            return self._written

    def force(self, number: int) -> None:
        """Return once everything up to this number is on disk; many callers share one write.

        Raises:
            StorageFailed: if the disk refused, now or ever: what is on it then is not known, and nothing may be acknowledged.
        """
        with self._forcing:
            if self._durable < number:
                self._force_all()

    def forget(self, through: int) -> None:
        """Remove the files of slots up to this one: they are committed.

        Raises:
            StorageFailed: if one cannot be removed: events may not outlive their slot.
        """
        with self._forcing, self._lock:
            gone = [slot for slot in self._files if slot <= through]
            for slot in gone:
                file = self._files.pop(slot)
                file.close()
                _remove(file.path)
        if gone:
            self._sync_folder()

    def close(self) -> None:
        """Close the files; they stay, and who still waits for `force` finds out whether what they wrote does."""
        with self._forcing:
            with suppress(StorageFailed):
                self._force_all()
            with self._lock:
                for file in self._files.values():
                    file.close()
                self._files.clear()

    def _force_all(self) -> None:
        """Force to disk whatever is written, in the one thread that forces.

        A disk that refused once is not asked again: it forgets what it could not keep, and would say yes (fsync(2)).
        """
        try:
            if self._refused is not None:
                raise self._refused
            with self._lock:
                through, files = self._written, [file for file in self._files.values() if file.dirty]
                fresh = any(file.fresh for file in files)
            for file in files:
                file.force()
            if fresh:
                _sync(self.folder)
        except OSError as error:
            self._refused = error
            raise _failed(self.folder, error) from None
        self._durable = through

    def _found(self) -> list[tuple[int, Path]]:
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise _failed(self.folder, error) from None
        matches = ((_NAME.fullmatch(name), name) for name in names)
        return [(int(match[1]), self.folder / name) for match, name in matches if match is not None]

    def _sync_folder(self) -> None:
        try:
            _sync(self.folder)
        except OSError as error:
            raise _failed(self.folder, error) from None


class _SlotFile:
    """The file of one slot, open for appending.

    Attributes:
        dirty: whether something was written that is not known to be forced to disk.
        fresh: whether neither is its name.
    """

    def __init__(self, path: Path, cells: Cells) -> None:
        self.path = path
        self._cells = cells
        self._torn = False
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            raise _failed(path, error) from None
        self.dirty = self.fresh = True  # also of a file that was there: nobody knows what an earlier run had forced
        if not self._size:
            try:
                self._begin()
            except StorageFailed:
                self.close()
                with suppress(OSError):  # with half a header, all that came behind it would be lost
                    path.unlink()
                raise

    def _begin(self) -> None:
        self.append(msgspec.msgpack.encode([_FORMAT, self._cells.declaration()], enc_hook=str))

    def append(self, data: bytes) -> None:
        text = _FRAME.pack(len(data), zlib.crc32(data)) + data
        try:
            if self._torn:
                self._cut_torn()
            written = 0
            while written < len(text):
                self._torn = True
                written += os.write(self._file, text[written:] if written else text)
            self._torn = False
        except OSError as error:
            with suppress(OSError):
                self._cut_torn()
            raise _failed(self.path, error) from None
        self._size += len(text)
        self.dirty = True

    def _cut_torn(self) -> None:
        """Half a record would hide those behind it."""
        os.ftruncate(self._file, self._size)
        self._torn = False

    def force(self) -> None:
        self.dirty = self.fresh = False  # before: what is written meanwhile is dirty again
        os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)

    def read(self) -> Iterator[Spooled]:
        """Every record, one in memory at a time; an end that a crash has torn is cut off."""
        with self.path.open("rb") as file:
            records = _records(file, self._size)
            whole, header = next(records, (0, b""))
            try:
                places = self._places(msgspec.msgpack.decode(header))
            except (msgspec.DecodeError, ValueError, TypeError):
                _log.warning("a spool file has no header that this version reads: its events are not counted")
                self._cut(0)
                self._begin()
                return
            for place, record in records:
                whole = place
                spooled = _decode(record)
                yield spooled._replace(events=spooled.events._replace(cells=places[spooled.events.cells]))
        self._cut(whole)

    def close(self) -> None:
        os.close(self._file)

    def _cut(self, size: int) -> None:
        if size < self._size:
            os.ftruncate(self._file, size)
            self._size = size
            self.dirty = True

    def _places(self, header: Any) -> IntArray:
        """Where the cells of the file are among those that are declared now; -1 for one that is no longer."""
        form, declared = header
        if form != _FORMAT:
            raise ValueError("another format")
        labels = range(declared) if isinstance(declared, int) else declared
        return self._cells.find(Labels.of(list(labels)))


def _records(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Whole records of a file, each with the place behind it; ends at the first that is not whole.

    None is empty: a power failure may leave zeros at the end, which would be records of nothing with a good checksum.
    """
    place = 0
    while len(frame := file.read(_FRAME.size)) == _FRAME.size:
        length, checksum = _FRAME.unpack(frame)
        place += _FRAME.size + length
        if not length or place > size:
            return
        record = file.read(length)
        if len(record) < length or zlib.crc32(record) != checksum:
            return
        yield place, record


def _encode(spooled: Spooled) -> bytes:
    times, users, cells = spooled.events
    where, _ = users.spelled()
    ids: Any = users.values() if len(where) else users.keys.tobytes()
    answer = None if spooled.answer is None else [spooled.answer.accepted, spooled.answer.rejected]
    fields = [spooled.sender, spooled.batch, spooled.digest, answer, times.tobytes(), ids, cells.tobytes()]
    return msgspec.msgpack.encode(fields)


def _decode(record: bytes) -> Spooled:
    sender, batch, digest, answer, times, ids, cells = msgspec.msgpack.decode(record)
    users = Labels(_whole(ids)) if isinstance(ids, bytes) else Labels.of_values(ids)
    told = None if answer is None else BatchAnswer(*answer)
    return Spooled(sender, batch, digest, told, EventColumns(_whole(times), users, _whole(cells)))


def _whole(data: bytes) -> IntArray:
    return np.frombuffer(data, dtype=np.int64).copy()


def _sync(folder: Path) -> None:
    """Force the names in a folder to disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _failed(path, error) from None


def _failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"to keep events in {path}",
        error.strerror or "an error",
        "Make room and make the folder writable; what was acknowledged is not lost.",
        path=str(path),
    )
