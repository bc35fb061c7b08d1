"""Rules of spec 15, each disabled in the code of the product. With any of them disabled some user loses too much.

`MUTANTS` has for each a seed and chances of a life that shows it. `disabled` disables one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from tests.support.transitions.lives import LOST_VERSIONS, RESTORES, VERSIONS, Chances, Life
from tests.support.transitions.scripted import (
    JOINS_AFTER_RESTORE,
    JOINS_LOOSE,
    JOINS_STRICT,
    UNREGISTERED_AFTER_RESTORE,
    UNREGISTERED_IN_LOST_SLOTS,
    Scenario,
    ScriptedLife,
)
from tests.support.transitions.systems import MakeSystem, MemorySystem
from wevent.core.order import StrictnessOrder
from wevent.core.requirements import Population
from wevent.counting.roster import Roster
from wevent.journal.terms import class_history
from wevent.people.classes import ClassHistory, find_corner, find_counting_class
from wevent.people.membership import Boundary, KeyColumn, KnownIds, Rosters, id_column
from wevent.publishing import staleness

Patches = list[tuple[Any, str, Any]]


def _shorten_tails(init: Any) -> Any:
    def patched(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        self._tail_ends = self._tail_ends - 1

    return patched


def _forget_unregistered(init: Any) -> Any:
    def patched(self: Any, *args: Any) -> None:
        init(self, *args)
        self._unregistered = []

    return patched


def _forget_erased(apply: Any) -> Any:
    return lambda self, history, change: [] if change.action == "erase" else apply(self, history, change)


def _count_unregistered_in_own_class(find: Any) -> Any:
    def patched(self: Any, slot: int) -> Any:
        counted = find(self, slot)
        return counted and find_counting_class([self.version_at(slot).unregistered], self.live(slot))

    return patched


def _drop_empty_classes(at: Any) -> Any:
    """Classes without members are not in the population, so they are not charged."""

    def patched(self: Any, slot: int) -> Roster:
        roster: Roster = at(self, slot)
        kept = np.flatnonzero(roster.population.sizes)
        if not len(kept):
            return roster
        place = np.full(len(roster.population), -1)
        place[kept] = np.arange(len(kept))
        classes = [roster.population.classes[row] for row in kept.tolist()]
        population = Population(
            dict(zip(classes, roster.population.sizes[kept].tolist(), strict=True)),
            dict(zip(classes, roster.population.own[kept].tolist(), strict=True)),
        )
        row = None if roster.unknown_row is None else int(place[roster.unknown_row])
        return roster.reclassify(place[roster.classes], population, unknown_row=row, unknown_limit=roster.unknown_limit)

    return patched


def _count_joiners_as_unregistered(at: Any) -> Any:
    """A user who joined is counted within the number of unregistered users while the note of the user is in force."""

    def patched(self: Any, slot: int) -> Roster:
        roster: Roster = at(self, slot)
        if roster.unknown_row is None:
            return roster
        noted = {version.unregistered for version in self._classes.versions}
        in_force = np.flatnonzero(self._tail_ends > slot)
        joiners = {int(self._tail_rows[place]) for place in in_force.tolist() if self._tail_keys[place] in noted}
        others = np.array([row for row in range(len(roster)) if row not in joiners], dtype=np.int64)
        sizes = np.bincount(roster.classes[others], minlength=len(roster.population))
        sizes[roster.unknown_row] += roster.unknown_limit
        population = Population(dict(zip(roster.population.classes, sizes.tolist(), strict=True)))
        return Roster(
            id_column([str(user) for user in roster.users[others]]),
            roster.classes[others],
            population,
            unknown_row=roster.unknown_row,
            unknown_limit=roster.unknown_limit,
            is_stranger=roster._is_stranger,
        )

    return patched


def _know_no_id(init: Any) -> Any:
    return lambda self, ids=(), salt=b"": init(self, (), salt)


def _retain_no_class(live: Any) -> Any:
    """Dropped classes are not live; their corner is, so that every user has a class to be counted in."""

    def patched(self: Any, slot: int) -> Any:
        return self.version_at(slot).classes | {find_corner(live(self, slot))}

    return patched


def _doubt_declared_only(find: Any) -> Any:
    def patched(journal: Any, batch: Any, stated: Any) -> Any:
        plan = find(journal, batch, stated)
        if plan.restore is None:
            return plan
        declared = class_history(journal.epochs()).version_at(plan.restore.slot).declared
        return plan._replace(restore=plan.restore._replace(doubted=tuple(sorted(declared))))

    return patched


def _doubt_known_users_only() -> Patches:
    """Doubt is for the users of the backup alone."""
    known: set[str] = set()
    find, corners = staleness._find_doubts, Rosters._find_corners

    def remember(journal: Any, batch: Any, stated: Any) -> Any:
        known.update(member.user for member in journal.registry.members())
        return find(journal, batch, stated)

    def patched(self: Any, slot: int, in_force: Any) -> KeyColumn:
        doubted = corners(self, slot, in_force)
        with mock.patch.object(ClassHistory, "doubted", return_value=frozenset()):
            free = corners(self, slot, in_force)
        users = map(str, self._roster.users.tolist())
        return KeyColumn.of(
            one if user in known else other for user, one, other in zip(users, doubted, free, strict=True)
        )

    return [(staleness, "_find_doubts", remember), (Rosters, "_find_corners", patched)]


class Mutant(NamedTuple):
    """A disabled rule.

    Attributes:
        make: returns what stands where.
        seed: of a random life that overspends.
        chances: of that life.
        scenario: a scripted life that overspends, where random ones rarely do.
    """

    make: Callable[[], Patches]
    seed: int = 0
    chances: Chances = Chances()
    scenario: Scenario | None = None

    def make_life(self, seed: int, make_system: MakeSystem = MemorySystem) -> Life:
        """Return a life of this seed, or the scripted one."""
        if self.scenario is not None:
            return ScriptedLife(self.scenario, make_system)
        return Life(seed, make_system, self.chances)


MUTANTS: dict[str, Mutant] = {
    "a tail is one slot short": Mutant(lambda: [(Rosters, "__init__", _shorten_tails(Rosters.__init__))]),
    "a joiner was never unregistered": Mutant(
        lambda: [(Boundary, "__init__", _forget_unregistered(Boundary.__init__))], scenario=JOINS_LOOSE
    ),
    "an erased id has no past": Mutant(lambda: [(Boundary, "apply", _forget_erased(Boundary.apply))], 3),
    "a restore leaves no doubt": Mutant(
        lambda: [(ClassHistory, "doubted", lambda self, slot: frozenset())], 5, RESTORES
    ),
    "users are counted although a version is lost": Mutant(
        lambda: [(ClassHistory, "is_silent", lambda self, slot: False)], 3, LOST_VERSIONS
    ),
    "unregistered users change class at once": Mutant(
        lambda: [
            (ClassHistory, "unregistered_class", _count_unregistered_in_own_class(ClassHistory.unregistered_class))
        ],
        13,
        VERSIONS,
    ),
    "classes without members are not charged": Mutant(lambda: [(Rosters, "at", _drop_empty_classes(Rosters.at))]),
    "users are counted in the class they chose": Mutant(
        lambda: [(Rosters, "_find_corners", lambda self, slot, in_force: self._keys)]
    ),
    "dropped classes are not retained": Mutant(
        lambda: [(ClassHistory, "live", _retain_no_class(ClassHistory.live))], 36, VERSIONS
    ),
    "offers are not ordered": Mutant(
        lambda: [
            (StrictnessOrder, "lower", lambda self, offers: offers),
            (StrictnessOrder, "raise_charges", lambda self, charges: charges),
        ]
    ),
    "unregistered users are counted after a restore": Mutant(
        lambda: [(ClassHistory, "_doubted_until", lambda self, live: 0)], scenario=UNREGISTERED_AFTER_RESTORE
    ),
    "a joiner is one of the unregistered users": Mutant(
        lambda: [(Rosters, "at", _count_joiners_as_unregistered(Rosters.at))], scenario=JOINS_STRICT
    ),
    "a restore leaves out the class of unregistered users": Mutant(
        lambda: [
            (staleness, "_find_doubts", _doubt_declared_only(staleness._find_doubts)),
            (ClassHistory, "min_kept_slots", 1),  # the second rule that protects these users
        ],
        scenario=UNREGISTERED_IN_LOST_SLOTS,
    ),
    "an id that registers after a restore is not in doubt": Mutant(
        _doubt_known_users_only, scenario=JOINS_AFTER_RESTORE
    ),
    "known ids are counted as unregistered": Mutant(
        lambda: [(KnownIds, "__init__", _know_no_id(KnownIds.__init__))], 4
    ),
}


@contextmanager
def disabled(name: str) -> Iterator[None]:
    """Disable a rule, while it lasts."""
    with ExitStack() as patches:
        for owner, attribute, stand_in in MUTANTS[name].make():
            patches.enter_context(mock.patch.object(owner, attribute, stand_in))
        yield
