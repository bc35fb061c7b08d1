"""How far the publisher of a service is: told by its thread, read by all calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from wevent.publishing.due import DueMoments
from wevent.schemas import BatchResult, Condition, Role
from wevent.service.problems import not_ready
from wevent.streams.clock import SlotClock, utc_time
from wevent.streams.live.steady_clock import TOLERANCE_US, wall_clock_us

MOST_BEHIND = 3
"""So many releases may be due and not out while a service still counts as ready."""

SILENT_S = 5.0
"""A database that is asked twice a second and said nothing for so long is away: it may stand still with open connections."""


class Receiver(Protocol):
    """Where batches of events go."""

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        """Take a batch; returns once it is durable."""


@dataclass
class PublisherState:
    """How far the publisher is.

    Attributes:
        grace_us: how long after the end of a slot its events are taken.
        due_us: how long after the end of a slot its release goes out.
        clock: of its slots; None before it has begun.
        last: the last slot there will be; None: no end.
        committed: the last slot that was released.
        phase: where it is.
        role: whether this process closes slots, or waits for the one that does.
        away: whether the database of the journal says that it does not answer.
        storing: whether batches can be stored, by a write of the service itself.
        heard_s: when it answered last, by the monotonic clock; None where nobody asks it all the time.
        receiver: where batches go; None before it has begun.
        now_us: the wall clock.
        clock_jumped: whether the wall clock has jumped and slots do not follow it yet.
        monotonic_s: a clock that nobody sets.
    """

    grace_us: int
    due_us: int
    clock: SlotClock | None = None
    last: int | None = None
    committed: int = 0
    phase: Literal["starting", "running", "ended", "failed"] = "starting"
    role: Role = "writer"
    away: bool = False
    storing: bool = True
    heard_s: float | None = None
    receiver: Receiver | None = field(default=None, repr=False)
    now_us: Callable[[], int] = wall_clock_us
    clock_jumped: Callable[[], bool] = wall_clock_us.has_jumped
    monotonic_s: Callable[[], float] = time.monotonic
    _advancing: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def advance(self, slot: int) -> None:
        """A slot was released; from any thread, in any order."""
        with self._advancing:
            self.committed = max(self.committed, slot)

    @property
    def behind(self) -> int:
        """How many releases are due and not out; negative if releases are ahead of the clock.

        A function of the clock and of what was released.
        """
        behind = self.due_through() - self.committed
        return behind if self.is_ahead else max(0, behind)

    def due_through(self) -> int:
        """Return the last slot whose release is due by the clock, out or not; below 1 if none is."""
        if self.clock is None:
            return 0
        due = self._moments(self.clock).come_through()
        return due if self.last is None else min(due, self.last)

    @property
    def is_ahead(self) -> bool:
        """Whether the slot after the last release has not begun by the clock: events of now are late."""
        if self.clock is None or not self.committed or self.committed == self.last:
            return False
        return self.clock.start_of(self.committed + 1) - self.now_us() > TOLERANCE_US

    @property
    def condition(self) -> Condition:
        """In a word."""
        if self.phase == "starting" and self.away:
            return "away"
        if self.phase != "running":
            return self.phase
        if self.away or (self.heard_s is not None and self.monotonic_s() - self.heard_s > SILENT_S):
            return "away"
        if not self.storing:
            return "unwritable"
        behind = self.behind
        if behind < 0:
            return "ahead"
        return "behind" if behind > MOST_BEHIND else "ready"

    @property
    def next_due(self) -> datetime | None:
        """When the next release goes out; None if none will."""
        if self.clock is None or self.phase in ("ended", "failed"):
            return None
        if self.last is not None and self.committed >= self.last:
            return None
        return utc_time(self._moments(self.clock).of(self.committed + 1))

    def _moments(self, clock: SlotClock) -> DueMoments:
        return DueMoments(clock, self.due_us, self.now_us)

    def take(self) -> Receiver:
        """Where batches go.

        Raises:
            RequestError: if they go nowhere (503).
        """
        if self.receiver is None or self.phase != "running":
            received = "one that has ended" if self.phase == "ended" else "one that does not run yet"
            raise not_ready(received if self.phase != "failed" else "one that has failed")
        return self.receiver
