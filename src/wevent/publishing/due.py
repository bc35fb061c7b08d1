"""Due moments of the releases of live slots, fixed before any event is counted (spec 10).

The time that a slot takes to count and draw depends on counts. Therefore a release is held until its due moment, a fixed time
after the end of the slot, and only then committed. A release that misses its moment waits for the next one of the same grid.
"""

from __future__ import annotations

from collections.abc import Callable

from wevent.settings import StreamSettings
from wevent.settings.values import SECOND_US
from wevent.streams.clock import TOLERANCE_US, SlotClock, wall_clock_us

_SHARE = 4  # the default is a quarter of a slot after the grace, at most a second
_LATE_US = 5 * SECOND_US  # a process that is later was frozen; a busy machine wakes up sooner


class DueMoments:
    """The grid of due moments: `offset` after the end of each slot.

    Args:
        clock: clock of the slots.
        offset_us: time from the end of a slot to its release.
        now_us: the wall clock.
        step_us: distance of the moments for late releases; None: the slot length.
    """

    def __init__(
        self,
        clock: SlotClock,
        offset_us: int,
        now_us: Callable[[], int] = wall_clock_us,
        *,
        step_us: int | None = None,
    ) -> None:
        self._clock, self.offset_us, self._now_us = clock, offset_us, now_us
        self._step_us = step_us or clock.length_us

    def own(self, slot: int) -> int:
        """Return the due moment of a slot."""
        return self._clock.start_of(slot + 1) + self.offset_us

    def of(self, slot: int) -> int:
        """Return the first moment for the release of a slot that is ready now: its own, or the next one of the grid."""
        own_us = self.own(slot)
        missed = max(0, -((own_us - self._now_us()) // self._step_us))
        return own_us + missed * self._step_us

    def come_through(self) -> int:
        """Return the last slot whose due moment has come; below 1 if none has."""
        return self._clock.slot_of(self._now_us() - self.offset_us) - 1

    def left_s(self, moment_us: int) -> float:
        """Return the seconds until a moment; 0 or less if it has come."""
        return (moment_us - self._now_us()) / SECOND_US

    def is_missed(self, moment_us: int) -> bool:
        """Return whether a moment has passed and a release that was held for it must wait for the next one."""
        return self._now_us() - moment_us > min(_LATE_US, self._step_us // 2)

    def ahead_s(self, slot: int) -> float:
        """Return the seconds until a slot begins; 0 if it has begun or is about to."""
        ahead_us = self._clock.start_of(slot) - self._now_us()
        return ahead_us / SECOND_US if ahead_us > TOLERANCE_US else 0.0


def due_moments(
    settings: StreamSettings, clock: SlotClock, now_us: Callable[[], int] = wall_clock_us
) -> DueMoments | None:
    """Return the due moments of a stream; None where the wall clock does not close slots: files, and close lines."""
    if not settings.is_live or settings.close != "clock":
        return None
    return DueMoments(clock, due_offset_us(settings), now_us)


def due_offset_us(settings: StreamSettings) -> int:
    """Return the time from the end of a slot to its release."""
    if settings.due_us is not None:
        return settings.due_us
    return settings.grace_us + min(SECOND_US, settings.slot_us // _SHARE)
