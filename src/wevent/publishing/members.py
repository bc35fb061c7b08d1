"""Rosters of consecutive slots: registry changes applied at slot boundaries, and the class that each user is counted in."""

from __future__ import annotations

import logging
from typing import NamedTuple

from wevent.counting.roster import Roster
from wevent.journal import Registry
from wevent.journal.terms import Epoch, Terms, class_history
from wevent.people.membership import KnownIds, Rosters
from wevent.settings.values import SECOND_US

_log = logging.getLogger("wevent.publishing.members")
_FAR = 1 << 62
_CHANGES_PER_MINUTE = 1 << 13


def limit_changes(terms: Terms) -> int:
    """Return how many changes of the registry a boundary of live slots applies, from the slot length alone."""
    return _CHANGES_PER_MINUTE * max(1, terms.length_us // (60 * SECOND_US))


class SlotRoster(NamedTuple):
    """Roster of a slot."""

    roster: Roster
    slots: int  # number of slots, from this one on, for which it is valid if no user changes
    turnover: int  # registered users who joined plus users who left at its first slot
    unregistered: tuple[int, int, int, int] | None  # their class, as the journal stores it (`Group.of`)


class MemberView:
    """Rosters of consecutive slots, from a registry that is open for writing.

    Raises:
        InvalidJournal: if memberships are not what was stored.
    """

    def __init__(self, registry: Registry, epochs: list[Epoch]) -> None:
        registry.check()
        self._registry = registry
        self._classes = class_history(epochs, registry.restores())
        self._limit = epochs[-1].terms.unknown_users
        self._known = 0  # ids that are never counted as unregistered
        self._rosters: Rosters | None = None
        self._standing: SlotRoster | None = None
        self._until = 0  # the roster is valid before this slot
        self._expiry = 0  # rows that are no longer kept are dropped in this slot

    def at(self, slot: int, most: int | None = None) -> SlotRoster:
        """Return the roster of a slot. Queued changes take effect at the boundary before it.

        At most `most` changes, and rows that are dropped; the others wait for the next boundary.
        """
        standing, rosters = self._standing, self._rosters
        self._standing = self._rosters = None  # after a failure the next call reads the registry again
        changed = self._registry.pending() > 0
        if changed or slot >= self._expiry:
            changed = self._registry.apply(slot, self._classes, most) > 0 or changed
            first = self._registry.next_expiry(self._classes) or _FAR
            # soon after rows may be dropped, and not in every slot; the next slot if this boundary left some
            self._expiry = slot + 1 if first <= slot else max(first, slot + 1 + self._classes.max_window // 8)
            if self._limit and self._expiry > slot + 1:  # ids whose rows were dropped may be counted as unregistered
                rosters = None
        if changed or rosters is None:
            known = KnownIds(self._registry.former_ids(), self._registry.salt) if self._limit else KnownIds()
            self._known = len(known)
            members, tails = self._registry.rows(), self._registry.tails(slot)
            rosters = Rosters(members, tails, classes=self._classes, limit=self._limit, known=known)
            standing = None
        if changed:
            _log.info("changes of the registry take effect in slot %d", slot)
        if standing is None or slot >= self._until:
            roster = rosters.at(slot)
            self._until = rosters.next_change(slot) or _FAR
            unregistered = None
            if roster.unknown_row is not None:
                counted = roster.population.classes[roster.unknown_row]
                unregistered = (*counted.key, self._limit, self._known)
            standing = SlotRoster(roster, 0, self._registry.turnover(slot), unregistered)
        self._standing, self._rosters = standing, rosters
        return standing._replace(slots=min(self._until, self._expiry) - slot)
