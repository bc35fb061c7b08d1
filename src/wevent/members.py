"""The members of a journal, slot by slot: the registry's changes put in force, and a roster for counting."""

from __future__ import annotations

import logging

from wevent.journal.rebuild import declared_classes
from wevent.journal.sqlite import SqliteJournal
from wevent.journal.terms import Terms
from wevent.membership import Key, make_roster, unknown_class
from wevent.roster import Roster

_log = logging.getLogger("wevent.members")
_FAR = 1 << 62


class MemberView:
    """Rosters of consecutive slots.

    Args:
        journal: opened for writing.
        terms: the terms in force.
    """

    def __init__(self, journal: SqliteJournal, terms: Terms) -> None:
        self._journal = journal
        self._declared = declared_classes(terms)
        self._epochs = journal.epochs()
        self._widest = max(one.window for epoch in self._epochs for one in epoch.terms.requirements)
        self._unknown = unknown_class(terms.requirements, terms.unknown_users, terms.neighbours)
        self._roster: Roster | None = None
        self._until = 0  # the roster stands before this slot

    def at(self, slot: int) -> tuple[Roster, int]:
        """The roster of a slot, and for how many slots from it on it stands if nobody asks for a change.

        Changes that were asked for take effect here: at the boundary before `slot`.
        """
        registry = self._journal.registry
        changed = registry.pending() > 0 and registry.apply(slot, self._widest) > 0
        if changed or self._roster is None or slot >= self._until:
            if changed:
                _log.info("changes of the registry take effect in slot %d", slot)
            self._roster = self._build(slot)
        return self._roster, self._until - slot

    def _build(self, slot: int) -> Roster:
        """The roster of everybody whose time has come; what holds out a whole class is looked up once per class."""
        rows = self._journal.registry.rows()
        floors = self._floors()
        waits = {
            key: max(self._floor(key, floors), self._opening(key[0])) for key in {(row[1], row[2]) for row in rows}
        }
        starts = (max(row[3], waits[row[1], row[2]]) for row in rows)
        ahead = [start for start in starts if start > slot]
        self._until = min(ahead, default=_FAR)
        if ahead:
            rows = [row for row in rows if row[3] <= slot and waits[row[1], row[2]] <= slot]
        keys = ((row[1], row[2]) for row in rows)
        return make_roster([row[0] for row in rows], keys, self._declared, self._unknown)

    def _opening(self, window: int) -> int:
        """From which slot on a window may be used that is larger than any declared before its epoch.

        Past memberships were kept for the largest window of that time, W, only: one that was forgotten ended W slots
        before the epoch at the latest, so `window` − W slots after its start nobody can be held out by it.
        """
        opening, widest = 0, 0
        for epoch in self._epochs:
            if 0 < widest < window:
                opening = max(opening, epoch.first + window - widest)
            widest = max(widest, *(one.window for one in epoch.terms.requirements))
        return opening

    def _floors(self) -> tuple[int, frozenset[Key]] | None:
        """After slots released elsewhere: the last of them, and the classes that were charged for them."""
        record = self._journal.elsewhere()
        if record is None:
            return None
        return record.slot, frozenset((one.window, one.nano) for one in record.group.population.classes)

    @staticmethod
    def _floor(key: Key, floors: tuple[int, frozenset[Key]] | None) -> int:
        """A class that was not charged for slots released elsewhere may have had members there: it waits a window."""
        if floors is None or key in floors[1]:
            return 0
        return floors[0] + key[0]
