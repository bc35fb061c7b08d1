"""Room for the bodies of all requests together: many large ones at once are refused, not swapped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wevent.service.problems import RequestRefused

ROOM_BYTES = 256 << 20
"""One body of the largest that settings allow, packed and unpacked, has room (`wevent.publishing.service_table`)."""


class BodyRoom:
    """How much of bodies may be in memory at once, all requests together; used in one thread.

    Args:
        most: bytes.
    """

    def __init__(self, most: int = ROOM_BYTES) -> None:
        self._free = most

    @contextmanager
    def held(self) -> Iterator[BodyPlace]:
        """A place for one body; what it takes is free again when the block ends."""
        place = BodyPlace(self)
        try:
            yield place
        finally:
            self._free += place.taken

    def take(self, number: int) -> None:
        """Take some bytes.

        Raises:
            RequestRefused: if there is no room for them (503).
        """
        if number > self._free:
            raise RequestRefused(
                503,
                "room for another body",
                "more than there is at once",
                "Send it again soon.",
                headers={"Retry-After": "1"},
            )
        self._free -= number


class BodyPlace:
    """What one body takes of the room.

    Args:
        room: that all bodies share.
    """

    def __init__(self, room: BodyRoom) -> None:
        self._room, self.taken = room, 0

    def take(self, number: int) -> None:
        """Take some bytes; raises as `BodyRoom.take`."""
        self._room.take(number)
        self.taken += number
