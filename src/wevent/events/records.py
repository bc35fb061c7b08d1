"""Records of an event store: the events of one batch in one slot, and their encryption.

A record starts with the digest of its meaning: the slot clock and the cells of the configuration version that wrote it. A
later version finds the events by the labels of their cells.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wevent.core.arrays import IntArray
from wevent.counting.cells import Cells
from wevent.counting.label_index import Labels
from wevent.counting.string_column import StringColumn
from wevent.schemas import BatchResult
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import EventColumns

KEY_BYTES = 32
NAME_BYTES = _DIGEST = 16
NO_NAME = bytes(NAME_BYTES)
"""Name of events that nobody sends again."""

_NONCE = 12
_SIZE = 8
_LEAST = 512


class BatchPart(NamedTuple):
    """Events of one batch in one slot.

    Attributes:
        digest: of the content of the batch.
        answer: sent to the sender of the batch.
        events: of this slot.
    """

    digest: bytes
    answer: BatchResult
    events: EventColumns


class RecordCodec:
    """Writes and reads records of one stream.

    Args:
        cells: the declared cells.
        clock: when slots begin.

    Attributes:
        meaning: the slot clock and the cells, as bytes.
        digest: of the meaning.
    """

    def __init__(self, cells: Cells, clock: SlotClock) -> None:
        self._cells, self._clock = cells, clock
        declared = [clock.origin_us, clock.length_us, cells.declaration()]
        self.meaning = msgspec.msgpack.encode(declared, enc_hook=str)
        self.digest = hashlib.blake2b(self.meaning, digest_size=_DIGEST).digest()
        self._columns: dict[bytes, IntArray | None] = {self.digest: np.arange(len(cells))}

    def name(self, sender: str, batch: str) -> bytes:
        """Return the name of a batch of this stream."""
        names = [self._clock.origin_us, self._clock.length_us, sender, batch]
        return hashlib.blake2b(msgspec.msgpack.encode(names), digest_size=_DIGEST, person=b"wevent batch").digest()

    def encode(self, part: BatchPart) -> bytes:
        """Return a record."""
        times, users, cells = part.events
        users = Labels.joined([users])
        texts = users.texts.compact()
        texts_as_bytes = [texts.data.tobytes(), texts.starts.tobytes(), texts.sizes.tobytes()]
        columns = [times.tobytes(), users.keys.tobytes(), *texts_as_bytes, cells.astype(np.int32).tobytes()]
        fields = [part.digest, part.answer.accepted, part.answer.rejected, *columns]
        return self.digest + msgspec.msgpack.encode(fields)

    def is_known(self, record: bytes) -> bool:
        """Return whether the meaning of a record is known; `learn` asks for it."""
        return record[:_DIGEST] in self._columns

    def learn(self, record: bytes, meaning: Callable[[bytes], bytes | None]) -> None:
        """Ask for the meaning of a record."""
        digest = record[:_DIGEST]
        self._columns[digest] = self._translate(meaning(digest))

    def decode(self, record: bytes) -> EventColumns | None:
        """Return the events of a record of any configuration version; None if another stream wrote it."""
        columns = self._columns[record[:_DIGEST]]
        if columns is None:
            return None
        events = decode_part(record).events
        return events._replace(cells=columns[events.cells])

    def has_same_clock(self, meaning: bytes) -> bool:
        """Return whether records with this meaning have the slots of this stream."""
        origin_us, length_us, _ = msgspec.msgpack.decode(meaning)
        return SlotClock(origin_us, length_us) == self._clock

    def _translate(self, meaning: bytes | None) -> IntArray | None:
        """Return the columns of cells of another declaration, -1 for a cell that this one lacks."""
        if meaning is None or not self.has_same_clock(meaning):
            return None
        declared = msgspec.msgpack.decode(meaning)[2]
        return self._cells.find(Labels.of(list(range(declared) if isinstance(declared, int) else declared)))


def decode_part(record: bytes) -> BatchPart:
    """Return the content of a record, with the cell columns of the version that wrote it."""
    digest, accepted, rejected, *columns = msgspec.msgpack.decode(memoryview(record)[_DIGEST:])
    times, keys, starts, sizes = (np.frombuffer(columns[place], dtype=np.int64) for place in (0, 1, 3, 4))
    texts = StringColumn(np.frombuffer(columns[2], dtype=np.uint8), starts, sizes)
    cells = np.frombuffer(columns[5], dtype=np.int32).astype(np.int64)
    return BatchPart(digest, BatchResult(accepted, rejected), EventColumns(times, Labels(keys, texts), cells))


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


def keyed_digest(key: bytes, name: bytes) -> bytes:
    """Return a digest of a batch name that only the holder of the slot's key can compute."""
    return hashlib.blake2b(name, key=key, digest_size=32, person=b"wevent batch").digest()
