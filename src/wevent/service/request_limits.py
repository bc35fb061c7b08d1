"""Rate limits per caller and a memory budget for all request bodies.

The answer to a caller depends on that caller's own traffic alone.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from wevent.service.problems import RequestError

CallerKind = Literal["token", "link", "address"]
"""Callers of one kind never use up the limit of another."""

BODY_BYTES = 256 << 20
"""The largest body that settings allow fits in, compressed and decompressed (`wevent.publishing.service_table`)."""

_MINUTE_S = 60.0
_MOST = 50_000  # buckets of a kind: some megabytes
_ROUNDING = 1e-6  # a caller who waited as long as told is not refused for a rounding error


class MemoryBudget:
    """Memory for all request bodies together; used in one thread."""

    def __init__(self, limit: int = BODY_BYTES) -> None:
        self._free = limit

    @contextmanager
    def allocation(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes bytes for one body; the end of the block gives them back.

        The function raises RequestError if there is no room (503).
        """
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            if count > self._free:
                raise RequestError(
                    503,
                    "room for another body",
                    "more than there is at once",
                    "Send it again soon.",
                    headers={"Retry-After": "1"},
                )
            self._free -= count
            taken += count

        try:
            yield take
        finally:
            self._free += taken


class Buckets:
    """Token buckets by name, each filled evenly, with room for one minute.

    A request for more than a minute's worth needs a full bucket and leaves a debt.

    Args:
        per_minute: fill rate; 0: no limit.
        clock: seconds since any origin.
        most: number of buckets that are kept. A full bucket needs no place; beyond the limit the least recently used
            one goes, which gives its owner a full one.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._per_minute, self._clock, self._most = per_minute, clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # level and when, least recently used first
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str, count: int = 1) -> float:
        """Return 0 if the count was taken, otherwise the seconds to wait; then nothing was taken."""
        if not self._per_minute or count <= 0:
            return 0.0
        with self._guard:
            now = self._clock()
            level = self._level(name, now)
            needed = min(count, self._per_minute)
            if level + _ROUNDING < needed:
                return (needed - level) * _MINUTE_S / self._per_minute
            self._levels[name] = (level - count, now)
            self._levels.move_to_end(name)
            self._forget(now)
            return 0.0

    def _level(self, name: str, now: float) -> float:
        level, then = self._levels.get(name, (float(self._per_minute), now))
        return min(level + max(now - then, 0.0) * self._per_minute / _MINUTE_S, float(self._per_minute))

    def _forget(self, now: float) -> None:
        """Drop two at most, so that no caller waits for it."""
        for _ in range(2):
            oldest = next(iter(self._levels))
            if self._level(oldest, now) < self._per_minute and len(self._levels) <= self._most:
                return
            del self._levels[oldest]


class RateLimits:
    """Limits per minute; 0: no limit.

    Attributes:
        requests: buckets of tokens, links, and addresses of calls without either.
        events: buckets of tokens.
    """

    def __init__(
        self, requests_per_minute: int, events_per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        kinds: tuple[CallerKind, ...] = ("token", "link", "address")
        self.requests = {kind: Buckets(requests_per_minute, clock) for kind in kinds}
        self.events = Buckets(events_per_minute, clock)
