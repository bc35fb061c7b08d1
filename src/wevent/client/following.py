"""A stream of releases across breaks, without input or output: where it stands, what came, when to connect again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from wevent.client import calls
from wevent.client.event_stream import EventStreamReader
from wevent.client.failures import unreadable
from wevent.client.patience import Patience
from wevent.schemas import ReleasedSlot


class Follower:
    """Follows releases after a slot; each is given once, in order.

    Args:
        after: the last slot that the caller has.
        patience_s: how long it may take to connect again; None: for ever.
        now: a clock that never goes back.
    """

    def __init__(self, after: int, patience_s: float | None, now: Callable[[], float]) -> None:
        self.patience = Patience(patience_s, now)
        self._after = after
        self._reader = EventStreamReader()
        self._decoder = msgspec.json.Decoder(ReleasedSlot)

    def call(self) -> calls.Call[None]:
        """Connect, and go on after what came last."""
        self._reader = EventStreamReader()
        return calls.stream(self._after)

    def feed(self, piece: bytes) -> Iterator[ReleasedSlot]:
        """The releases that this piece of the answer completes."""
        for event in self._reader.feed(piece):
            if event.name != "release":
                continue
            try:
                release = self._decoder.decode(event.data)
            except (msgspec.MsgspecError, RecursionError):
                raise unreadable("a release") from None
            if release.slot > self._after:
                self._after = release.slot
                self.patience.succeeded()
                yield release
        if self._reader.retry_s is not None:
            self.patience.wish(self._reader.retry_s)
