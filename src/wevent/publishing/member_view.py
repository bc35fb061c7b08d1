"""The members of a journal, slot by slot: the registry's changes put in force, and a roster for counting."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from wevent.counting.roster import Roster
from wevent.journal.contract import Registry
from wevent.journal.terms import Epoch
from wevent.people.declaring import declared_classes, holdout_of, strangers_class
from wevent.people.holdout import HoldOut
from wevent.people.membership import Barred, make_roster

_log = logging.getLogger("wevent.publishing.member_view")
_FAR = 1 << 62


class SlotRoster(NamedTuple):
    """Who counts in a slot.

    Attributes:
        roster: for counting.
        slots: for how many slots from this one on it stands if nobody asks for a change.
        turnover: registered users who joined plus users who left at its first slot.
        barred: how many ids the registry keeps from counting as strangers; None where strangers are not counted.
    """

    roster: Roster
    slots: int
    turnover: int
    barred: int | None


class MemberView:
    """Rosters of consecutive slots.

    Args:
        registry: of a journal that is opened for writing.
        epochs: every epoch of it; the last one is in force.

    Raises:
        InvalidJournal: if memberships are not what was stored.
    """

    def __init__(self, registry: Registry, epochs: list[Epoch]) -> None:
        registry.check()
        terms = epochs[-1].terms
        self._registry = registry
        self._declared = declared_classes(terms)
        self._holdout: HoldOut = holdout_of(epochs, registry.restores())
        self._unknown = strangers_class(terms)
        self._strangers_from = self._holdout.strangers_from()
        self._standing: SlotRoster | None = None
        self._until = 0  # the roster stands before this slot
        self._forget = 0  # past memberships are looked through in this slot

    def at(self, slot: int, most: int | None = None) -> SlotRoster:
        """Who counts in a slot. Changes that were asked for take effect here: at the boundary before it.

        Args:
            slot: the slot.
            most: how many changes at most; the others wait for the next boundary. None: all of them.
        """
        standing, self._standing = (
            self._standing,
            None,
        )  # if anything fails below, the next call reads the registry again
        changed = self._registry.pending() > 0
        if changed or slot >= self._forget:
            changed = self._registry.apply(slot, self._holdout, most) > 0 or changed
            self._forget = self._next_forgetting(slot)
        if changed or standing is None or slot >= self._until:
            if changed:
                _log.info("changes of the registry take effect in slot %d", slot)
            standing = self._build(slot)
        self._standing = standing
        return standing._replace(slots=min(self._until, self._forget) - slot)

    def _next_forgetting(self, slot: int) -> int:
        """When past memberships are dropped next: soon after they hold nobody out, but not in every slot."""
        first = self._registry.first_forgotten(self._holdout)
        return _FAR if first is None else max(first, slot + 1 + self._holdout.widest // 8)

    def _build(self, slot: int) -> SlotRoster:
        """The roster of everybody whose time has come, and of the strangers, if theirs has."""
        rows = self._registry.rows()
        ahead = rows.firsts[rows.firsts > slot].tolist()
        waiting = rows.users.where(np.flatnonzero(rows.firsts > slot)) if ahead else None
        if ahead:
            rows = rows[np.flatnonzero(rows.firsts <= slot)]
        unknown, barred = self._unknown, None
        if unknown is None or self._strangers_from is None or slot < self._strangers_from:
            ahead += [self._strangers_from] if self._strangers_from is not None else []
            unknown = None
        else:
            doubts = self._holdout.doubts_about_strangers(slot)
            ahead += doubts.values()
            barred = Barred(self._registry.apart(slot), self._registry.salt, doubts)
        self._until = min(ahead, default=_FAR)
        roster = make_roster(rows.users, rows.keys, self._declared, unknown, barred, waiting)
        turnover = self._registry.turnover(slot)
        return SlotRoster(roster, self._until - slot, turnover, None if barred is None else len(barred))
