"""Events that were acknowledged and are not counted yet: an append-only file for each open slot, gone with its commit.

A record is written, then forced to disk, then its sender gets an answer; so what was acknowledged survives a kill and a power
failure. When the slot is committed its file is removed: from then on none of its events is in any file (spec 1 and 10).

A file is a header and records, each with its length and checksum; what a crash left half-written at the end was acknowledged
to nobody and is cut off.

After a failed sync the kernel may have dropped what was written, and the next sync would succeed without it (fsync(2)). So
records stay in memory until a sync has succeeded. After a failure they are written again, behind the last durable byte.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from struct import Struct
from typing import Any

import msgspec

from wevent.counting.cells import Cells
from wevent.counting.label_index import Labels
from wevent.errors import StorageFailed
from wevent.file_io import probe_write, storage_errors, storage_failed, sync_path
from wevent.streams.clock import SlotClock
from wevent.streams.live.batch_records import Spooled, decoded, encoded

_log = logging.getLogger("wevent.streams.live.spool")
_FORMAT = 2
_FRAME = Struct("<II")  # length and checksum of what follows
_NAME = re.compile(r"slot-([1-9][0-9]{0,18})\.events")
_KEPT_OPEN = 16  # files: those of the slots that batches come for
_MOST_UNFORCED = 32  # records: a file with one stays open, and a process may have so many files open only
_PROBE_BYTES = 1 << 14
_REMEDY = "Make room and make the folder writable; what was acknowledged is not lost."


def spool_folder(journal: Path) -> Path:
    """Where a service keeps the events of open slots of a journal."""
    return journal.with_name(f"{journal.name}.spool")


def sweep(folder: Path, through: int) -> None:
    """Remove what a service left of slots up to this one, which somebody else has committed; a folder there need not be.

    Raises:
        StorageFailed: if a file cannot be removed: events may not outlive their slot.
    """
    gone = [path for slot, path in _found(folder) if slot <= through] if folder.is_dir() else []
    for path in gone:
        _remove(path)
    if gone:
        _sync(folder)


class Spool:
    """The files of open slots, in a folder of their own.

    Args:
        folder: made if it is not there; nobody else may read it.
        cells: the declared cells; events of a file that was begun under other cells are found by their labels.
        clock: when slots begin; a file of another clock is of another stream, and is removed.

    Raises:
        StorageFailed: if the folder cannot be made or read.
    """

    def __init__(self, folder: Path, cells: Cells, clock: SlotClock) -> None:
        self.folder = folder
        self._cells, self._clock = cells, clock
        self._files: dict[int, _SlotFile] = {}
        self._lock = threading.Lock()  # of the table of files and what is written to them
        self._forcing = threading.Lock()  # one thread forces to disk what all have written
        self._written = self._durable = 0
        self._failing = False  # the last sync failed
        self._refused: StorageFailed | None = None  # what was not durable when the files were closed
        self._removed = False  # a name is gone, which is not known to be forced to disk
        with _spool_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        _sync(folder.parent)  # the folder's own name is there after a power failure, too

    def load(self, after: int) -> Iterator[tuple[int, Spooled]]:
        """What earlier runs left of slots after a committed one, slot by slot; files of committed slots are removed.

        A run that was killed may not have forced it to disk; after this it is there, and may be acknowledged again.

        Raises:
            StorageFailed: if files cannot be read, removed or forced to disk.
        """
        for slot, path in sorted(_found(self.folder)):
            if slot <= after:
                _remove(path)
                continue
            file = self._open(slot)
            if not file.is_of_this_stream():
                _log.warning(
                    "a spool file is damaged at its beginning, or of another stream: its events are not counted"
                )
                self._drop(slot)
                continue
            yield from ((slot, spooled) for spooled in file.read())
            with self._forcing:
                self._force_all()
        _sync(self.folder)

    def append(self, slot: int, spooled: Spooled) -> int:
        """Write what a batch has for a slot; returns the number to `force`.

        Raises:
            StorageFailed: if it could not be written; then nothing of it is there.
        """
        if self._written - self._durable >= _MOST_UNFORCED:
            self.force(self._written)
        with self._lock:
            (self._files.get(slot) or self._open(slot)).append(encoded(spooled))
            self._written += 1
            return self._written

    def force(self, number: int) -> None:
        """Return once everything up to this number is on disk; many callers share one write.

        Raises:
            StorageFailed: if the disk refused: nothing that was waited for may be acknowledged. The next call tries again.
        """
        with self._forcing:
            if self._durable < number:
                self._force_all()

    def recover(self) -> None:
        """Write again what a failed sync may have lost, before anything more is taken in.

        Raises:
            StorageFailed: if the disk still refuses.
        """
        if not self._failing:
            return
        with self._forcing:
            self._force_all()

    def probe(self) -> None:
        """Check that a small file can be made, written and forced to disk where batches go.

        Raises:
            StorageFailed: if it cannot.
        """
        path = self.folder / f"{secrets.token_hex(8)}.probe"
        with _spool_errors(path):
            probe_write(path, _PROBE_BYTES)

    def forget(self, through: int) -> None:
        """Remove the files of slots up to this one: they are committed.

        Raises:
            StorageFailed: if one cannot be removed: events may not outlive their slot.
        """
        with self._forcing, self._lock:
            for slot in [slot for slot in self._files if slot <= through]:
                self._drop(slot)
                self._removed = True
        if self._removed:
            _sync(self.folder)
            self._removed = False

    def close(self) -> None:
        """Close the files; they stay, and who still waits for `force` finds out whether what they wrote does."""
        with self._forcing:
            try:
                self._force_all()
            except StorageFailed as refused:
                self._refused = refused
            with self._lock:
                for file in self._files.values():
                    file.close()
                self._files.clear()

    def _force_all(self) -> None:
        """Force to disk whatever is written, in the one thread that forces."""
        if self._refused is not None:
            raise self._refused
        with self._lock:
            through, files = self._written, [file for file in self._files.values() if file.dirty]
            for file in files:
                if self._failing:
                    file.rewrite()
            marks = [file.mark() for file in files]
        try:
            for file in files:
                file.force()
            if any(file.fresh for file in files):
                _sync(self.folder)
        except StorageFailed:
            self._failing = True
            raise
        with self._lock:
            for file, mark in zip(files, marks, strict=True):
                file.settle(mark)
        self._durable, self._failing = through, False
        self._rest()

    def _rest(self) -> None:
        """Keep the latest files open: who is far behind has many, and a process may have so many only."""
        with self._lock:
            for slot in list(self._files)[:-_KEPT_OPEN]:
                self._files[slot].rest()

    def _open(self, slot: int) -> _SlotFile:
        path = self.folder / f"slot-{slot}.events"
        self._files[slot] = _SlotFile(path, self._cells, self._clock.start_of(slot))
        return self._files[slot]

    def _drop(self, slot: int) -> None:
        file = self._files[slot]
        file.close()
        _remove(file.path)
        del self._files[slot]


class _SlotFile:
    """The file of one slot, open for appending.

    Args:
        path: where it is.
        cells: the declared cells.
        start_us: when the slot begins.

    Attributes:
        fresh: whether its name is not known to be forced to disk.
    """

    def __init__(self, path: Path, cells: Cells, start_us: int) -> None:
        self.path = path
        self._cells, self._start_us = cells, start_us
        self._torn = False
        self._file: int | None = None
        self._loose: list[bytes] = []  # what was written and is not known to be forced to disk
        try:
            self._size = self._kept = os.fstat(self._opened(os.O_CREAT)).st_size
        except OSError as error:
            raise _failed(path, error) from None
        self.fresh = True  # also of a file that was there: nobody knows what an earlier run had forced
        if not self._size:
            self._begin()

    @property
    def dirty(self) -> bool:
        """Whether something of it is not known to be forced to disk."""
        return self.fresh or bool(self._loose)

    def _begin(self) -> None:
        """Write the header of a new file; if that fails, neither the file nor its descriptor stays."""
        try:
            self.append(msgspec.msgpack.encode([_FORMAT, self._cells.declaration(), self._start_us], enc_hook=str))
        except StorageFailed:
            self.close()
            with suppress(StorageFailed):
                _remove(self.path)
            raise

    def append(self, data: bytes) -> None:
        text = _FRAME.pack(len(data), zlib.crc32(data)) + data
        self._write(text)
        self._loose.append(text)

    def rewrite(self) -> None:
        """Write again what a failed sync may have lost; a file of which nothing is durable is made again.

        Raises:
            StorageFailed: if that fails; nothing is lost by trying again.
        """
        try:
            if not self._kept:
                self.close()
                self.path.unlink(missing_ok=True)
                self._opened(os.O_CREAT)
            os.ftruncate(self._opened(), self._kept)
        except OSError as error:
            raise _failed(self.path, error) from None
        self._size, self._torn = self._kept, False
        self._write(b"".join(self._loose))

    def _write(self, text: bytes) -> None:
        try:
            if self._torn:
                self._cut_torn()
            written = 0
            while written < len(text):
                self._torn = True
                written += os.write(self._opened(), text[written:] if written else text)
            self._torn = False
        except OSError as error:
            with suppress(OSError):
                self._cut_torn()
            raise _failed(self.path, error) from None
        self._size += len(text)

    def _cut_torn(self) -> None:
        """Half a record would hide those behind it."""
        os.ftruncate(self._opened(), self._size)
        self._torn = False

    def mark(self) -> tuple[int, int]:
        """How far it is written, before it is forced to disk: records in memory, and bytes."""
        return len(self._loose), self._size

    def settle(self, mark: tuple[int, int]) -> None:
        """Everything before a mark is durable."""
        number, self._kept = mark
        del self._loose[:number]
        self.fresh = False

    def force(self) -> None:
        try:
            os.fdatasync(self._opened()) if hasattr(os, "fdatasync") else os.fsync(self._opened())
        except OSError as error:
            raise _failed(self.path, error) from None

    def is_of_this_stream(self) -> bool:
        """Whether it begins as this version writes it, for a slot that begins when this one does."""
        return self._header() is not None

    def read(self) -> Iterator[Spooled]:
        """Every record of a file of this stream, one in memory at a time; an end that a crash has torn is cut off."""
        header = self._header()
        assert header is not None
        whole, declared = header
        places = self._cells.find(Labels.of(list(range(declared) if isinstance(declared, int) else declared)))
        is_damaged = False
        for place, record in _records(self.path, whole):
            if record is None:
                is_damaged = True
                continue
            whole = place
            spooled = decoded(record)
            yield spooled._replace(events=spooled.events._replace(cells=places[spooled.events.cells]))
        if is_damaged or whole < self._size:
            _log.warning("%s: a record is damaged or incomplete; its slot is counted without that record", self.path)
        self._cut(whole)

    def rest(self) -> None:
        """Close it until it is needed again, unless something waits to be forced."""
        if not self.dirty:
            self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self, how: int = 0) -> int:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | how, 0o600)
        return self._file

    def _cut(self, size: int) -> None:
        if size < self._size:
            os.ftruncate(self._opened(), size)
            self._size = self._kept = size

    def _header(self) -> tuple[int, Any] | None:
        """Where the header ends, and the cells it declares."""
        place, header = next(_records(self.path), (0, b""))
        try:
            form, declared, start_us = msgspec.msgpack.decode(header or b"")
        except (msgspec.DecodeError, ValueError, TypeError):
            return None
        return (place, declared) if (form, start_us) == (_FORMAT, self._start_us) else None


def _records(path: Path, place: int = 0) -> Iterator[tuple[int, bytes | None]]:
    """Records of a file from a place on, each with the place behind it; ends at the first that is not there in full.

    A record that is not what was written is None; those behind it are intact all the same.

    A power failure may leave zeros where nothing was written yet: they look like an empty record, which there is none of.

    Raises:
        StorageFailed: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(place)
            while len(frame := file.read(_FRAME.size)) == _FRAME.size:
                length, checksum = _FRAME.unpack(frame)
                place += _FRAME.size + length
                if not length or place > size:
                    return
                record = file.read(length)
                if len(record) < length:
                    return
                yield place, record if zlib.crc32(record) == checksum else None
    except OSError as error:
        raise _failed(path, error) from None


def _found(folder: Path) -> list[tuple[int, Path]]:
    """The files of slots in a folder."""
    with _spool_errors(folder):
        names = os.listdir(folder)
    matches = ((_NAME.fullmatch(name), name) for name in names)
    return [(int(match[1]), folder / name) for match, name in matches if match is not None]


def _sync(folder: Path) -> None:
    with _spool_errors(folder):
        sync_path(folder)


def _remove(path: Path) -> None:
    with _spool_errors(path):
        path.unlink(missing_ok=True)


def _failed(path: Path, error: OSError) -> StorageFailed:
    return storage_failed(f"to keep events in {path}", error, _REMEDY, path)


def _spool_errors(path: Path) -> AbstractContextManager[None]:
    return storage_errors(f"to keep events in {path}", _REMEDY, path)
