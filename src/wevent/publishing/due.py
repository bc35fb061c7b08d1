"""When the release of a live slot goes out: at a moment that was fixed before anything was counted (spec 10).

How long a slot takes to count and draw depends on counts. Therefore a release is held until its due moment, a fixed time
after the slot's end, and only then committed: whatever reads the journal, or gets releases from it, shows nothing before.
One that is not ready by then waits for the next moment of the same grid, never for being ready. The same holds for a process
that was frozen while a release was held.
"""

from __future__ import annotations

from collections.abc import Callable

from wevent.streams.clock import SECOND_US, SlotClock
from wevent.streams.steady_clock import TOLERANCE_US, wall_clock_us
from wevent.streams.stream_settings import StreamSettings

_SHARE = 4  # unless told, a release goes out a quarter of a slot after the grace, at most a second
_LATE_US = (
    5 * SECOND_US
)  # later than this a process was frozen and has missed the moment; a busy machine wakes up sooner


class DueMoments:
    """The grid: `offset` after the end of each slot.

    Args:
        clock: of the slots.
        offset_us: the time between a slot's end and its release.
        now_us: the wall clock.
        step_us: how far the moments for releases that missed their own are apart; None: as far as slots are.
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
        """The moment of a slot that is in time."""
        return self._clock.start_of(slot + 1) + self.offset_us

    def of(self, slot: int) -> int:
        """When the release of a slot may go out that is ready now: its own moment, or else the next one of the grid."""
        own_us = self.own(slot)
        missed = max(0, -((own_us - self._now_us()) // self._step_us))
        return own_us + missed * self._step_us

    def come_through(self) -> int:
        """The last slot whose own moment has come; below 1 if none has."""
        return self._clock.slot_of(self._now_us() - self.offset_us) - 1

    def left_s(self, moment_us: int) -> float:
        """How long it is until a moment, in seconds; none or less if it has come."""
        return (moment_us - self._now_us()) / SECOND_US

    def is_missed(self, moment_us: int) -> bool:
        """Return whether a moment has passed and a release that was held for it must wait for the next one."""
        return self._now_us() - moment_us > min(_LATE_US, self._step_us // 2)

    def ahead_s(self, slot: int) -> float:
        """Return how long it is until a slot begins, in seconds; 0 if it has begun or is about to."""
        ahead_us = self._clock.start_of(slot) - self._now_us()
        return ahead_us / SECOND_US if ahead_us > TOLERANCE_US else 0.0


def due_moments(
    settings: StreamSettings, clock: SlotClock, now_us: Callable[[], int] = wall_clock_us
) -> DueMoments | None:
    """The grid of a stream; None where slots are not closed by the wall clock: files, and senders that close slots."""
    if not settings.is_live or settings.close != "clock":
        return None
    return DueMoments(clock, due_offset_us(settings), now_us)


def due_offset_us(settings: StreamSettings) -> int:
    """How long after its end the release of a slot goes out."""
    if settings.due_us is not None:
        return settings.due_us
    return settings.grace_us + min(SECOND_US, settings.slot_us // _SHARE)
