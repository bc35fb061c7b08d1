"""What a batch leaves in the file of a slot: who sent it, what they were told, and its events of that slot."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.label_index import Labels
from wevent.schemas import BatchResult
from wevent.streams.decoding import EventColumns


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
    answer: BatchResult | None
    events: EventColumns


def encoded(spooled: Spooled) -> bytes:
    """A record as it is written."""
    times, users, cells = spooled.events
    where, _ = users.spelled()
    ids: Any = users.values() if len(where) else users.keys.tobytes()
    answer = None if spooled.answer is None else [spooled.answer.accepted, spooled.answer.rejected]
    fields = [spooled.sender, spooled.batch, spooled.digest, answer, times.tobytes(), ids, cells.tobytes()]
    return msgspec.msgpack.encode(fields)


def decoded(record: bytes) -> Spooled:
    """The counterpart of `encoded`."""
    sender, batch, digest, answer, times, ids, cells = msgspec.msgpack.decode(record)
    users = Labels(_whole(ids)) if isinstance(ids, bytes) else Labels.of_values(ids)
    told = None if answer is None else BatchResult(*answer)
    return Spooled(sender, batch, digest, told, EventColumns(_whole(times), users, _whole(cells)))


def _whole(data: bytes) -> IntArray:
    return np.frombuffer(data, dtype=np.int64).copy()
