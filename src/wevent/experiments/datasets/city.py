"""An invented city: people commute between districts, day after day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.experiments.datasets.stream import Invented, SlotTimes

SLOTS_PER_DAY = 288  # five minutes each
DISTRICTS = ("Harbour", "Old Town", "Station", "University", "Market", "Hospital", "Park", "Airport")

_WORK = np.array([4, 6, 5, 4, 5, 2, 1, 2]) / 29  # where people work; they live the other way round
_ELSEWHERE = 0.05  # of the people on the map are neither at home nor at work


@dataclass(frozen=True)
class City(Invented):
    """Everyone has a home and a work district, hours of their own, and some time off the map.

    `wevent init` writes a day of it as events, and `demo`, `compare` and `plan` take it as a stream.
    """

    name: str = "city"
    cells: tuple[str, ...] = DISTRICTS

    @property
    def times(self) -> SlotTimes:
        """Days without a date."""
        return SlotTimes(None, timedelta(days=1) / SLOTS_PER_DAY)

    def walk(self, generator: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the users on the map in each slot, and their districts."""
        home = generator.choice(len(DISTRICTS), self.users, p=_WORK[::-1])
        work = generator.choice(len(DISTRICTS), self.users, p=_WORK)
        leaves, returns = generator.normal(8.5, 1.2, self.users), generator.normal(17.5, 1.8, self.users)
        for slot in range(self.slots):
            hour = slot % SLOTS_PER_DAY * 24 / SLOTS_PER_DAY
            awake = 0.35 + 0.45 * np.exp(-(((hour - 14.0) / 6.0) ** 2))
            present = np.flatnonzero(generator.random(self.users) < awake)
            district = np.where((leaves < hour) & (hour < returns), work, home)[present]
            elsewhere = generator.random(len(present)) < _ELSEWHERE
            yield present, np.where(elsewhere, generator.integers(len(DISTRICTS), size=len(present)), district)

    def count(self, rows: IntArray, classes: int, *, seed: Sequence[int]) -> npt.NDArray[np.int32]:
        counts = np.zeros((self.slots, classes, len(DISTRICTS)), dtype=np.int32)
        for slot, (present, district) in enumerate(self.walk(np.random.default_rng([*seed, 11]))):
            known = rows[present] >= 0
            places = rows[present][known] * len(DISTRICTS) + district[known]
            counts[slot] = np.bincount(places, minlength=classes * len(DISTRICTS)).reshape(classes, -1)
        return counts
