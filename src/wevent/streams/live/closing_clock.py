"""The wall clock as what closes slots: a grace after their end, and nothing else does (spec 1)."""

from __future__ import annotations

import threading
from collections.abc import Callable

from wevent.streams.clock import SlotClock
from wevent.streams.live.steady_clock import opening_us, wall_clock_us

_POLL_S = 0.2  # how long to wait at most before looking at the wall clock again


class ClosingClock:
    """When slots close; from any thread.

    Args:
        clock: when slots begin.
        grace_us: how long after its end a slot stays open.
        now_us: the wall clock.
    """

    def __init__(self, clock: SlotClock, grace_us: int, now_us: Callable[[], int] = wall_clock_us) -> None:
        self._clock, self._grace_us, self._now_us = clock, grace_us, now_us
        self._lock = threading.Lock()
        self._latest_us = 0  # the latest moment that was looked at: the clock never goes back

    def now(self) -> int:
        """The wall clock, which here never goes back."""
        with self._lock:
            self._latest_us = max(self._latest_us, self._now_us())
            return self._latest_us

    def begun(self, now_us: int) -> int:
        """The last slot that has begun at a moment that was now."""
        return self._clock.slot_of(max(now_us, opening_us(self._now_us)))

    def closed(self, now_us: int) -> int:
        """The last slot that is closed at a moment."""
        return self._clock.slot_of(now_us - self._grace_us) - 1

    def wait_for(self, slot: int, stopping: threading.Event) -> bool:
        """Wait until a slot has closed.

        Args:
            slot: which one.
            stopping: ends the waiting.

        Returns:
            whether it has closed, False if the waiting was ended.
        """
        due_us = self._clock.start_of(slot + 1) + self._grace_us
        while True:
            left_s = (due_us - self.now()) / 1e6
            if stopping.is_set() or left_s <= 0:
                return not stopping.is_set()
            stopping.wait(min(_POLL_S, left_s))
