"""Protocols of an event store: where events stay between their acknowledgement and the count of their slot.

A store keeps records, bytes that `wevent.events.records` writes, encrypted under a key per slot. It destroys the key when the
slot is committed: from then on nobody can read the events, whatever is left of the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

Result = TypeVar("Result")


class StoredRecord(NamedTuple):
    """Events of one batch in one slot.

    Attributes:
        slot: the slot.
        name: digest of the sender and the batch id, by which a batch is found when it is sent again.
        data: the record.
    """

    slot: int
    name: bytes
    data: bytes


class EventIntake(Protocol):
    """The part of a store that takes batches in; used by one thread.

    Attributes:
        patience_s: time to wait for a database that does not answer.
    """

    patience_s: float

    def declare(self, digest: bytes, meaning: bytes) -> None:
        """Store the meaning of records that start with this digest: public settings."""

    def find(self, wanted: Sequence[tuple[bytes, Collection[int]]]) -> list[tuple[int, bytes]]:
        """Return stored records of batches with these names, each with its index in `wanted`.

        A store searches its open slots, at least the latest ones and those given with each name. A record that is found is
        durable.

        Raises:
            JournalUnreachable: if the database does not answer within `patience_s`.
        """

    def put(self, batches: Sequence[Sequence[StoredRecord]]) -> tuple[bool, int]:
        """Store the records of some batches, all or none; durable on return.

        Returns:
            whether they are stored, and the last closed slot. They are not if one belongs to a closed slot, or is there.

        Raises:
            JournalUnreachable: if the connection is lost: `find` tells whether they are stored.
            StorageFailed: if the disk refuses; none is acknowledged.
        """


class EventStore(Protocol):
    """The part of a store that the publisher reads; used by one thread."""

    def close_slot(self, slot: int) -> None:
        """Accept nothing more for slots up to this one; records that were acknowledged are there on return."""

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        """Return the result of a function of the records of a closed slot; called again after a lost connection.

        Creates the key of the slot if there is none: destroying it then takes the same time without events (spec 10).
        """

    def meaning(self, digest: bytes) -> bytes | None:
        """Return the meaning that was declared for a digest."""

    def destroy(self, through: int) -> None:
        """Destroy the keys of slots up to this one, which are committed. The time it takes depends on no event."""

    def forget(self, through: int) -> None:
        """Destroy the keys of slots up to this one, and delete their records."""

    def close(self) -> None:
        """Close files or connections; the next run counts the events of open slots."""
