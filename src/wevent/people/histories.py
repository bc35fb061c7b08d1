"""What a change, a restore or the passing of time makes of a person's memberships: rows in, rows out, pure (spec 10).

From which slot on somebody counts is decided in `wevent.people.holdout`; here is what the registry then writes down. Every
registry stores these rows, whatever it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from wevent.people.holdout import ERASED, HoldOut, Key, Past, Restore, bucket_of, erased_id
from wevent.people.membership import Change


class Membership(NamedTuple):
    """A membership as it is stored.

    Attributes:
        user: the id, or the digest of an erased one.
        window, nano: the requirement.
        level: the words it came from, None for numbers.
        since: the slot boundary since which the registry knows the id without a break. Later than `last`: only a note
            that the id was unknown until then and may have been counted as a stranger through `last`.
        first: the first slot in which it counts.
        last: the last slot of membership, None while it lasts.
    """

    user: str
    window: int
    nano: int
    level: str | None
    since: int
    first: int
    last: int | None

    @property
    def key(self) -> Key:
        """The requirement."""
        return self.window, self.nano

    @property
    def is_note(self) -> bool:
        """Whether it is no membership: the id may have been counted as a stranger through `last`."""
        return self.last is not None and self.last < self.since


History = Sequence[Membership]
"""Every membership of one person, under the id and under the digest of it."""


class Boundary:
    """A slot boundary at which changes take effect; what holds for many who are alike is worked out once.

    Args:
        holdout: the rule.
        slot: the slot from which on they are in force.
        salt: the key of the digests of ids.
    """

    def __init__(self, holdout: HoldOut, slot: int, salt: bytes) -> None:
        self._holdout, self._slot, self._salt = holdout, slot, salt
        self._strangers = holdout.as_stranger(slot)
        self._firsts: dict[Any, int] = {}

    def after(self, history: History, change: Change) -> list[Membership]:
        """The memberships of a person after a change."""
        current = current_of(history)
        if change.action != "set" or change.key is None:
            left = self._ended(history, current)
            return self._erased(left) if change.action == "erase" else left
        if current is not None and current.key == change.key:
            return [row._replace(level=change.level) if row is current else row for row in history]
        past = [Past(row.key, self._last_before(row), row.is_note) for row in history if row.first < self._slot]
        since = min((row.since for row in history), default=self._slot)
        rows = self._ended(history, current)
        if not history:  # a note of where somebody whom the registry did not know may have been counted
            past = self._strangers
            rows = [Membership(change.user, *held.key, None, since, held.last, held.last) for held in past]
        first = self._first_slot(change, past, since)
        return _merged([*rows, Membership(change.user, *change.key, change.level, since, first, None)])

    def _last_before(self, row: Membership) -> int:
        return self._slot - 1 if row.last is None else row.last

    def _ended(self, history: History, current: Membership | None) -> list[Membership]:
        """The current membership ends before the slot; one that never began leaves no trace."""
        others = [row for row in history if row is not current]
        if current is not None and current.first < self._slot:
            others.append(current._replace(last=self._slot - 1))
        return _merged(others)

    def _erased(self, rows: list[Membership]) -> list[Membership]:
        """The id is replaced by a keyed digest for as long as the hold-out needs it."""
        before = [row for row in rows if row.user.startswith(ERASED)]
        named = [row for row in rows if not row.user.startswith(ERASED)]
        return _merged([*before, *(row._replace(user=erased_id(row.user, self._salt), level=None) for row in named)])

    def _first_slot(self, change: Change, past: list[Past], since: int) -> int:
        """`HoldOut.first_slot`; who somebody is matters after a restore only."""
        assert change.key is not None
        bucket = bucket_of(change.user, self._salt) if self._holdout.restores else 0
        alike = change.key, tuple(past), bucket, since
        if alike not in self._firsts:
            self._firsts[alike] = self._holdout.first_slot(change.key, self._slot, past, bucket, since)
        return self._firsts[alike]


def current_of(history: History) -> Membership | None:
    """The membership that lasts, held out or not; None for somebody who left."""
    return next((row for row in history if row.last is None), None)


def moved(before: History, after: History) -> bool:
    """Whether somebody joined, left or changed the requirement; new words for the same one are no change."""
    old, new = current_of(before), current_of(after)
    return (old and (old.key, old.first)) != (new and (new.key, new.first))


def after_restore(history: History, restore: Restore, salt: bytes) -> list[Membership]:
    """The memberships of a person after slots released elsewhere: one that has to wait ends at M and begins anew."""
    current = current_of(history)
    if current is None:
        return list(history)
    waits = restore.wait(current.key, bucket_of(current.user, salt), current.since)
    if waits <= current.first:
        return list(history)
    rows = [row for row in history if row is not current]
    if current.first <= restore.slot:
        rows.append(current._replace(last=restore.slot))
    return _merged([*rows, current._replace(first=waits)])


def _merged(rows: Iterable[Membership]) -> list[Membership]:
    """The same membership twice is one: the later end counts."""
    found: dict[tuple[str, int, Key], Membership] = {}
    for row in rows:
        place = row.user, row.first, row.key
        there = found.get(place)
        if there is not None:
            row = row._replace(last=None if there.last is None or row.last is None else max(there.last, row.last))
        found[place] = row
    return list(found.values())
