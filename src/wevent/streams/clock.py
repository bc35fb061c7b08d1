"""The slot clock, which is declared and never read from events (spec 1); durations and times as text."""

from __future__ import annotations

from dataclasses import dataclass


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
