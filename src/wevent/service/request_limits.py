"""Rate limits per caller and a memory budget for all request bodies.

The answer to a caller depends on that caller's own traffic alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from wevent.service.problems import RequestError

CallerKind = Literal["token", "link", "address"]
"""Callers of one kind never use up the limit of another."""

BODY_BYTES = 256 << 20
"""Memory for the largest body that settings allow, compressed and decompressed (`wevent.settings`)."""

_MINUTE_S = 60.0
_MAX_CALLERS = 50_000  # of a kind: some megabytes
_ROUNDING_S = 1e-6  # a caller who waited as told is not refused for a rounding error


class MemoryBudget:
    """Memory for all request bodies together; used in one thread."""

    def __init__(self, limit: int = BODY_BYTES) -> None:
        self._free = limit

    @contextmanager
    def allocation(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes bytes for one body. The end of the block gives them back.

        The function raises RequestError if there is no memory (503).
        """
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            if count > self._free:
                problem = "The service has no memory for another body."
                raise RequestError(503, problem, "Send it again in a second.", {"Retry-After": "1"})
            self._free -= count
            taken += count

        try:
            yield take
        finally:
            self._free += taken


class Buckets:
    """Token buckets by name, each filled evenly, with a capacity of one minute.

    A request for more than a minute's worth needs a full bucket and leaves a debt.

    Args:
        per_minute: fill rate; 0: no limit.
        clock: seconds since any origin.
        limit: number of buckets that are kept. A full bucket needs no place. Beyond the limit the least recently used
            one goes, which gives its owner a full one.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic, limit: int = _MAX_CALLERS) -> None:
        self._per_minute, self._clock, self._limit = per_minute, clock, limit
        self._full_at: dict[str, float] = {}  # time at which a bucket is full again, least recently used first
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, name: str, count: int = 1) -> float:
        """Return 0 if the count was taken, otherwise the seconds to wait; then nothing was taken."""
        if not self._per_minute or count <= 0:
            return 0.0
        with self._guard:
            now = self._clock()
            full_at = max(self._full_at.get(name, now), now)
            wait_s = full_at + self._fill_s(min(count, self._per_minute)) - now - _MINUTE_S
            if wait_s > _ROUNDING_S:
                return wait_s
            self._full_at.pop(name, None)
            self._full_at[name] = full_at + self._fill_s(count)
            for _ in range(2):  # at most, so that no caller waits for it
                oldest = next(iter(self._full_at))
                if self._full_at[oldest] > now and len(self._full_at) <= self._limit:
                    break
                del self._full_at[oldest]
            return 0.0

    def _fill_s(self, count: int) -> float:
        return count * _MINUTE_S / self._per_minute


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
