"""Roster of a slot: every member with the class that the member is counted in (spec 15.1, rule 2). Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.requirements import Population, Requirement
from wevent.counting.label_index import Labels
from wevent.counting.roster import Roster
from wevent.counting.string_column import StringColumn
from wevent.people.classes import ClassHistory, Key, find_corner, find_counting_class, to_requirements
from wevent.people.membership import KeyColumn, KnownIds, id_column


class MemberColumns(NamedTuple):
    """Members as columns: ids, and the requirement that each holds."""

    users: StringColumn
    keys: KeyColumn


class TailColumns(NamedTuple):
    """Requirements that were held and may still be in force, as columns: ids, requirements, last slots held."""

    users: StringColumn
    keys: KeyColumn
    lasts: IntArray


NO_TAILS = TailColumns(
    StringColumn.from_texts(()), KeyColumn([], np.zeros(0, dtype=np.int32)), np.zeros(0, dtype=np.int64)
)


class Rosters:
    """Rosters of consecutive slots for one state of the registry.

    The counting classes change when a requirement is no longer in force; the members do not.

    Args:
        members: every member.
        tails: every requirement that ended. Rows of users who are no members are ignored.
        classes: classes of the journal.
        limit: maximum number of unregistered users that a slot counts.
        known: ids that are never counted as unregistered.
    """

    def __init__(
        self,
        members: MemberColumns,
        tails: TailColumns = NO_TAILS,
        *,
        classes: ClassHistory,
        limit: int = 0,
        known: KnownIds | None = None,
    ) -> None:
        self._keys = members.keys
        self._classes = classes
        self._limit = limit
        self._roster = Roster(
            id_column(members.users),
            np.zeros(len(members.keys), dtype=np.int64),
            _NOBODY,
            is_stranger=None if known is None else lambda names: ~known.excludes(names),
        )
        rows = self._roster.find(Labels.of(tails.users))
        found = np.flatnonzero(rows >= 0)
        self._tail_rows, self._tail_keys = rows[found], KeyColumn(tails.keys.distinct, tails.keys.codes[found])
        windows = _to_array(tails.keys.distinct)[:, 0]
        self._tail_ends = tails.lasts[found] + windows[self._tail_keys.codes]  # first slot in which it is not in force

    def next_change(self, slot: int) -> int | None:
        """Return the next slot whose roster differs although no user changes, None if there is none."""
        ends = self._tail_ends[self._tail_ends > slot]
        changes = [self._classes.next_change(slot), int(ends.min()) if len(ends) else None]
        return min((change for change in changes if change is not None), default=None)

    def at(self, slot: int) -> Roster:
        """Return the roster of a slot; nobody is on it while a version may have been lost."""
        in_force = np.flatnonzero(self._tail_ends > slot)
        live = self._classes.live(slot).union(self._keys.distinct, self._tail_keys.where(in_force).distinct)
        live |= {find_corner(live)}
        if self._classes.is_silent(slot):
            return Roster(id_column([]), _NO_ROWS, Population(dict.fromkeys(to_requirements(live), 0)))
        corners = self._find_corners(slot, in_force)
        order = {key: row for row, key in enumerate(sorted(live))}
        counted = np.array([order[find_counting_class([key], live)] for key in corners.distinct], dtype=np.int64)
        own = np.array([order[key] for key in self._keys.distinct], dtype=np.int64)
        rows = counted[corners.codes]
        sizes = np.bincount(rows, minlength=len(order))
        own_sizes = np.bincount(rows[rows == own[self._keys.codes]], minlength=len(order))
        unregistered = self._classes.unregistered_class(slot)
        row = None if unregistered is None else order[unregistered]
        if row is not None:  # counted on top of the members of the class, up to the declared number
            sizes[row] += self._limit
            own_sizes[row] += self._limit * (unregistered == self._classes.version_at(slot).unregistered)
        requirements = to_requirements(live)
        population = Population(
            dict(zip(requirements, sizes.tolist(), strict=True)),
            dict(zip(requirements, own_sizes.tolist(), strict=True)),
        )
        return self._roster.reclassify(
            rows, population, unknown_row=row, unknown_limit=0 if row is None else self._limit
        )

    def _find_corners(self, slot: int, in_force: IntArray) -> KeyColumn:
        """Return for each member the widest window and the smallest epsilon of the requirements in force."""
        doubted = self._classes.doubted(slot)
        distinct = [find_corner([key, *doubted]) for key in self._keys.distinct]
        if not len(in_force):
            return KeyColumn(distinct, self._keys.codes)
        users, places = np.unique(self._tail_rows[in_force], return_inverse=True)  # members in transition
        windows, nanos = _to_array(distinct)[self._keys.codes[users]].T.copy()
        tails = _to_array(self._tail_keys.distinct)[self._tail_keys.codes[in_force]]
        np.maximum.at(windows, places, tails[:, 0])
        np.minimum.at(nanos, places, tails[:, 1])
        moved, codes = KeyColumn.of_columns(windows, nanos), self._keys.codes.astype(np.int64)
        codes[users] = moved.codes + len(distinct)
        return KeyColumn(distinct + moved.distinct, codes)


def _to_array(keys: list[Key]) -> IntArray:
    return np.array(keys, dtype=np.int64).reshape(-1, 2)


_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)
_NOBODY = Population({Requirement.from_nano(1, 2): 0})
