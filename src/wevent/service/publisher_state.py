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
from wevent.journal.contents import Writer
from wevent.publishing.due import DueMoments
from wevent.schemas import BatchResult, Condition, Role
from wevent.service.problems import not_ready
from wevent.streams.clock import SlotClock, utc_time
from wevent.streams.steady_clock import TOLERANCE_US, wall_clock_us

MOST_BEHIND = 3
"""So many releases may be due and not out while a service still counts as ready."""

SILENT_S = 5.0
"""A database that is asked twice a second and said nothing for so long is away: it may stand still with open connections."""

PROBE_S = 2.0
"""Seconds between two writes of `StorageProbe`."""

ROLE_LOG = "wevent.service.role"
"""The operator's log of takeovers, at every level but `--quiet` and `--log warning`; nothing of events."""

_log = logging.getLogger(ROLE_LOG)


class Receiver(Protocol):
    """Where batches of events go."""

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        """Take a batch; returns once it is durable."""


@dataclass
class PublisherState:
    """Progress of the publisher.

    Attributes:
        grace_us: time after the end of a slot in which its events are taken.
        due_us: time from the end of a slot to its release.
        clock: of its slots; None before it has begun.
        last: the last slot there will be; None: no end.
        committed: the last slot that was released.
        role: "writer" closes slots, "standby" waits for the process that does.
        away: whether the database of the journal refuses or does not answer.
        storing: whether batches can be stored, by `StorageProbe`.
        heard_s: monotonic time of the database's last answer; None without a database.
        receiver: receives batches; None before it has begun.
        clock_jumped: whether the wall clock has jumped and slots do not follow it yet.
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


class StorageProbe:
    """A small write of the service itself where batches go; the state keeps its result, each change is logged once.

    A refused batch changes nothing here: its refusal may depend on one user's record.

    Args:
        state: state of the publisher, which all calls see.
        write: the write; raises `StorageFailed` if batches cannot be stored.
    """

    def __init__(self, state: PublisherState, write: Callable[[], None]) -> None:
        self._state, self._write = state, write
        self._next_s = 0.0

    def check(self) -> None:
        """Write, if it is time to.

        Raises:
            JournalUnreachable: if the database does not answer.
        """
        now_s = self._state.monotonic_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + PROBE_S
        try:
            self._write()
        except JournalUnreachable:
            raise
        except StorageFailed as fault:
            if self._state.storing:
                _log.warning("batches cannot be stored: %s", fault)
            self._state.storing = False
        else:
            if not self._state.storing:
                _log.info("batches can be stored again")
            self._state.storing = True


class RoleLog:
    """Logs each change of a replica's role once; from any thread."""

    def __init__(self) -> None:
        self._last: dict[str, object] = {}  # by topic
        self._guard = threading.Lock()

    def writes(self, slot: int) -> None:
        """Log that this replica is the writer, and its next slot."""
        self._is_news("failure", None)
        self._log_role(f"writes from slot {slot} on")

    def waits(self) -> None:
        """Log that another process is about to begin the journal."""
        self._log_role("stands by until another process has begun the journal")

    def stands_by(self, writer: Writer) -> None:
        """Log that another process is the writer."""
        self._log_role(f"stands by: process {writer.pid} on {writer.host} writes, since {writer.since}")

    def stops_writing(self, reason: object) -> None:
        """Log that this replica cannot be the writer now."""
        self._is_news("role", None)  # the next role is logged, whatever it is
        if self._is_news("failure", str(reason)):
            _log.warning("stands by until the journal can be written again: %s", reason)

    def away(self, reason: Exception) -> None:
        """Log that the database does not answer, or cannot be followed; a mistake of ours with its traceback."""
        if not self._is_news("away", type(reason)):
            return
        if isinstance(reason, WeventError):
            _log.warning("the database is away, and is asked again and again: %s", reason)
        else:
            _log.error("the journal cannot be followed, which is tried again and again", exc_info=reason)

    def answers(self) -> None:
        """Log that the database answers again."""
        if self._is_news("away", None):
            _log.info("the database answers again")

    def _log_role(self, sentence: str) -> None:
        if self._is_news("role", sentence):
            _log.info("%s", sentence)

    def _is_news(self, topic: str, value: object) -> bool:
        with self._guard:
            before, self._last[topic] = self._last.get(topic), value
        return value != before
