"""Witness of a journal: a file outside it that shows through which slot releases were drawn, and the last draw itself.

A draw is written ahead here, durably, before the database sees any of it (spec 10). From then on it is the draw of its slots:
the next writer stores it instead of drawing again. A journal that knows less than its witness is an old copy.

Layout: two copies of a record of 4,096 bytes, written in turn; a note of an output; the write-ahead record. A record names
its write-ahead record by length and SHA-256. The write-ahead record is overwritten in place: when the next one is written,
the journal has the one before.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import zlib
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import msgspec

from wevent.file_io import read_at, storage_errors, write_at
from wevent.journal.record import NO_REVISION, Revision, Writer

RECORD_SIZE = 4096
"""Bytes of each copy of a record."""

_NOTE_AT, NOTE_SIZE = 2 * RECORD_SIZE, 4096
_AHEAD_AT = 4 * RECORD_SIZE
_ROOM = 1 << 16  # for a draw of few cells, and a multiple of it for others
_BYTES_PER_CELL = 64  # value, error and measurement, each of eight bytes or two numbers of eight


class WitnessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a witness shows.

    Attributes:
        number: how often a record was written; the larger one of two copies counts.
        pid, host, since: process that writes the journal, or wrote it last.
        journal: id of the journal, empty before its first slot.
        committed: last slot that was drawn.
        chain: chain hash after that slot, hexadecimal.
        before: chain hash before the write-ahead record, hexadecimal; empty if no draw may be missing in the journal.
        revision: state of the registry that the slot was counted under, or a later one.
        versions: hash over all configuration versions, hexadecimal.
        ahead: length and SHA-256, hexadecimal, of the write-ahead record.
        earlier: ids and last slots of journals that were at this place before.
        is_readable: whether a copy was whole; never written.
    """

    number: int = 0
    pid: int = 0
    host: str = ""
    since: str = ""
    journal: str = ""
    committed: int = 0
    chain: str = ""
    before: str = ""
    revision: Revision = NO_REVISION
    versions: str = ""
    ahead: tuple[int, str] = (0, "")
    earlier: tuple[tuple[str, int], ...] = ()
    is_readable: bool = True

    @property
    def writer(self) -> Writer:
        """The process that writes the journal, or wrote it last."""
        return Writer(self.pid, self.host, self.since)

    @property
    def last_drawn(self) -> tuple[str, int]:
        """The journal that drew here last, and its last slot; ("", 0) if none did.

        A journal that was started over draws nothing before its first slot: until then it is the one before.
        """
        if self.committed:
            return self.journal, self.committed
        return self.earlier[-1] if self.earlier else ("", 0)

    def follows(self, chain: bytes) -> bool:
        """Return whether a journal that ends with this chain hash lacks only the write-ahead record."""
        return self.before == chain.hex()


class WitnessFile:
    """A witness that is open for its one writer.

    Args:
        path: its path.
        file: its descriptor, open for reading and writing; closed by `close`.

    Attributes:
        before: record of the writer before.
        record: record as it is now.
    """

    def __init__(self, path: Path, file: int) -> None:
        self.path, self._file = path, file
        self.before = self.record = _newest(path, read_at(file, 2 * RECORD_SIZE, 0))
        self._room = 0

    @property
    def is_blank(self) -> bool:
        """Whether it shows nothing of any journal, and never did."""
        return self.before == WitnessRecord() and not self.record.journal

    def name_writer(self, writer: Writer) -> None:
        """Record who writes the journal. An unreadable witness stays as it is: a person may still read it.

        Raises:
            StorageFailed: if it cannot be written.
        """
        if self.before.is_readable:
            self.update(pid=writer.pid, host=writer.host, since=writer.since)

    def update(self, **known: Any) -> None:
        """Replace fields of the record; durable on return, before the other copy is written.

        Raises:
            StorageFailed: if it cannot be written.
        """
        journal = known.get("journal", self.record.journal)
        if self.record.committed and self.record.journal != journal:
            known["earlier"] = (*self.record.earlier, (self.record.journal, self.record.committed))
        self._write(**known)
        self._sync()

    def write_ahead(self, data: bytes, **known: Any) -> None:
        """Write a draw ahead, and a record that names it; durable on return.

        The bytes are durable before the record names them. So a record with another write-ahead record than it names is
        damage, or its draw is in the journal already.

        Raises:
            StorageFailed: if it cannot be written. Nobody saw the draw.
        """
        with witness_errors(self.path):
            write_at(self._file, data, _AHEAD_AT)
        self._sync()
        self.update(**known, ahead=(len(data), hashlib.sha256(data).hexdigest()), is_readable=True)

    def read_ahead(self) -> bytes | None:
        """Return the draw that was written ahead last; None if the bytes are no longer those of the record."""
        size, digest = self.record.ahead
        with witness_errors(self.path):
            data = read_at(self._file, size, _AHEAD_AT)
        return data if size and hashlib.sha256(data).hexdigest() == digest else None

    def clear_ahead(self) -> None:
        """Overwrite the last draw, which is in the journal: ids of users are in it.

        Raises:
            StorageFailed: if it cannot be overwritten.
        """
        with witness_errors(self.path):
            write_at(self._file, bytes(self.record.ahead[0]), _AHEAD_AT)
        self._sync()

    def reserve(self, cells: int) -> None:
        """Have room for the next draw, which is not made yet, so that its size does not decide whether it can be stored.

        Raises:
            StorageFailed: if there is no room.
        """
        wanted = max(_BYTES_PER_CELL * cells, 2 * self.record.ahead[0])
        room = (wanted // _ROOM + 1) * _ROOM
        if room > self._room:
            with witness_errors(self.path):
                _allocate(self._file, _AHEAD_AT + room)
            self._room = room

    def read_note(self) -> bytes:
        """Return what `write_note` wrote last, padded."""
        return read_at(self._file, NOTE_SIZE, _NOTE_AT)

    def write_note(self, data: bytes, *, force: bool) -> None:
        """Write a note of at most `NOTE_SIZE` bytes; a longer one is not written.

        Raises:
            StorageFailed: if it cannot be written.
        """
        if len(data) > NOTE_SIZE:
            return
        with witness_errors(self.path):
            write_at(self._file, data.ljust(NOTE_SIZE), _NOTE_AT)
        if force:
            self._sync()

    def is_in_place(self) -> bool:
        """Return whether the path still leads to this file.

        Raises:
            OSError: if that cannot be told.
        """
        own = os.fstat(self._file)
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def close(self) -> None:
        """Close the file, and with it end its lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, **known: Any) -> None:
        record = msgspec.structs.replace(self.record, **known, number=self.record.number + 1)
        while len(block := _encode(record)) > RECORD_SIZE:
            record = msgspec.structs.replace(record, earlier=record.earlier[1:])
        with witness_errors(self.path):
            write_at(self._file, block.ljust(RECORD_SIZE), RECORD_SIZE * (record.number % 2))
        self.record = record

    def _sync(self) -> None:
        with witness_errors(self.path):
            _force(self._file)


def read_witness(path: Path) -> WitnessRecord:
    """Return the record of a witness file; a blank one without a file, an unreadable one if no copy is whole."""
    try:
        with path.open("rb") as file:
            return _newest(path, file.read(2 * RECORD_SIZE))
    except FileNotFoundError:
        return WitnessRecord()
    except OSError:
        return WitnessRecord(is_readable=False)


def witness_errors(path: Path) -> AbstractContextManager[None]:
    """Raise `StorageFailed` if a witness cannot be written."""
    return storage_errors(f"to write {path}", "Make room and make the folder writable; nothing was lost.", path)


def copy_name(path: Path) -> Path:
    """Return a name for a witness file that is not whole yet."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")


def _newest(path: Path, data: bytes) -> WitnessRecord:
    copies = [_decode(data[start : start + RECORD_SIZE]) for start in (0, RECORD_SIZE)]
    whole = [record for record in copies if record is not None]
    return max(whole, key=lambda record: record.number, default=WitnessRecord(is_readable=not data))


def _encode(record: WitnessRecord) -> bytes:
    fields = msgspec.to_builtins(record)
    del fields["is_readable"]
    text = msgspec.json.encode(fields)
    return b"%08x %s" % (zlib.crc32(text), text)


def _decode(block: bytes) -> WitnessRecord | None:
    text = block[9:].rstrip(b" \0")
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if text and block[:9] == b"%08x " % zlib.crc32(text):
            return msgspec.json.decode(text, type=WitnessRecord)
    return None


_force = getattr(os, "fdatasync", os.fsync)


def _allocate(file: int, size: int) -> None:
    """Take room for a file on its disk; where the system has no call for it, by writing."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    written = os.fstat(file).st_size
    while written < size:
        written += os.pwrite(file, bytes(size - written), written)
