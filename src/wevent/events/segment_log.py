"""Event store in files: one append-only log for all open slots, in segments.

A frame is written and forced to disk before its sender gets an answer: acknowledged events survive a kill and a power
failure. A frame holds one batch, so a crash leaves all of a batch or nothing. A segment is deleted when all its slots are
committed; the keys of committed slots are destroyed before.

After a failed sync the kernel may have dropped pages, and the next sync of the same file would succeed without them
(fsync(2)). Therefore nothing behind the last durable byte of that segment is used: a batch that is sent again goes to a new
segment.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from wevent.errors import StorageFailed
from wevent.events.records import (
    NAME_BYTES,
    NO_NAME,
    REMEDY,
    Result,
    SlotKeys,
    StoredBatch,
    decrypt,
    encrypt,
    service_stopping,
)
from wevent.file_io import create_private, probe_write, read_at, read_whole, storage_errors, sync_path

_log = logging.getLogger("wevent.events.segment_log")
_NAME = re.compile(r"[0-9]{10}\.events")
_MAGIC = b"wEv1"
_HEAD = Struct("<4sII")  # magic, length of the body, checksum of the body
_PART = Struct("<QI")  # slot and length of an encrypted record
_NUMBER = Struct("<I")
_SEGMENT_BYTES = 64 << 20
_PROBE_BYTES = 1 << 14


class _Place(NamedTuple):
    """Where an encrypted record is."""

    slot: int
    name: bytes
    segment: int
    offset: int
    length: int


class SegmentLog:
    """Event store of a journal in a file; from any thread.

    Args:
        folder: for its owner only; created if it is missing.
        stream: start of the records of this stream; records of others that an earlier run left are ignored.

    Attributes:
        keys: of open slots, in the same folder.
    """

    def __init__(self, folder: Path, stream: bytes = b"") -> None:
        self.folder, self.patience_s, self._stream = folder, 0.0, stream
        self.keys = SlotKeys(folder)
        self._is_damaged = False
        self._lock = threading.Lock()
        self._places: dict[int, list[_Place]] = defaultdict(list)
        self._names: dict[bytes, _Place] = {}
        self._last_slots: dict[int, int] = {}  # by segment
        self._file: int | None = None  # of the segment that is written
        self._is_open = True
        self._size = self._closed = self._segment = 0
        with _log_errors(folder):
            found = sorted(int(name[:10]) for name in os.listdir(folder) if _NAME.fullmatch(name))
        for number in found:
            self._load(number, is_newest=number == found[-1])
        self._segment = max(found, default=0)

    # Intake

    def find(self, batches: Sequence[StoredBatch]) -> list[tuple[int, bytes]]:
        with self._lock:
            places = [(index, self._names.get(name)) for index, (name, _) in enumerate(batches)]
        known = [(index, place, self.keys.get(place.slot)) for index, place in places if place is not None]
        return [(index, record) for index, place, key in known if key for record in self._read([place], key)]

    def put(self, batches: Sequence[StoredBatch]) -> tuple[bool, int]:
        slots = {slot for _, records in batches for slot in records}
        if not slots or min(slots) <= self._closed:
            return not slots, self._closed
        keys = self.keys.make(slots)
        for slot in slots - keys.keys():
            raise self.keys.unusable(slot)
        encrypted = [
            (name, {slot: encrypt(keys[slot], name + record) for slot, record in records.items()})
            for name, records in batches
        ]
        with self._lock:
            if not self._is_open:  # another process may use the folder
                raise service_stopping()
            if min(slots) <= self._closed:
                return False, self._closed
            self._store(encrypted)
            return True, self._closed

    def probe(self) -> None:
        """Raise `StorageFailed` if batches cannot be stored."""
        self.keys.probe()
        with _log_errors(self.folder):
            probe_write(self.folder / f"{os.urandom(8).hex()}.probe", _PROBE_BYTES)

    # Publisher

    def close_slot(self, slot: int) -> None:
        with self._lock:
            self._closed = max(self._closed, slot)

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        key = self.keys.make([slot]).get(slot)
        with self._lock:
            places = list(self._places.get(slot, ()))
        return use(self._read(places, key))

    def destroy(self, through: int) -> None:
        self.keys.destroy(through)

    def forget(self, through: int) -> None:
        self.destroy(through)
        with self._lock:
            self._closed = max(self._closed, through)
            for slot in [slot for slot in self._places if slot <= through]:
                for place in self._places.pop(slot):
                    if self._names.get(place.name) == place:
                        del self._names[place.name]
            gone = [segment for segment, last in self._last_slots.items() if last <= through]
            for segment in gone:
                self._delete(segment)
            if gone:
                with _log_errors(self.folder):
                    sync_path(self.folder)

    def close(self) -> None:
        with self._lock:
            self._is_open = False
            self._end_segment()

    # Segments; under the lock

    def _store(self, batches: Sequence[StoredBatch]) -> None:
        """Append batches of encrypted records, and force them to disk.

        If the disk refuses, nothing behind the last durable byte of the segment is used.
        """
        frames = [_frame(records) for _, records in batches]
        try:
            with _log_errors(self.folder):
                if self._file is None or self._size >= _SEGMENT_BYTES:
                    self._begin_segment()
                assert self._file is not None
                _write_all(self._file, b"".join(frames))
                _force(self._file)
                if not self._size:
                    sync_path(self.folder)  # its name
        except BaseException:
            self._discard_end()
            raise
        for frame, (name, _) in zip(frames, batches, strict=True):
            self._index(self._segment, self._size, frame, name)
            self._size += len(frame)

    def _index(self, segment: int, offset: int, frame: bytes | memoryview, name: bytes | None = None) -> None:
        """Remember the records of a batch, whose name is read from the records if it is not given.

        Of two records of one batch in one slot the later one was acknowledged.
        """
        for slot, start, length in _parts(frame):
            own = name
            if own is None:
                key = self.keys.get(slot)
                text = None if key is None else decrypt(key, frame[start : start + length])
                if text is not None and not text.startswith(self._stream, NAME_BYTES):
                    continue
                own = NO_NAME if text is None else text[:NAME_BYTES]
            place = _Place(slot, own, segment, offset + start, length)
            before = self._names.get(place.name)
            if before is not None and before.slot == slot:
                self._places[slot].remove(before)
            if place.name != NO_NAME:
                self._names[place.name] = place
            self._places[slot].append(place)
            self._last_slots[segment] = max(slot, self._last_slots.get(segment, 0))

    def _begin_segment(self) -> None:
        self._end_segment()
        self._file = create_private(self._path(self._segment + 1))
        self._segment, self._size = self._segment + 1, 0
        self._last_slots[self._segment] = 0

    def _end_segment(self) -> None:
        """Write no more into the segment that is written."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _discard_end(self) -> None:
        """Cut off what is not durable."""
        with suppress(OSError, StorageFailed):
            if self._file is not None and self._size:
                os.ftruncate(self._file, self._size)
            elif self._file is not None:
                self._delete(self._segment)
        self._end_segment()

    def _delete(self, segment: int) -> None:
        if segment == self._segment:
            self._end_segment()
        path = self._path(segment)
        with _log_errors(path):
            path.unlink(missing_ok=True)
        del self._last_slots[segment]

    def _path(self, segment: int) -> Path:
        return self.folder / f"{segment:010d}.events"

    # Reading

    def _load(self, segment: int, *, is_newest: bool) -> None:
        """Index a segment of an earlier run, and force it to disk: its batches may be acknowledged again."""
        path = self._path(segment)
        self._last_slots[segment] = 0
        with _log_errors(path):
            data = read_whole(path)
            for offset, frame in _frames(data):
                if frame is None and is_newest and next(_frames(data, offset + 1), None) is None:
                    os.truncate(path, offset)  # a crash cut the write of a batch that nobody acknowledged
                    sync_path(path)
                    break
                if frame is None:
                    self._report_damage()
                else:
                    self._index(segment, offset, frame)
        if not self._last_slots[segment]:
            self._delete(segment)

    def _read(self, places: list[_Place], key: bytes | None) -> Iterator[bytes]:
        """Yield the records at these places; those that cannot be read are reported."""
        for segment, group in groupby(places, lambda place: place.segment):
            with self._opened(segment) as file:
                for place in group:
                    with _log_errors(self._path(segment)):
                        sealed = b"" if file is None else read_at(file, place.length, place.offset)
                    text = None if key is None else decrypt(key, sealed)
                    if text is None:
                        self._report_damage()
                    else:
                        yield text[NAME_BYTES:]

    @contextmanager
    def _opened(self, segment: int) -> Iterator[int | None]:
        """Yield a descriptor of a segment, None if the file is gone."""
        path, file = self._path(segment), None
        with self._lock, _log_errors(path), suppress(FileNotFoundError):
            written = self._file if segment == self._segment else None
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if written is None else os.dup(written)
        try:
            yield file
        finally:
            if file is not None:
                os.close(file)

    def _report_damage(self) -> None:
        if not self._is_damaged:
            _log.warning(
                "acknowledged events cannot be read any more (%s is damaged, or their key is gone): they are not counted "
                "(private: do not publish this line)",
                self.folder,
            )
        self._is_damaged = True


def _frame(records: Mapping[int, bytes]) -> bytes:
    table = (_PART.pack(slot, len(record)) for slot, record in records.items())
    body = b"".join([_NUMBER.pack(len(records)), *table, *records.values()])
    return _HEAD.pack(_MAGIC, len(body), zlib.crc32(body)) + body


def _parts(frame: bytes | memoryview) -> Iterator[tuple[int, int, int]]:
    """Yield slot, offset and length of each encrypted record of a frame."""
    (number,) = _NUMBER.unpack_from(frame, _HEAD.size)
    table = _HEAD.size + _NUMBER.size
    start = table + number * _PART.size
    for index in range(number):
        slot, length = _PART.unpack_from(frame, table + index * _PART.size)
        yield slot, start, length
        start += length


def _frames(data: bytes, offset: int = 0) -> Iterator[tuple[int, memoryview | None]]:
    """Yield every whole frame from an offset on, with its offset; None for damaged bytes before the next frame."""
    view, good = memoryview(data), offset == 0
    while offset < len(data):
        magic, length, checksum = _HEAD.unpack_from(data, offset) if len(data) - offset >= _HEAD.size else (b"", 0, 0)
        end = offset + _HEAD.size + length
        if magic == _MAGIC and end <= len(data) and zlib.crc32(view[offset + _HEAD.size : end]) == checksum:
            yield offset, view[offset:end]
            offset, good = end, True
            continue
        if good:
            yield offset, None
        good = False
        following = data.find(_MAGIC, offset + 1)
        offset = following if following >= 0 else len(data)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _force(file: int) -> None:
    os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)


def _log_errors(path: Path) -> AbstractContextManager[None]:
    return storage_errors(f"to keep events in {path}", REMEDY, path)
