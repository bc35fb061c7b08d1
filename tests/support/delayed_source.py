"""A live source whose slots take their time, on a clock that moves when somebody waits or works."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.synthetic import MINUTE_US, SyntheticSource
from wevent.counting.roster import Roster
from wevent.streams.clock import SlotClock
from wevent.streams.source import SlotCounts

CLOCK = SlotClock(0, MINUTE_US)
SECOND = 1_000_000


class Wall:
    """A wall clock that moves when somebody waits or works."""

    def __init__(self) -> None:
        self.us = 0

    def __call__(self) -> int:
        return self.us


class DelayedSource(SyntheticSource):
    """A live source whose slots take their time: `delays[slot]` seconds after the slot's end the counts are there."""

    def __init__(self, end: int, wall: Wall, delays: dict[int, int]) -> None:
        super().__init__(end)
        self.wall, self.delays = wall, delays
        self.forgotten: list[int] = []

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for counted in super().count(roster, first, most):
            ready_us = CLOCK.start_of(counted.slot + 1) + self.delays.get(counted.slot, 0) * SECOND
            self.wall.us = max(self.wall.us, ready_us)
            yield counted

    def closed_through(self) -> int:  # type: ignore[override]
        return CLOCK.slot_of(self.wall.us) - 1

    def idle(self, wait_s: float) -> bool:
        assert wait_s > 0
        self.wall.us += max(1, round(wait_s * SECOND))
        return False

    def forget(self, through: int) -> None:
        self.forgotten.append(through)
