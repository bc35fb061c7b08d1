"""How much an audit may do: a time, or a number of runs where a result must not depend on the speed of a machine."""

from __future__ import annotations

import time


class Effort:
    """What is left of it.

    Args:
        seconds: a time, beginning now; or
        trials: a number of runs.
    """

    def __init__(self, *, seconds: float | None = None, trials: int | None = None) -> None:
        if (seconds is None) == (trials is None):
            raise ValueError("an effort is a time or a number of runs")
        self._seconds, self._trials = seconds, trials
        self._begun, self._made = time.perf_counter(), 0

    def add(self, trials: int) -> None:
        """So many runs were made."""
        self._made += trials

    def part(self) -> float:
        """Which part of it was spent."""
        if self._seconds is None:
            return self._made / max(self._trials or 1, 1)
        return (time.perf_counter() - self._begun) / max(self._seconds, 1e-9)

    def fits(self, part: float, seconds_per_run: float) -> int:
        """How many runs fit into such a part of it."""
        if self._seconds is None:
            return int(part * (self._trials or 1))
        return int(part * self._seconds / max(seconds_per_run, 1e-9))

    def told(self) -> tuple[int, int]:
        """How much is done, and of how much, for people: seconds or runs."""
        total = int(self._trials or 1 if self._seconds is None else self._seconds)
        return min(int(self.part() * total), total), total
