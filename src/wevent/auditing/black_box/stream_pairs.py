"""Neighbouring streams for a victim: what the runs of a black-box audit are made on.

Two streams are equal but for one user of one class in one span of w slots (spec 1): in a cell or absent with `add_remove`, in
one cell or another with `replace`. Everything else is chosen such that nothing but the noise hides the victim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.budget import NANO
from wevent.core.requirements import Population, Requirement

_CROWD = 1000
_JUMP = 20_000
_MANY = 130  # cells: more than two blocks of 64


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams.

    Attributes:
        name: what they are, in words.
        requirement: the victim's.
        population: who is registered; the same in both.
        streams: counts of the stream with the victim and of its neighbour: slots × classes × cells each.
        span: the first slot in which they may differ and the one after the last, from 0.
    """

    name: str
    requirement: Requirement
    population: Population
    streams: tuple[IntArray, IntArray]
    span: tuple[int, int]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.streams[0].shape[2])

    @property
    def slots(self) -> int:
        """The length of the streams."""
        return int(self.streams[0].shape[0])

    def totals(self) -> tuple[IntArray, IntArray]:
        """Return the true histograms of both: slots × cells."""
        return self.streams[0].sum(axis=1), self.streams[1].sum(axis=1)


@dataclass(frozen=True)
class Victim:
    """The cells of the victim in the two streams, by the neighbouring relation of a subject."""

    here: tuple[int, ...]
    there: tuple[int, ...]
    cells: int

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Victim:
        """Return the worst change of a record: k cells or none; with `replace` k cells or k others."""
        most = int(options.get("max_cells_per_user") or 1)
        if options.get("neighbours", "add_remove") == "replace":
            return cls(tuple(range(most)), tuple(range(most, 2 * most)), 2 * most)
        return cls(tuple(range(most)), (), most + 1)


def pairs_for(requirement: Requirement, victim: Victim, *, is_widest: bool = False) -> Iterator[Pair]:
    """Yield pairs of streams that expose a member of this class most; the victim alone where noise is widest."""
    window = requirement.window
    yield _alone("victim alone", requirement, victim, lead=0, tail=0)
    if is_widest:
        return
    yield _alone("victim alone, after empty slots", requirement, victim, lead=window, tail=1)
    yield _jumping(requirement, victim)
    yield _crowded(requirement, victim)
    yield _mixed(requirement, victim)
    yield _tipping(requirement, victim)
    if not victim.there:
        last = Victim(tuple(range(1, victim.cells)), (), victim.cells)
        yield _alone("victim alone, in the last cells", requirement, last, lead=0, tail=0)
    if window == 1:  # once: many cells take their time
        among = Victim(victim.here, victim.there, _MANY)
        yield _alone("victim alone, among many cells", requirement, among, lead=0, tail=0)


def _with_victim(
    name: str, requirement: Requirement, population: Population, others: IntArray, victim: Victim, first: int
) -> Pair:
    last = first + requirement.window
    row = population.index(requirement)
    streams = others.copy(), others.copy()
    streams[0][first:last, row, list(victim.here)] += 1
    if victim.there:
        streams[1][first:last, row, list(victim.there)] += 1
    return Pair(name, requirement, population, streams, (first, last))


def _alone(name: str, requirement: Requirement, victim: Victim, *, lead: int, tail: int) -> Pair:
    """Make a pair with nobody else, before, with and after the victim."""
    others = np.zeros((lead + requirement.window + tail, 1, victim.cells), dtype=np.int64)
    return _with_victim(name, requirement, Population({requirement: 1}), others, victim, lead)


def _jumping(requirement: Requirement, victim: Victim) -> Pair:
    """Make a pair in which others come and go in the last cell: every slot is worth a publication."""
    slots = 2 * requirement.window
    others = np.zeros((slots, 1, victim.cells), dtype=np.int64)
    others[0::2, 0, -1] = _JUMP
    population = Population({requirement: _JUMP + 1})
    return _with_victim("others come and go", requirement, population, others, victim, slots - requirement.window)


def _crowded(requirement: Requirement, victim: Victim) -> Pair:
    """Make a pair in which others of the class stand still in every cell."""
    others = np.full((requirement.window, 1, victim.cells), _CROWD, dtype=np.int64)
    population = Population({requirement: _CROWD * victim.cells + 1})
    return _with_victim("victim in a crowd", requirement, population, others, victim, 0)


def _mixed(requirement: Requirement, victim: Victim) -> Pair:
    """Make a pair with a stricter and a looser class, so that classes are sampled or weighted."""
    strict = Requirement(requirement.window, f"{max(requirement.nano // 2, 2 * requirement.window)}e-9")
    lax = Requirement(max(1, requirement.window - 1), f"{min(2 * requirement.nano, 50 * NANO)}e-9")
    sizes = {requirement: 1}
    for other, number in ((strict, 5), (lax, 5)):
        sizes[other] = sizes.get(other, 0) + number
    population = Population(sizes)
    others = np.zeros((requirement.window, len(population), victim.cells), dtype=np.int64)
    for other in {strict, lax} - {requirement}:
        others[:, population.index(other), -1] = 5
    return _with_victim("victim among other classes", requirement, population, others, victim, 0)


def _tipping(requirement: Requirement, victim: Victim) -> Pair:
    """Make a pair in which one more present user would change the choice of OBS, if it looked at presence (spec 5)."""
    lax = Requirement(requirement.window, f"{min(4 * requirement.nano, 50 * NANO)}e-9")
    budget, larger = (one.nano / NANO / one.window for one in (requirement, lax))
    chance = math.expm1(budget) / math.expm1(larger)
    gain = 2 / budget**2 - 2 / larger**2  # in noise, by the larger threshold; what it costs are the records not sampled
    others = math.floor(math.sqrt(gain) / (1 - chance)) if lax != requirement else 0
    population = Population({requirement: others + 1, lax: others + 1}) if others else Population({requirement: 1})
    counts = np.zeros((requirement.window, len(population), victim.cells), dtype=np.int64)
    counts[:, population.index(requirement), -1] = others
    return _with_victim("victim tips the balance", requirement, population, counts, victim, 0)
