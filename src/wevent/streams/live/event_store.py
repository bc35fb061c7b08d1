"""The seam to where the replicas of a service keep the events of open slots together.

What is stored is a record: bytes that only `wevent.streams.live.shared_records` understands. A store keeps them so that
nobody can read them without a key that it destroys when their slot is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

Result = TypeVar("Result")


class StoredPart(NamedTuple):
    """What a batch leaves in one slot.

    Attributes:
        slot: which one.
        name: what the batch is found by when it is sent again; a store keeps a keyed digest of it.
        record: all of it.
    """

    slot: int
    name: bytes
    record: bytes


class EventIntake(Protocol):
    """What a replica that takes events in needs of a store; in one thread.

    Attributes:
        patience_s: how long a database that does not answer is waited for.
    """

    patience_s: float

    def declare(self, digest: bytes, meaning: bytes) -> None:
        """Keep what records mean that name this digest: public settings."""

    def find(self, wanted: Sequence[tuple[bytes, Collection[int]]]) -> list[tuple[int, bytes]]:
        """Records of batches with these names, each with its place in `wanted`; what is found is durable.

        They are looked for in the latest slots, and in those that are given with each name.

        Raises:
            JournalUnreachable: if the database does not answer for as long as there is patience.
        """

    def put(self, parts: Sequence[StoredPart]) -> tuple[bool, int]:
        """Keep these, all or none; durable on return.

        Returns:
            whether they are kept, and the last closed slot as far as it is known. If they are not, one is of a closed slot,
            or is there already.

        Raises:
            JournalUnreachable: if the connection is lost: they are kept or not, which `find` tells.
            StorageFailed: if there is no room; none is kept.
        """


class EventStore(Protocol):
    """What the one who closes slots needs of a store; in one thread."""

    def close_slot(self, slot: int) -> None:
        """From now on nothing is kept of slots up to this one: whatever was acknowledged is there on return."""

    def read(self, slot: int, use: Callable[[Iterator[bytes]], Result]) -> Result:
        """What a function makes of the records of a closed slot; called again if the connection is lost meanwhile."""

    def meaning(self, digest: bytes) -> bytes | None:
        """What `declare` kept under a digest."""

    def destroy(self, through: int) -> None:
        """Slots up to this one are committed: nobody can read their events any more. No event changes how long it takes."""

    def forget(self, through: int) -> None:
        """The same, and what cannot be read any more is removed."""
