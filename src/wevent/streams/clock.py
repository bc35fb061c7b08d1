"""Slot clock, and wall time for live slots.

The slot clock is declared and never read from events (spec 1). Wall time is protected against jumps: slots that close ahead
of time make the events of everyone late. The time since boot shows a jump: no operator and no time server sets that clock,
and it goes on while the machine sleeps. As long as both disagree, a slot closes when both say so, and an event is early if
both say so. The first reading of a process is trusted, since nothing earlier exists to compare it with.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from wevent.settings.values import SECOND_US

TOLERANCE_US = 2 * SECOND_US
"""Largest jump that slots follow at once: leap seconds and small corrections pass."""

STABLE_US = 60 * SECOND_US
"""Time for which a wall clock that has jumped must stay there before slots follow it."""

_MOST_AHEAD_US = 600 * SECOND_US  # a clock that is wrong by years opens no slots of years
_QUICK_NS = 50_000_000  # two readings of the time since boot this close together: the wall clock belongs to both
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_log = logging.getLogger("wevent.streams.clock")


@dataclass(frozen=True)
class SlotClock:
    """Slots of equal length; slot 1 starts at the origin. Times are whole microseconds since 1970, UTC.

    >>> clock = SlotClock(origin_us=0, length_us=60_000_000)
    >>> clock.slot_of(59_999_999), clock.slot_of(60_000_000), clock.start_of(2)
    (1, 2, 60000000)
    """

    origin_us: int
    length_us: int

    def slot_of(self, time_us: int) -> int:
        """Return the slot of a time; below 1 before the origin."""
        return (time_us - self.origin_us) // self.length_us + 1

    def start_of(self, slot: int) -> int:
        """Return the first microsecond of a slot; the end of slot n is the start of n + 1."""
        return self.origin_us + (slot - 1) * self.length_us


class _Jump(NamedTuple):
    """Offset that the wall clock had at least since a jump, and the time since boot at which the jump appeared."""

    offset_us: int
    since_us: int


class SteadyClock:
    """Time that follows the wall clock, but no jump of it before the wall clock has stayed there. Pure: reads no clock.

    Slewing passes: every reading within the tolerance becomes the offset that the next reading is compared with.

    Attributes:
        closing_us: the time by which slots close and releases are due: the earlier one of wall time and steady time.
        opening_us: the time by which slots begin: the later one, but not more than ten minutes after the other.
        jump_us: distance from steady time to wall time; 0 unless the wall clock has jumped.
        back_us: distance from `closing_us` to the latest one ever; 0 within the tolerance.
    """

    def __init__(self) -> None:
        self.closing_us = self.opening_us = self.jump_us = self.back_us = 0
        self._offset_us: int | None = None
        self._jump: _Jump | None = None
        self._latest_us = 0

    def read(self, wall_us: int, boot_us: int) -> None:
        """Take a reading of both clocks, in microseconds since 1970 and since boot."""
        self._offset_us = self._followed(wall_us - boot_us, boot_us)
        steady_us = boot_us + self._offset_us
        self.jump_us = 0 if self._jump is None else wall_us - steady_us
        self.closing_us = min(wall_us, steady_us)
        self.opening_us = min(max(wall_us, steady_us), self.closing_us + _MOST_AHEAD_US)
        self._latest_us = max(self._latest_us, self.closing_us)
        back_us = self._latest_us - self.closing_us
        self.back_us = back_us if back_us > TOLERANCE_US else 0

    def _followed(self, offset_us: int, boot_us: int) -> int:
        """Return the offset that steady time has from now on."""
        before, jump = self._offset_us, self._jump
        self._jump = None
        if before is None or abs(offset_us - before) <= TOLERANCE_US:
            return offset_us
        if jump is None or (jump.offset_us > before) != (offset_us > before):
            self._jump = _Jump(offset_us, boot_us)
            return before
        nearest_us = min(jump.offset_us, offset_us, key=lambda one: abs(one - before))
        if boot_us - jump.since_us < STABLE_US:
            self._jump = _Jump(nearest_us, jump.since_us)
            return before
        if abs(offset_us - nearest_us) <= TOLERANCE_US:
            return offset_us
        self._jump = _Jump(offset_us, boot_us)
        return nearest_us


class WallClock:
    """Steady clock of this process; from any thread. Logs when a jump begins and ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clock = SteadyClock()

    def __call__(self) -> int:
        """Return the time by which slots close, in microseconds since 1970."""
        with self._lock:
            jumped, back = bool(self._clock.jump_us), bool(self._clock.back_us)
            self._clock.read(*_readings())
            jump_s, back_s = self._clock.jump_us / SECOND_US, self._clock.back_us / SECOND_US
            now_us = self._clock.closing_us
        if jump_s and not jumped:
            _log.warning(
                "the wall clock jumped by %+.0f s: slots close when the time since boot says so, too, until the wall clock "
                "has stayed there for %d s",
                jump_s,
                STABLE_US // SECOND_US,
            )
        if jumped and not jump_s:
            _log.warning("the wall clock is steady again: slots follow it")
        if back_s and not back:
            _log.warning("slots are ahead of the clock by %.0f s: no slot closes until the clock has caught up", back_s)
        if back and not back_s:
            _log.warning("slots are no longer ahead of the clock")
        return now_us

    def has_jumped(self) -> bool:
        """Return whether the wall clock has jumped and slots do not follow it yet, by the last reading."""
        return bool(self._clock.jump_us)


def _readings() -> tuple[int, int]:
    """Return wall time and time since boot, in microseconds, of one moment: a freeze between them is no jump."""
    while True:
        before = time.clock_gettime_ns(_BOOT)
        wall = time.time_ns()
        after = time.clock_gettime_ns(_BOOT)
        if after - before < _QUICK_NS:
            return wall // 1_000, after // 1_000


wall_clock_us = WallClock()
"""Now, in microseconds since 1970: the clock of everything that opens, closes or releases live slots."""


def opening_us(now_us: Callable[[], int]) -> int:
    """Return the time by which slots begin if that is later than the time by which they close, after a jump; otherwise 0."""
    return now_us._clock.opening_us if isinstance(now_us, WallClock) and now_us.has_jumped() else 0


class SlotDeadlines:
    """Slots that the wall clock opens and closes: a grace after its end a slot closes. From any thread."""

    def __init__(self, clock: SlotClock, grace_us: int, now_us: Callable[[], int] = wall_clock_us) -> None:
        self._clock, self._grace_us, self._now_us = clock, grace_us, now_us
        self._lock = threading.Lock()
        self._latest_us = 0

    def now(self) -> int:
        """Return the time of the wall clock, which here never goes back."""
        with self._lock:
            self._latest_us = max(self._latest_us, self._now_us())
            return self._latest_us

    def begun(self, now_us: int) -> int:
        """Return the last slot that has begun at a time that was now."""
        return self._clock.slot_of(max(now_us, opening_us(self._now_us)))

    def closed(self, now_us: int) -> int:
        """Return the last slot that is closed at a time."""
        return self._clock.slot_of(now_us - self._grace_us) - 1

    def left_s(self, slot: int) -> float:
        """Return the seconds until a slot closes; at most 0 if it is closed."""
        return (self._clock.start_of(slot + 1) + self._grace_us - self.now()) / SECOND_US
