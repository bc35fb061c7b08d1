"""A publisher whose population changes between slots, and which is restored from its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.core.arrays import IntArray
from wevent.core.mechanism import Measurement, NoiseSource
from wevent.core.requirements import Population
from wevent.errors import InvalidOption
from wevent.publisher.publisher import Publisher
from wevent.publisher.release import Release

Life = tuple[tuple[int, Population | None], ...]
"""Changes by slot: a population is active from the slot on; None restores the publisher after the slot.

A class is absent from a population, or has at least as many members as in the world's own. A restore loads the state from
before the slot and replays the slot, as a journal does; a subject that exchanged pieces has the shipped ones afterwards.
"""


class Living:
    """A publisher and its life; counts and charges have a row for every class of the world, present or absent."""

    def __init__(self, publisher: Stepping, life: Life, noise: NoiseSource) -> None:
        if not isinstance(publisher, Publisher):
            problem = f"A {type(publisher).__name__} cannot be updated and restored."
            raise InvalidOption(problem, "Make a Publisher.", option="mechanism")
        self._publisher, self._life, self._noise = publisher, life, noise
        self._world = publisher.population
        self.measured: Measurement | None = None

    def step(self, counts: IntArray) -> Release:
        """Publish one slot; records of absent classes are not counted."""
        publisher = self._publisher
        changes = [change for slot, change in self._life if slot == publisher.slot]
        for population in changes:
            if population is not None:
                publisher.update(population, turnover=0)
        state = publisher.state() if None in changes else b""
        rows = [self._world.index(one) for one in publisher.population.classes]
        release = publisher.step(counts[rows])
        self.measured = publisher.measured
        charges = release.probe_charges, release.publication_charges
        if state:
            self._publisher = Publisher.restore(state, self._noise)
            self._publisher.replay(*charges, self.measured)
        probe, publication = (self._spread(rows, one) for one in charges)
        return replace(release, probe_charges=probe, publication_charges=publication)

    def _spread(self, rows: list[int], charges: IntArray) -> Any:
        spread = np.zeros(len(self._world), dtype=np.int64)
        spread[rows] = charges
        return spread
