"""Progress, role and storage of the publisher of a service: set by its threads, read by all calls, logged on changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from wevent.errors import JournalUnreachable, StorageFailed, WeventError
from wevent.publishing.loop import DueMoments
from wevent.schemas import BatchResult, Condition, Role
from wevent.service.problems import not_running
from wevent.settings.values import utc_time
from wevent.streams.clock import SlotClock
from wevent.streams.steady_clock import TOLERANCE_US, wall_clock_us

MAX_BEHIND = 3
"""Number of releases that may be due and not out while a service still counts as ready."""

SILENT_S = 5.0
"""Seconds without an answer after which a database is away: it is asked twice a second, but may hang."""

PROBE_S = 2.0
"""Seconds between two writes that check the storage."""

ROLE_LOG = "wevent.service.role"
"""Log of takeovers for the operator, at every level but `--quiet` and `--log warning`; nothing of events."""

_log = logging.getLogger(ROLE_LOG)


class Receiver(Protocol):
    """Receiver of batches of events."""

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        """Take a batch; return once it is durable."""


class ChangeLog:
    """Log lines about a topic, each only when the topic changes; from any thread."""

    def __init__(self) -> None:
        self._last: dict[str, object] = {}
        self._guard = threading.Lock()

    def say(
        self, topic: str, value: object, sentence: str = "", level: int = logging.INFO, error: Exception | None = None
    ) -> None:
        """Log a sentence if the value of a topic is another one than before; None is its first value."""
        with self._guard:
            is_new, self._last[topic] = self._last.get(topic) != value, value
        if is_new and sentence:
            _log.log(level, "%s", sentence, exc_info=error)


@dataclass
class PublisherState:
    """Progress of the publisher.

    Attributes:
        grace_us: time after the end of a slot in which its events are taken.
        due_us: time from the end of a slot to its release.
        clock: clock of the slots; None before it has begun.
        last: last slot of the stream; None: no end.
        committed: last released slot.
        role: "writer" closes slots, "standby" waits for the process that does.
        away: whether the database of the journal refuses or does not answer.
        storing: whether batches can be stored.
        heard_s: monotonic time of the database's last answer; None without a database.
        receiver: receiver of batches; None before it has begun.
        clock_jumped: whether the wall clock has jumped and slots do not follow it yet.
        log: log of changes.
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
    log: ChangeLog = field(default_factory=ChangeLog, repr=False, compare=False)
    _advancing: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def advance(self, slot: int) -> None:
        """Note a released slot; from any thread, in any order."""
        with self._advancing:
            self.committed = max(self.committed, slot)

    def hear(self) -> None:
        """Note that the database answers."""
        self.away, self.heard_s = False, self.monotonic_s()
        self.log.say("database", None, "the database answers again")

    def lose(self, error: Exception) -> None:
        """Note that the database does not answer, or cannot be followed."""
        self.away = True
        if isinstance(error, WeventError):
            self.log.say("database", type(error), f"the database is away, retrying: {error}", logging.WARNING)
        else:  # a defect, with its traceback
            self.log.say("database", type(error), "the journal cannot be followed, retrying", logging.ERROR, error)

    def probe(self, write: Callable[[], None]) -> None:
        """Note whether a small write where batches go succeeds; a refused batch may depend on one user's record.

        Raises:
            JournalUnreachable: if the database does not answer.
        """
        try:
            write()
        except JournalUnreachable:
            raise
        except StorageFailed as fault:
            self.storing = False
            self.log.say("storage", "failed", f"batches cannot be stored: {fault}", logging.WARNING)
        else:
            self.storing = True
            self.log.say("storage", None, "batches can be stored again")

    @property
    def behind(self) -> int:
        """Number of releases that are due and not out; negative if releases are ahead of the clock.

        A function of the clock and of what was released.
        """
        behind = self.due_through() - self.committed
        return behind if self._is_ahead() else max(0, behind)

    def due_through(self) -> int:
        """Return the last slot whose release is due by the clock, out or not; below 1 if none is."""
        if self.clock is None:
            return 0
        due = self._moments(self.clock).come_through()
        return due if self.last is None else min(due, self.last)

    def _is_ahead(self) -> bool:
        """Return whether the slot after the last release has not begun by the clock: events of now are late."""
        if self.clock is None or not self.committed or self.committed == self.last:
            return False
        return self.clock.start_of(self.committed + 1) - self.now_us() > TOLERANCE_US

    @property
    def condition(self) -> Condition:
        """Readiness, or the reason against it."""
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
        return "behind" if behind > MAX_BEHIND else "ready"

    @property
    def next_due(self) -> datetime | None:
        """Time of the next release; None if there is none."""
        if self.clock is None or self.phase in ("ended", "failed"):
            return None
        if self.last is not None and self.committed >= self.last:
            return None
        return utc_time(self._moments(self.clock).of(self.committed + 1))

    def _moments(self, clock: SlotClock) -> DueMoments:
        return DueMoments(clock, self.due_us, self.now_us)

    def take(self) -> Receiver:
        """Return the receiver of batches.

        Raises:
            RequestError: if no publisher runs (503).
        """
        if self.receiver is None or self.phase != "running":
            raise not_running()
        return self.receiver
