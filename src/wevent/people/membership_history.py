"""Rows of the requirements that a user held, and the effect of a change on them (spec 15.1). Pure.

Every registry stores these rows. A row that ended is kept while its requirement is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wevent.people.classes import ClassHistory, Key
from wevent.people.membership import ERASED, Change, erased_id


class Membership(NamedTuple):
    """A requirement that a user holds or held.

    Attributes:
        user: the id, or the digest of an erased one.
        window, nano: the requirement.
        level: the level it was chosen by, None for numbers.
        first: first slot. 0: the id was unknown through `last` and may have been counted as an unregistered user.
        last: last slot, None while it is held.
    """

    user: str
    window: int
    nano: int
    level: str | None
    first: int
    last: int | None

    @property
    def key(self) -> Key:
        """The requirement."""
        return self.window, self.nano


History = Sequence[Membership]
"""Every row of one user, under the id and under the digest of it."""


class Boundary:
    """A slot boundary at which changes take effect.

    Args:
        classes: classes of the journal.
        slot: first slot after the boundary.
        salt: key of the digests of ids.
    """

    def __init__(self, classes: ClassHistory, slot: int, salt: bytes) -> None:
        self._slot, self._salt = slot, salt
        self._unregistered = classes.unregistered_before(slot)

    def apply(self, history: History, change: Change) -> list[Membership]:
        """Return the rows of a user after a change."""
        if change.action != "set" or change.key is None:
            rows = end_current(history, self._slot)
            return [self._erase(row) for row in rows] if change.action == "erase" else rows
        current = find_current(history)
        if current is not None and current.key == change.key:
            return [row._replace(level=change.level) if row is current else row for row in history]
        # an erased id may register again
        rows = [Membership(change.user, *row[1:]) for row in end_current(history, self._slot)]
        if not history:  # the id was unknown, so it may have been counted as unregistered
            rows = [Membership(change.user, *key, None, 0, last) for key, last in self._unregistered]
        before = next((row for row in rows if row.key == change.key and row.last == self._slot - 1 and row.first), None)
        if before is not None:  # undone at the same boundary: one continuous membership
            rows.remove(before)
            return [*rows, before._replace(level=change.level, last=None)]
        return [*rows, Membership(change.user, *change.key, change.level, self._slot, None)]

    def _erase(self, row: Membership) -> Membership:
        name = row.user if row.user.startswith(ERASED) else erased_id(row.user, self._salt)
        return row._replace(user=name, level=None)


def end_current(history: History, slot: int) -> list[Membership]:
    """Return the rows after the current membership ended before a slot. One that never began leaves no trace."""
    ended = (Membership(*row[:5], slot - 1) if row.last is None else row for row in history)
    return [row for row in ended if row.last is not None and row.last >= row.first]


def find_current(history: History) -> Membership | None:
    """Return the requirement that a user holds, None for a user who left."""
    return next((row for row in history if row.last is None), None)


def find_in_force(history: History, slot: int) -> set[Key]:
    """Return the requirements in force for a user in a slot, as far as the user's own rows go."""
    return {row.key for row in history if row.first <= slot and (row.last is None or slot < row.last + row.window)}


def drop_expired(history: Iterable[Membership], classes: ClassHistory, slot: int) -> list[Membership]:
    """Return the rows that are still kept in a slot."""
    return [row for row in history if row.last is None or classes.kept_through(row.window, row.last) >= slot]
