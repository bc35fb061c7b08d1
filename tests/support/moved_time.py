"""A clock that a test moves, in place of the module `time`."""

from __future__ import annotations


class MovedTime:
    """Moves when somebody pauses, or when a test says so.

    Attributes:
        now_s: what it shows.
        pauses: how often somebody paused.
    """

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pauses = 0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.pauses += 1
