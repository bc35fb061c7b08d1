"""Counts from micro-batches: what Spark hands over waits for the loop, and Spark waits until its slots are committed.

Two threads meet here. Spark's own calls `take` with the rows of slots that have ended, and runs what is to be counted; the
loop's calls `count`, as of any source. `take` returns when the slots of its batch are committed, so Spark calls no batch
done before: after a crash it runs again, with the same rows, and finds committed what is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.errors import ServiceStopping
from wevent.spark.shared_totals import SharedTotals
from wevent.streams.source import SlotCounts, Source
from wevent.streams.stream_settings import StreamSettings

_POLL_S = 0.2  # how long to wait at most before looking again whether the query goes on


class EndedSlots(Protocol):
    """What a micro-batch says of slots that have ended."""

    def through(self) -> int:
        """The last slot that has ended by it; 0 if it says nothing."""
        ...

    def count(self, roster: Roster, first: int, last: int) -> Iterable[tuple[int, Counts]]:
        """Count slots first to last, or as many of them as can be counted at once."""
        ...


class SparkSource(Source):
    """Counts the slots that micro-batches bring.

    Args:
        settings: the unit of times.
        last: the last slot; None: no end.

    Attributes:
        uncounted: why events were not counted; private.
        alive: whether the query goes on; asked now and then.
    """

    def __init__(self, settings: StreamSettings, last: int | None) -> None:
        super().__init__(settings, last)
        self._changed = threading.Condition()  # of everything below
        self._stopping = threading.Event()
        self._ended: BaseException | None = None
        self._is_over = False
        self._done = 0  # slots up to this one are committed
        self._closed = 0  # slots up to this one have ended, by the batch in hand
        self._wanted: tuple[Roster, int, int] | None = None
        self._roster: Roster | None = None  # that slots were counted with
        self._counted: dict[int, Counts] = {}
        self.uncounted = SharedTotals()
        self.alive: Callable[[], bool] = lambda: True

    def take(self, batch: EndedSlots, pause: Callable[[], None]) -> None:
        """Have the slots of a batch committed; in the thread that Spark gives.

        Args:
            batch: what Spark says.
            pause: waits a little in that thread, and raises if Spark wants it back.

        Raises:
            WeventError: what ended the loop.
        """
        through = batch.through()
        with self._changed:
            self._closed = max(self._closed, through)
        last = through if self._last is None else min(through, self._last)
        while True:
            asked = self._asked(last)
            if asked is None:
                return
            if isinstance(asked, tuple):
                roster, first, end = asked
                counted = dict(batch.count(roster, first, min(end, last)))
                with self._changed:
                    self._roster, self._counted = roster, counted
                    self._changed.notify_all()
            else:
                pause()

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as batches bring them, at most `most`; ends with the batch, or after `stop`."""
        slots = self._slots(first, most)
        for slot in slots:
            counts = self._wait_for(roster, slot, slots[-1], beginning=slot == first)
            if counts is None:
                return
            with self.uncounted.changing() as uncounted:
                uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        """The last slot that has ended, by the batch in hand."""
        with self._changed:
            return max(self._closed, self._done)

    def idle(self, wait_s: float) -> bool:
        """Wait; the batch is not done before its slots are committed, so one that is given up is run again."""
        return self._stopping.wait(wait_s) or not self.alive()

    def forget(self, through: int) -> None:
        """Slots up to this one are committed: their batch may be done."""
        with self._changed:
            self._done = max(self._done, through)
            self._counted = {slot: counts for slot, counts in self._counted.items() if slot > through}
            self._changed.notify_all()

    def resume(self, position: Any) -> None:
        """Continue after a stored position: what batches bring for slots up to it was committed.

        Raises:
            InvalidSettings: if numbers as times meant something else.
        """
        super().resume(position)
        self.forget(int(position["slot"]))

    def stop(self) -> None:
        """Make `count` end; safe from other threads."""
        self._stopping.set()

    def finish(self, error: BaseException | None = None) -> None:
        """The loop is over: `take` must not wait for it any more."""
        with self._changed:
            self._is_over, self._ended = True, error
            self._changed.notify_all()

    def totals(self) -> dict[str, int]:
        return self.uncounted.totals()

    def _asked(self, last: int) -> tuple[Roster, int, int] | bool | None:
        """What the loop wants to have counted; False: nothing now; None: all slots up to the last are committed."""
        with self._changed:
            if self._done >= last:
                return None
            if self._is_over or self._stopping.is_set():
                raise self._ended or _stopped()
            wanted = self._wanted
            return False if wanted is None or wanted[1] > last or self._has(*wanted[:2]) else wanted

    def _has(self, roster: Roster, slot: int) -> bool:
        return self._roster is roster and slot in self._counted

    def _wait_for(self, roster: Roster, slot: int, end: int, *, beginning: bool) -> Counts | None:
        """The counts of a slot; None after `stop`, or where the slot is not in the batch that others were in."""
        looked = time.monotonic()
        with self._changed:
            self._done = max(self._done, slot - 1) if beginning else self._done
            self._wanted = roster, slot, end
            self._changed.notify_all()
            while not self._has(roster, slot):
                if self._stopping.is_set() or not (beginning or slot <= self._closed):
                    return None
                self._changed.wait(_POLL_S)
                if time.monotonic() - looked > _POLL_S:
                    looked = time.monotonic()
                    if not self.alive():
                        return None
            self._wanted = None
            return self._counted.pop(slot)


def _stopped() -> ServiceStopping:
    return ServiceStopping(
        "a publisher that takes slots", "one that has stopped", "Start the query again: its slots are counted then."
    )
