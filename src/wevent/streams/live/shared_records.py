"""What replicas leave each other of a batch: who sent it, what they were told, its events of a slot, and what cells mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.cells import Cells
from wevent.counting.label_index import Labels
from wevent.streams.clock import SlotClock
from wevent.streams.live.batch_records import Spooled, decoded, encoded
from wevent.streams.live.batch_sorting import BatchKey

_DIGEST = 16


class SharedRecords:
    """Writes and reads records of a stream.

    Replicas may have been started with different cells, in the slots around an epoch: events are then found by the labels
    of their cells. Records of another clock are of another stream.

    Args:
        cells: the declared cells.
        clock: when slots begin.

    Attributes:
        meaning: what cells and slots stand for, as bytes.
        digest: of it.
    """

    def __init__(self, cells: Cells, clock: SlotClock) -> None:
        self._cells, self._clock = cells, clock
        declared = [clock.origin_us, clock.length_us, cells.declaration()]
        self.meaning = msgspec.msgpack.encode(declared, enc_hook=str)
        self.digest = hashlib.blake2b(self.meaning, digest_size=_DIGEST).digest()
        self._places: dict[bytes, IntArray | None] = {self.digest: np.arange(len(cells))}

    def name(self, key: BatchKey) -> bytes:
        """What a batch of this clock is found by."""
        return msgspec.msgpack.encode([self._clock.origin_us, self._clock.length_us, *key])

    def written(self, spooled: Spooled) -> bytes:
        """A record."""
        return self.digest + encoded(spooled)

    def knows(self, record: bytes) -> bool:
        """Whether it is known what the cells of a record are; `learn` tells."""
        return record[:_DIGEST] in self._places

    def learn(self, record: bytes, meaning: Callable[[bytes], bytes | None]) -> None:
        """Ask what the cells of a record are."""
        digest = record[:_DIGEST]
        self._places[digest] = self._translation(meaning(digest))

    def read(self, record: bytes) -> Spooled | None:
        """The counterpart of `written`, of any replica; None if it is of another stream."""
        places, spooled = self._places[record[:_DIGEST]], as_written(record)
        if places is None:
            return None
        return spooled._replace(events=spooled.events._replace(cells=places[spooled.events.cells]))

    def _translation(self, meaning: bytes | None) -> IntArray | None:
        """Where the cells of another declaration are among those of this one, -1 for one that is not."""
        if meaning is None:
            return None
        origin_us, length_us, declared = msgspec.msgpack.decode(meaning)
        if SlotClock(origin_us, length_us) != self._clock:
            return None
        return self._cells.find(Labels.of(list(range(declared) if isinstance(declared, int) else declared)))


def as_written(record: bytes) -> Spooled:
    """A record with the cells of whoever wrote it."""
    return decoded(record[_DIGEST:])
