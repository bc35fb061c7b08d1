"""Records: events between their acknowledgement and the count of their slot; their keys, and the protocol of their stores.

A record holds the events of one batch in one slot, with the labels of their cells: later configuration versions find them by
their labels. It starts with a digest of the slot clock, since slots of another clock are other slots.

Bytes on a disk, in a write-ahead log or in a backup outlive their deletion. Therefore records are stored encrypted under 32
random bytes per slot, in a file that is destroyed when the slot is committed: from then on nobody can read the events. No key
follows from another one: an old copy of the folder of keys opens only slots whose keys it holds.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wevent.counting.labels import Cells, Labels
from wevent.counting.roster import Rejected
from wevent.counting.string_column import StringColumn
from wevent.errors import ServiceStopping, StorageFailed
from wevent.file_io import destroy_file, link_whole, probe_write, read_whole, storage_errors, sync_path
from wevent.schemas import BatchResult
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import EventColumns
from wevent.streams.source import Rejections

NAME_BYTES = _DIGEST = 16
NO_NAME = bytes(NAME_BYTES)
"""Name of events that nobody sends again."""

NO_ANSWER = BatchResult(0, {})

_KEY_BYTES = 32
_NONCE = 12
_SIZE = 8
_LEAST = 512
REMEDY = "Make room and make the folder writable; what was acknowledged is not lost."

Result = TypeVar("Result")

StoredBatch = tuple[bytes, Mapping[int, bytes]]
"""Name of a batch, and its record of each slot. The name is a digest of the sender and the batch id."""


class EventStore(Protocol):
    """A store of records. One thread takes batches in with `find` and `put`, another one publishes.

    Attributes:
        patience_s: time to wait for a database that does not answer.
    """

    patience_s: float

    def find(self, batches: Sequence[StoredBatch]) -> list[tuple[int, bytes]]:
        """Return records of those batches that are stored, each with the index of its batch; they are durable.

        A store searches its open slots, at least the latest ones and those of the batch.

        Raises:
            JournalUnreachable: if the database does not answer within `patience_s`.
        """

    def put(self, batches: Sequence[StoredBatch]) -> tuple[bool, int]:
        """Store some batches, all or none; durable on return.

        Returns:
            whether they are stored, and the last closed slot. They are not if one belongs to a closed slot, or is there.

        Raises:
            JournalUnreachable: if the connection is lost: `find` tells whether they are stored.
            StorageFailed: if the disk refuses; none is acknowledged.
        """

    def close_slot(self, slot: int) -> None:
        """Accept nothing more for slots up to this one; records that were acknowledged are there on return."""

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        """Return the result of a function of the records of a closed slot; called again after a lost connection.

        Creates the key of the slot if there is none: destroying it then takes the same time without events (spec 10).
        """

    def destroy(self, through: int) -> None:
        """Destroy the keys of slots up to this one, which are committed. The time it takes depends on no event."""

    def forget(self, through: int) -> None:
        """Destroy the keys of slots up to this one, and delete their records."""

    def close(self) -> None:
        """Close files or connections; the next run counts the events of open slots."""


class RecordCodec:
    """Writes and reads records of one stream.

    Attributes:
        stream: digest of the slot clock, with which every record starts.
    """

    def __init__(self, cells: Cells, clock: SlotClock) -> None:
        self._cells = cells
        self._labels = range(len(cells)) if cells.numbered else Labels.of(list(cells)).values()
        self._columns: dict[int | str, int] = {}  # of labels that records have had
        declared = msgspec.msgpack.encode([clock.origin_us, clock.length_us])
        self.stream = hashlib.blake2b(declared, digest_size=_DIGEST, person=b"wevent clock").digest()

    def name(self, sender: str, batch: str) -> bytes:
        """Return the name of a batch of this stream."""
        names = self.stream + msgspec.msgpack.encode([sender, batch])
        return hashlib.blake2b(names, digest_size=_DIGEST, person=b"wevent batch").digest()

    def encode(self, events: EventColumns, digest: bytes = b"", answer: BatchResult = NO_ANSWER) -> bytes:
        """Return a record of the events of a batch in one slot, with the digest of the batch and the answer to its sender."""
        times, users, cells = events
        users = Labels.joined([users])
        texts = users.texts.compact()
        texts_as_bytes = [texts.data.tobytes(), texts.starts.tobytes(), texts.sizes.tobytes()]
        used, places = np.unique(cells, return_inverse=True)
        labels = [self._labels[cell] for cell in used.tolist()]
        columns = [times.tobytes(), users.keys.tobytes(), *texts_as_bytes, places.astype(np.int32).tobytes()]
        return self.stream + msgspec.msgpack.encode([digest, answer.accepted, answer.rejected, labels, *columns])

    def decode(self, record: bytes) -> EventColumns | None:
        """Return the events of a record, -1 for a cell that is not declared any more; None if it has another clock."""
        if not record.startswith(self.stream):
            return None
        _, _, _, labels, *columns = _unpack(record)
        times, keys, starts, sizes = (np.frombuffer(columns[place], dtype=np.int64) for place in (0, 1, 3, 4))
        texts = StringColumn(np.frombuffer(columns[2], dtype=np.uint8), starts, sizes)
        new = [label for label in labels if label not in self._columns]
        if new:
            self._columns.update(zip(new, self._cells.find(new).tolist(), strict=True))
        cells = np.array([self._columns[label] for label in labels], dtype=np.int64)
        return EventColumns(times, Labels(keys, texts), cells[np.frombuffer(columns[5], dtype=np.int32)])


def read_answer(record: bytes) -> tuple[bytes, BatchResult]:
    """Return the digest of the batch of a record, and the answer to its sender."""
    digest, accepted, rejected, *_ = _unpack(record)
    return digest, BatchResult(accepted, rejected)


def _unpack(record: bytes) -> list[Any]:
    unpacked: list[Any] = msgspec.msgpack.decode(memoryview(record)[_DIGEST:])
    return unpacked


def encrypt(key: bytes, text: bytes) -> bytes:
    """Encrypt a text under the key of its slot, padded to a power of two: the length says little about the events.

    The nonce is random: a counter would repeat after a torn end, or in a second replica.
    """
    nonce, size = secrets.token_bytes(_NONCE), len(text) + _SIZE
    padding = bytes(max(_LEAST, 1 << (size - 1).bit_length()) - size)
    return nonce + AESGCM(key).encrypt(nonce, b"".join((len(text).to_bytes(_SIZE, "little"), text, padding)), None)


def decrypt(key: bytes, sealed: bytes | memoryview) -> bytes | None:
    """Return the text that `encrypt` took; None for another key or changed bytes."""
    try:
        padded = AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
    except (InvalidTag, ValueError):
        return None
    return padded[_SIZE : _SIZE + int.from_bytes(padded[:_SIZE], "little")]


class SlotKeys:
    """Keys of the open slots of one store; from any thread.

    Args:
        folder: for its owner only; created if it is missing.
        prefix: start of the file names: a folder may hold the keys of several stores.
    """

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self._prefix = folder, prefix
        self._name = re.compile(re.escape(prefix) + r"([0-9]{1,19})\.(?:key|[0-9a-f]{16}\.new)")
        self._known: dict[int, bytes] = {}
        self._lock = threading.Lock()
        with _key_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_path(folder.parent)

    def get(self, slot: int) -> bytes | None:
        """Return the key of a slot, on disk on return; None if there is none."""
        with self._lock:
            return self._find([slot]).get(slot)

    def make(self, slots: Collection[int]) -> dict[int, bytes]:
        """Return the keys of some slots, on disk on return; creates missing ones.

        A slot whose key is being destroyed is not in the result.
        """
        with self._lock:
            found = self._find(slots)
            for slot in slots:
                if slot not in found:
                    self._write(self._path(slot), secrets.token_bytes(_KEY_BYTES))
            return found if len(found) == len(slots) else self._find(slots)

    def unusable(self, slot: int) -> StorageFailed:
        """Return the error for a file of an open slot that holds no key."""
        return StorageFailed(
            f"The file with the key of slot {slot} in {self.folder} holds none.",
            "Remove that file; what was stored of the slot cannot be read any more.",
            path=str(self.folder),
        )

    def folder_mark(self, *, make: bool) -> bytes:
        """Return the mark of this folder, equal for all replicas that use it; empty if there is none and none is made."""
        path = self.folder / f"{self._prefix}folder"
        if make and not path.exists():
            self._write(path, secrets.token_hex(16).encode())
            self._sync()
        with _key_errors(path), suppress(FileNotFoundError):
            return hashlib.blake2b(read_whole(path), digest_size=16, person=b"wevent folder").digest()
        return b""

    def probe(self) -> None:
        """Raise `StorageFailed` if a key cannot be stored."""
        path = self.folder / f"{self._prefix}{secrets.token_hex(8)}.probe"
        with _key_errors(path):
            probe_write(path, _KEY_BYTES)

    def slots(self) -> list[int]:
        """Return the slots that have a key, in order."""
        return sorted({slot for slot, name in self._files() if name.endswith(".key")})

    def destroy(self, through: int) -> None:
        """Destroy the keys of slots up to this one, which are committed; other processes may do so at the same time."""
        with self._lock:
            self._known = {slot: key for slot, key in self._known.items() if slot > through}
            gone = [name for slot, name in self._files() if slot <= through]
            for name in gone:
                with _key_errors(self.folder / name):
                    destroy_file(self.folder / name, 0, _KEY_BYTES)
            if gone:
                self._sync()

    def _find(self, slots: Collection[int]) -> dict[int, bytes]:
        """Return those keys that are there, and remember them; under the lock."""
        missing = [slot for slot in slots if slot not in self._known]
        for slot in missing:
            path, key = self._path(slot), b""
            with _key_errors(path), suppress(FileNotFoundError):
                key = read_whole(path)
            if len(key) == _KEY_BYTES and key.strip(b"\0"):  # otherwise there is none, or it is being destroyed
                self._known[slot] = key
        if not self._known.keys().isdisjoint(missing):
            self._sync()  # the process that created a key may not have come so far
        return {slot: self._known[slot] for slot in slots if slot in self._known}

    def _write(self, path: Path, data: bytes) -> None:
        """Write a whole file under a name of its own, then link it to its name, unless another process was faster."""
        with _key_errors(path), suppress(FileExistsError):
            link_whole(path, data, path.with_name(f"{path.stem}.{secrets.token_hex(8)}.new"))

    def _sync(self) -> None:
        with _key_errors(self.folder):
            sync_path(self.folder)

    def _path(self, slot: int) -> Path:
        return self.folder / f"{self._prefix}{slot}.key"

    def _files(self) -> list[tuple[int, str]]:
        with _key_errors(self.folder):
            names = os.listdir(self.folder)
        matches = ((self._name.fullmatch(name), name) for name in names)
        return [(int(match[1]), name) for match, name in matches if match is not None]


def _key_errors(path: Path) -> AbstractContextManager[None]:
    return storage_errors(f"to keep the keys of open slots in {path}", REMEDY, path)


def sort_events(
    events: EventColumns, clock: SlotClock, begun: int, closed: int
) -> tuple[dict[int, EventColumns], dict[str, int]]:
    """Return well-formed events of each open slot, in order, and the number of other events by their only reason.

    Args:
        begun: the last slot that has begun and will be published.
        closed: the last closed slot.
    """
    slots = (events.times - clock.origin_us) // clock.length_us + 1
    before = slots < 1
    late = ~before & (slots <= closed)
    after = ~(before | late) & (slots > begun)  # a clock that is behind a closed slot gives no second reason
    unknown = ~(before | after | late) & (events.cells < 0)
    reasons = {"before": before, "after": after, "late": late, "unknown_cell": unknown}
    rejected = {reason: int(np.count_nonzero(which)) for reason, which in reasons.items()}
    if any(rejected.values()):
        kept = ~(before | after | late | unknown)
        slots, events = slots[kept], events.where(kept)
    found = np.unique(slots).tolist()
    return {slot: events if len(found) == 1 else events.where(slots == slot) for slot in found}, rejected


def note_sorted(uncounted: Rejections, events: int, rejected: Mapping[str, int]) -> None:
    """Add sorted events, all and those with a reason, to the totals of the run, which are private."""
    uncounted.events += events
    uncounted.late += rejected["late"]
    uncounted.outside(rejected["before"], rejected["after"])
    uncounted.reject(Rejected(unknown_cell=rejected["unknown_cell"]))


def service_stopping() -> ServiceStopping:
    """Return the error for a batch that comes before the first or after the last one that may be stored."""
    return ServiceStopping(
        "The service is starting or stopping, and takes no events.", "Send the same batch again soon."
    )
