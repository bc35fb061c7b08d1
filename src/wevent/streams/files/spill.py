"""Decoded events of text files, by time: in memory, or encrypted in a temporary file if there are many.

The file has no name, and its key is in memory only: nobody reads the events after the process has ended.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from wevent.counting.lookup import TEXTS, Labels
from wevent.counting.spelling import Spelled, padded
from wevent.errors import StorageFailed, may_pass
from wevent.streams.records.decoding import EventColumns

_RUN_EVENTS = 1_000_000  # in memory: about 50 MB
_PIECE_EVENTS = 1 << 15
_TAG_BYTES = 32


class _Piece(NamedTuple):
    """Consecutive events of a sorted run in the file: times low to high, both included."""

    low: int
    high: int
    offset: int
    length: int


class Spill:
    """Events that are added in any order of time and read by ranges of time.

    Runs of events are sorted by time and written in small pieces. A range reads the pieces that overlap it, so that all
    ranges together read the file about once.

    Args:
        size: expected number of bytes, to check the free space of the disk.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._run: list[EventColumns] = []
        self._events = 0
        self._pieces: list[_Piece] = []
        self._file: BinaryIO | None = None
        self._written = 0
        self._key = secrets.token_bytes(32)

    def add(self, events: EventColumns) -> None:
        """Add events.

        Raises:
            StorageFailed: if the disk has no room for the file.
        """
        users = Labels(events.users.keys, events.users.texts.compact())  # without the lines that they are from
        self._run.append(events._replace(users=users))
        self._events += len(events.times)
        if self._events >= _RUN_EVENTS:
            self._write()

    def read(self, low_us: int, high_us: int) -> Iterator[EventColumns]:
        """Return the events in [low, high); those with equal times in the order in which they were added."""
        for piece in self._pieces:
            if piece.low < high_us and piece.high >= low_us:
                yield _within(self._load(piece), low_us, high_us)
        for events in self._run:
            yield _within(events, low_us, high_us)

    def _write(self) -> None:
        run = EventColumns.joined(self._run).by_time()
        self._run, self._events = [], 0
        try:
            file = self._opened()
            for start in range(0, len(run.times), _PIECE_EVENTS):
                part = run.where(slice(start, start + _PIECE_EVENTS))
                data = self._sealed(_encode(part))
                self._pieces.append(_Piece(int(part.times[0]), int(part.times[-1]), self._written, len(data)))
                self._written += file.write(data)
            file.flush()
        except OSError as error:
            raise _no_room(error) from None

    def _opened(self) -> BinaryIO:
        if self._file is None:
            if shutil.disk_usage(tempfile.gettempdir()).free < self._size:
                raise _no_room(None)
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this object
        return self._file

    def _load(self, piece: _Piece) -> EventColumns:
        assert self._file is not None, "pieces are in the file"
        try:
            self._file.seek(piece.offset)
            data = self._file.read(piece.length)
        except OSError as error:
            raise _no_room(error) from None
        return _decode(self._unsealed(piece.offset, data))

    def _sealed(self, text: bytes) -> bytes:
        hidden = self._masked(self._written, text)
        return self._tag(hidden) + hidden

    def _unsealed(self, offset: int, data: bytes) -> bytes:
        if not hmac.compare_digest(self._tag(data[_TAG_BYTES:]), data[:_TAG_BYTES]):
            raise StorageFailed("temporary files as they were written", "other bytes", "Check the disk.")
        return self._masked(offset, data[_TAG_BYTES:])

    def _masked(self, offset: int, text: bytes) -> bytes:
        """Return the XOR with a keystream that no other piece has."""
        stream = hashlib.shake_256(self._key + offset.to_bytes(8, "little")).digest(len(text))
        return np.bitwise_xor(np.frombuffer(text, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()

    def _tag(self, hidden: bytes) -> bytes:
        return hashlib.blake2b(hidden, key=self._key, digest_size=_TAG_BYTES).digest()


def _within(events: EventColumns, low_us: int, high_us: int) -> EventColumns:
    inside = (events.times >= low_us) & (events.times < high_us)
    return events if inside.all() else events.where(inside)


def _encode(events: EventColumns) -> bytes:
    where, used = events.users.spelled()
    texts, keys = used.tight(), events.users.keys.copy()
    keys[where] = TEXTS + np.arange(len(where))
    columns = events.times, keys, events.cells.astype(np.int32), texts.sizes.astype(np.int32), texts.data
    return msgspec.msgpack.encode([column.data for column in columns])


def _decode(data: bytes) -> EventColumns:
    times, keys, cells, sizes, text = msgspec.msgpack.decode(data)
    each = np.frombuffer(sizes, np.int32).astype(np.int64)
    texts = Spelled(padded(text), np.cumsum(each) - each, each)
    users = Labels(np.frombuffer(keys, np.int64), texts)
    return EventColumns(np.frombuffer(times, np.int64), users, np.frombuffer(cells, np.int32).astype(np.int64))


def _no_room(error: OSError | None) -> StorageFailed:
    """Return the error for a folder without room; `tempfile` finds no folder where all of them are full."""
    passes = error is None or isinstance(error, FileNotFoundError) or may_pass(error)
    return StorageFailed(
        "room for a temporary copy of the events in text files",
        "less" if error is None else type(error).__name__,
        "Free some space, or set TMPDIR to a folder with more.",
        path=os.environ.get("TMPDIR", "/tmp"),
        passing=passes,
    )
