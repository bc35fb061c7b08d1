"""Decoded events by time: in memory, or encrypted in a temporary file if there are many; of a frame in memory only.

The file has no name, and its key is in memory only: nobody reads the events after the process has ended.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wevent.counting.labels import TEXTS, Labels
from wevent.counting.string_column import StringColumn
from wevent.errors import StorageFailed, may_pass
from wevent.streams.decoding import EventColumns

_RUN_EVENTS = 1_000_000  # in memory: about 50 MB
_PIECE_EVENTS = 1 << 15
_ROOM = 1 << 26  # bytes: free space is asked for in multiples, so that no single record decides


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
        size: expected number of bytes.
        in_memory: whether no file is written.
    """

    def __init__(self, size: int, *, in_memory: bool) -> None:
        self._size, self._in_memory = size, in_memory
        self._run: list[EventColumns] = []
        self._events = 0
        self._pieces: list[_Piece] = []
        self._file: BinaryIO | None = None
        self._written = 0
        self._cipher = AESGCM(secrets.token_bytes(32))

    def check_room(self) -> None:
        """Raise `StorageFailed` for a disk that is too small for all events, also if they will stay in memory."""
        if self._in_memory:
            return
        try:
            free = shutil.disk_usage(tempfile.gettempdir()).free
        except OSError as error:
            raise _no_room(error) from None
        if free < (self._size // _ROOM + 1) * _ROOM:
            raise _no_room(None)

    def add(self, events: EventColumns) -> None:
        """Add events; raise `StorageFailed` if the file cannot be written."""
        self._run.append(events._replace(users=events.users.compact()))
        self._events += len(events.times)
        if self._events >= _RUN_EVENTS:
            self._write()

    def read(self, low_us: int, high_us: int) -> Iterator[EventColumns]:
        """Yield the events in [low, high); those with equal times in the order in which they were added."""
        for piece in self._pieces:
            if piece.low < high_us and piece.high >= low_us:
                yield _within(self._load(piece), low_us, high_us)
        for events in self._run:
            yield _within(events, low_us, high_us)

    def _write(self) -> None:
        run = EventColumns.joined(self._run).by_time()
        self._run, self._events = [], 0
        try:
            if self._file is None:
                self._file = io.BytesIO() if self._in_memory else tempfile.TemporaryFile()  # noqa: SIM115
            for start in range(0, len(run.times), _PIECE_EVENTS):
                part = run.where(slice(start, start + _PIECE_EVENTS))
                data = self._cipher.encrypt(_nonce(self._written), _encode(part), None)
                self._pieces.append(_Piece(int(part.times[0]), int(part.times[-1]), self._written, len(data)))
                self._written += self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise _no_room(error) from None

    def _load(self, piece: _Piece) -> EventColumns:
        assert self._file is not None, "pieces are in the file"
        try:
            self._file.seek(piece.offset)
            data = self._file.read(piece.length)
        except OSError as error:
            raise _no_room(error) from None
        try:
            return _decode(self._cipher.decrypt(_nonce(piece.offset), data, None))
        except InvalidTag:
            raise StorageFailed("A temporary file has changed since it was written.", "Check the disk.") from None


def _nonce(offset: int) -> bytes:
    """Return the nonce of a piece; no other piece under the same key has its offset."""
    return offset.to_bytes(12, "little")


def _within(events: EventColumns, low_us: int, high_us: int) -> EventColumns:
    inside = (events.times >= low_us) & (events.times < high_us)
    return events if inside.all() else events.where(inside)


def _encode(events: EventColumns) -> bytes:
    where, used = events.users.spelled()
    texts, keys = used.tight(), events.users.keys
    if len(where):
        keys = keys.copy()
        keys[where] = TEXTS + np.arange(len(where))
    columns = events.times, keys, events.cells.astype(np.int32), texts.sizes.astype(np.int32), texts.data
    return msgspec.msgpack.encode([np.ascontiguousarray(column).data for column in columns])


def _decode(data: bytes) -> EventColumns:
    times, keys, cells, sizes, text = msgspec.msgpack.decode(data)
    texts = StringColumn.from_sizes(text, np.frombuffer(sizes, np.int32).astype(np.int64))
    users = Labels(np.frombuffer(keys, np.int64), texts)
    return EventColumns(np.frombuffer(times, np.int64), users, np.frombuffer(cells, np.int32).astype(np.int64))


def _no_room(error: OSError | None) -> StorageFailed:
    """Return the error for a folder without room; `tempfile` finds no folder if all of them are full."""
    reason = "too little is free" if error is None else type(error).__name__
    return StorageFailed(
        f"There is no room for a temporary copy of the events ({reason}).",
        "Free some space, or set TMPDIR to a folder with more.",
        path=os.environ.get("TMPDIR", "/tmp"),
        passing=error is None or isinstance(error, FileNotFoundError) or may_pass(error),
    )
