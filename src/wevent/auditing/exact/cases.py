"""The small worlds that mechanisms are tried in: who is registered, how many cells there are, and what changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wevent.auditing.audit_subject import AuditSubject
from wevent.auditing.exact.laws import ResponseCall
from wevent.auditing.exact.lives import Life
from wevent.auditing.exact.pairs import Case
from wevent.auditing.exact.scripted_noise import NotFollowed, ScriptedNoise, UnseenRandomness
from wevent.auditing.exact.slot_run import run_slot
from wevent.core.arrays import IntArray
from wevent.core.requirements import Population, Requirement
from wevent.errors import WeventError

Group = tuple[int, object, int]
"""Window, epsilon and size of a class."""


class World(NamedTuple):
    """A population, a number of cells, and changes of the population and restores by slot."""

    population: Population
    cells: int
    life: Life = ()


def _people(*classes: Group) -> Population:
    return Population({Requirement(window, epsilon): size for window, epsilon, size in classes})


def _world(cells: int, *classes: Group) -> World:
    return World(_people(*classes), cells)


def _lived(cells: int, crowd: Group, lone: Group, guests: Group) -> World:
    """Return a world with joins, leaves, an emptied class that returns, and two restores."""
    life: Life = (
        (1, _people(crowd, lone)),
        (1, None),
        (2, _people(crowd, lone, guests)),
        (3, _people(crowd, guests)),
        (3, None),
        (4, _people(crowd)),
        (5, _people(crowd, (*lone[:2], lone[2] + 1))),
        (6, _people(crowd, lone, guests)),
    )
    return World(_people(crowd, lone, guests), cells, life)


# Budgets that divide, with noise scales that floats have exactly (1/θ = 2, 4, 5, 10, …): there a probability that is a unit
# of 2^-64 too large shows. Then windows that differ, budgets that do not divide, one user beside a thousand whose refund is a
# part of a share (spec 8), and large budgets.
SEARCHED: tuple[World, ...] = (
    _world(1, (2, 1, 1000)),
    _world(2, (2, 1, 1000), (2, "0.4", 4)),
    _world(2, (1, "0.38", 1000), (3, "0.6", 1)),
    _world(1, (4, "0.8", 500), (2, "0.8", 500)),
    _world(3, (1, 8, 2), (3, "1.000000007", 2), (5, 3, 800)),
    _world(2, (6, "1.001", 50), (4, "0.8", 100)),
)
# Numbers at which types end (a float of 32 bits skips 2^24 + 1), windows, classes and cells beyond the usual few, the
# largest budgets and the smallest.
SEARCHED += (
    _world(1, (1, 1, 2**24 + 2)),
    _world(1, (1, 1, 2**31)),
    _world(1, (12, "2.4", 60)),
    _world(9, (1, 1, 400), (1, "0.9", 1), (3, "0.7", 1), (2, "0.3", 1), (1, 5, 1)),
    _world(2, (1, 40, 20)),
    _world(2, (1, "0.000000002", 20)),
)
# A window longer than the 64 slots at which bit masks and small buffers end, and a population that changes.
WIDE = _world(1, (70, 7, 60))
LIVED = _lived(1, (2, 8, 500), (8, "1.6", 1), (3, "0.9", 2))
SEARCHED += (WIDE, LIVED)
SEARCHED_LOCAL = (
    _world(1, (2, 1, 1)),
    _world(2, (2, "0.4", 2), (3, "1.000000007", 1)),
    _world(3, (1, 3, 1), (4, "0.8", 1)),
    _lived(1, (2, 1, 1), (8, "1.6", 1), (3, "0.9", 1)),
)
TINY = (
    _world(1, (2, 1, 2)),
    _world(1, (2, 1, 2), (2, "0.4", 1)),
    _world(2, (2, 1, 2)),
    _world(1, (3, "0.6", 1), (1, "0.38", 2)),
    _world(2, (2, 1, 2), (3, "0.6", 1)),
)
TABULATED = (_world(1, (1, 2, 2)), _world(2, (1, 4, 2)))  # noise so narrow that all of it fits into a table
TINY_LOCAL = (_world(1, (2, 1, 1)), _world(2, (2, 1, 1)), _world(1, (2, 1, 1), (3, "0.4", 2)))


def cases_of(subject: AuditSubject, worlds: Sequence[World]) -> list[Case]:
    """Return every world with every class as the victim's, and enough cells for two disjoint records."""
    least = _most_cells(subject) * (2 if subject.options.get("neighbours") == "replace" else 1)
    return [
        case
        for population, cells, life in worlds
        for victim in range(len(population.classes))
        if population.sizes[victim] > 0 and _takes(case := Case(subject, population, max(cells, least), victim, life))
    ]


def _takes(case: Case) -> bool:
    """Return whether the subject publishes there: a refusal of everybody is no information about a user."""
    try:
        case.start()
    except WeventError:
        return False
    return True


def responds(subject: AuditSubject) -> bool:
    """Return whether users randomize their own reports (spec 9), so that all registered users take part in every draw."""
    population, least, _ = SEARCHED_LOCAL[0]
    cells = max(least, _most_cells(subject))
    try:
        run = run_slot(subject.make(population, cells, ScriptedNoise()), _nobody(population, cells))
    except (NotFollowed, UnseenRandomness, WeventError):
        return False  # the audit says so where it says what it finds
    return any(isinstance(call, ResponseCall) for call in run.calls)


def _most_cells(subject: AuditSubject) -> int:
    return int(subject.options.get("max_cells_per_user") or 1)


def _nobody(population: Population, cells: int) -> IntArray:
    return np.zeros((len(population.classes), cells), dtype=np.int64)
