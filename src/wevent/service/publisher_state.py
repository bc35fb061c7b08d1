"""How far the publisher of a service is: told by its thread, read by all calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wevent.publishing.due import DueMoments
from wevent.service.problems import NotReady
from wevent.streams.clock import SlotClock, format_time
from wevent.streams.live.batch_records import BatchAnswer
from wevent.streams.live.line_source import wall_clock_us

MOST_BEHIND = 3
"""So many releases may be due and not out while a service still counts as ready."""

SILENT_S = 5.0
"""A database that is asked twice a second and said nothing for so long is away: it may stand still with open connections."""

Condition = Literal["ready", "starting", "behind", "away", "ended", "failed"]
Role = Literal["writer", "standby"]


class Receiver(Protocol):
    """Where batches of events go."""

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchAnswer:
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
        heard_s: when it answered last, by the monotonic clock; None where nobody asks it all the time.
        receiver: where batches go; None before it has begun.
        now_us: the wall clock.
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
    heard_s: float | None = None
    receiver: Receiver | None = field(default=None, repr=False)
    now_us: Callable[[], int] = wall_clock_us
    monotonic_s: Callable[[], float] = time.monotonic
    _advancing: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def advance(self, slot: int) -> None:
        """A slot was released; from any thread, in any order."""
        with self._advancing:
            self.committed = max(self.committed, slot)

    @property
    def behind(self) -> int:
        """How many releases are due and not out; a function of the clock and of what was released."""
        if self.clock is None:
            return 0
        due = self._moments(self.clock).come_through()
        due = due if self.last is None else min(due, self.last)
        return max(0, due - self.committed)

    @property
    def condition(self) -> Condition:
        """In a word."""
        if self.phase != "running":
            return self.phase
        if self.away or (self.heard_s is not None and self.monotonic_s() - self.heard_s > SILENT_S):
            return "away"
        return "behind" if self.behind > MOST_BEHIND else "ready"

    @property
    def next_due(self) -> str | None:
        """When the next release goes out; None if none will."""
        if self.clock is None or self.phase in ("ended", "failed"):
            return None
        if self.last is not None and self.committed >= self.last:
            return None
        return format_time(self._moments(self.clock).of(self.committed + 1))

    def _moments(self, clock: SlotClock) -> DueMoments:
        return DueMoments(clock, self.due_us, self.now_us)

    def take(self) -> Receiver:
        """Where batches go.

        Raises:
            NotReady: if they go nowhere.
        """
        if self.receiver is None or self.phase != "running":
            received = "one that has ended" if self.phase == "ended" else "one that does not run yet"
            raise NotReady(received if self.phase != "failed" else "one that has failed")
        return self.receiver
