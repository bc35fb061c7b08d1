"""Rate limits: a bucket per caller that fills evenly. An answer depends on that caller's own traffic alone."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

CallerKind = Literal["token", "link", "address"]
"""Who is counted: callers of one kind never take the room of another."""

_MINUTE_S = 60.0
_MOST = 50_000  # buckets of a kind: some megabytes
_ROUNDING = 1e-6  # who waited as long as told is not sent away for a rounding error


class Buckets:
    """A bucket per name that holds what a minute brings.

    A caller may take what is in it. Who takes more at once than a minute brings needs a full one, and leaves a debt.

    Args:
        per_minute: how much comes in; 0: no limit.
        clock: seconds, of any origin.
        most: how many buckets are kept. A bucket that is full again is as good as none; beyond that the one that was
            longest not used goes, which gives its owner a full one.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._per_minute, self._clock, self._most = per_minute, clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # level and when, least recently used first
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str, number: int = 1) -> float:
        """Take from a bucket.

        Args:
            name: whose it is.
            number: how much.

        Returns:
            0 if it was taken; otherwise how many seconds to wait, and nothing was taken.
        """
        if not self._per_minute or number <= 0:
            return 0.0
        with self._guard:
            now = self._clock()
            level = self._level(name, now)
            needed = min(number, self._per_minute)
            if level + _ROUNDING < needed:
                return (needed - level) * _MINUTE_S / self._per_minute
            self._levels[name] = (level - number, now)
            self._levels.move_to_end(name)
            self._forget(now)
            return 0.0

    def _level(self, name: str, now: float) -> float:
        level, then = self._levels.get(name, (float(self._per_minute), now))
        return min(level + max(now - then, 0.0) * self._per_minute / _MINUTE_S, float(self._per_minute))

    def _forget(self, now: float) -> None:
        """Two at most at a time, so that no caller waits for it."""
        for _ in range(2):
            oldest = next(iter(self._levels))
            if self._level(oldest, now) < self._per_minute and len(self._levels) <= self._most:
                return
            del self._levels[oldest]


class Throttle:
    """The limits of a service.

    Args:
        requests_per_minute: of a token, of a link, and of an address for calls without either; 0: no limit.
        events_per_minute: of a token; 0: no limit.
        clock: seconds, of any origin.
    """

    def __init__(
        self, requests_per_minute: int, events_per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        kinds: tuple[CallerKind, ...] = ("token", "link", "address")
        self._requests = {kind: Buckets(requests_per_minute, clock) for kind in kinds}
        self._events = Buckets(events_per_minute, clock)

    def request(self, kind: CallerKind, name: str) -> float:
        """Count a request; 0, or how many seconds that caller has to wait."""
        return self._requests[kind].take(name)

    def events(self, name: str, number: int) -> float:
        """Count the events of a token's batch; 0, or how many seconds to wait: then none was counted."""
        return self._events.take(name, number)
