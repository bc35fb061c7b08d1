"""An invented city: people commute between districts, day after day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.requirements import Levels, Population
from wevent.counting.roster import Roster

SLOTS_PER_DAY = 288  # five minutes each

_DISTRICTS = ("Harbour", "Old Town", "Station", "University", "Market", "Hospital", "Park", "Airport")


@dataclass(frozen=True)
class CityStream:
    """A synthetic stream with its truth.

    Attributes:
        cells: the districts.
        population: requirement classes and their sizes.
        counts: users per slot, class and district; slots × classes × cells.
    """

    cells: tuple[str, ...]
    population: Population
    counts: IntArray

    @property
    def truth(self) -> IntArray:
        """Users per slot and district."""
        truth: IntArray = self.counts.sum(axis=1)
        return truth

    @classmethod
    def generate(cls, *, users: int, slots: int, seed: int = 1) -> CityStream:
        """Everyone has a home and a work district, hours of their own, and some days off the map.

        Levels are drawn independently of where people are: a third of the users each.
        """
        generator = np.random.default_rng(seed)
        levels = Levels.default()
        roster = Roster.from_levels(
            np.arange(users),
            generator.choice(list(levels.privacy), users),
            generator.choice(list(levels.window), users),
            levels,
        )
        weights = np.array([4, 6, 5, 4, 5, 2, 1, 2], dtype=float)
        home = generator.choice(len(_DISTRICTS), users, p=weights[::-1] / weights.sum())
        work = generator.choice(len(_DISTRICTS), users, p=weights / weights.sum())
        leaves, returns = generator.normal(8.5, 1.2, users), generator.normal(17.5, 1.8, users)

        counts = np.zeros((slots, len(roster.population), len(_DISTRICTS)), dtype=np.int64)
        for slot in range(slots):
            hour = slot % SLOTS_PER_DAY * 24 / SLOTS_PER_DAY
            at_work = (leaves < hour) & (hour < returns)
            wandering = generator.random(users) < 0.05
            cell = np.where(at_work, work, home)
            cell = np.where(wandering, generator.integers(len(_DISTRICTS), size=users), cell)
            awake = 0.35 + 0.45 * np.exp(-(((hour - 14.0) / 6.0) ** 2))
            present = np.flatnonzero(generator.random(users) < awake)
            counts[slot] = roster.count(present, cell[present], len(_DISTRICTS)).matrix
        return cls(_DISTRICTS, roster.population, counts)
