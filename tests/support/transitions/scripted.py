"""Scripted lives, exact numbers: what happens and what every class is offered, slot by slot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.transitions.accountant import Key
from tests.support.transitions.lives import LIMIT, Chances, Life, make_terms
from tests.support.transitions.systems import MakeSystem, MemorySystem
from wevent.core.arrays import IntArray
from wevent.core.mechanism import NoOffer, Policy
from wevent.journal import Terms
from wevent.people.membership import Change

LOOSE: Key = (1, 700_000_000)
STRICT: Key = (12, 200_000_000)
UNREGISTERED: Key = (12, 100_000_000)
_PART = 100_000_000


@dataclass(frozen=True)
class Scenario:
    """A scripted life under `add_remove`; the classes `LOOSE` and `STRICT` are declared.

    Attributes:
        offers: what each class is offered, by slot; nothing in other slots.
        changes: what users ask for, by the first slot in which it is active.
        backup: the slot before which a backup is made, 0: never.
        restored: the slot before which it is put in place, 0: never.
        unknown_users: maximum number of unregistered users that a slot counts.
    """

    offers: dict[int, dict[Key, int]]
    changes: dict[int, list[Change]]
    backup: int = 0
    restored: int = 0
    unknown_users: int = LIMIT


@dataclass
class ScriptedPolicy:
    """Offers what a scenario says."""

    offers: dict[int, dict[Key, int]] = field(default_factory=dict)

    def probe(self, ledger: Any) -> IntArray | None:
        return None

    def offer(self, ledger: Any, history: Any) -> IntArray | NoOffer:
        said = self.offers.get(history.slot)
        if said is None:
            return NoOffer.NOT_DUE
        rows = zip(ledger.windows.tolist(), ledger.epsilons.tolist(), strict=True)
        return np.array([said.get(row, 0) for row in rows], dtype=np.int64)


class ScriptedLife(Life):
    """A life that follows a scenario."""

    def __init__(self, scenario: Scenario, make_system: MakeSystem = MemorySystem) -> None:
        super().__init__(0, make_system, Chances(version=0.0, import_again=0.0, quiet=0.0, slots=20), doubles=True)
        self._scenario = scenario

    def _choose_version(self) -> tuple[Terms, Policy | None]:
        scenario = self._scenario
        terms = make_terms((LOOSE, STRICT), scenario.unknown_users, mechanism="pbu", neighbours="add_remove")
        return terms, ScriptedPolicy(scenario.offers)

    def _choose_changes(self) -> list[Change]:
        return self._scenario.changes.get(self.slot, [])

    def _is_backup_due(self) -> bool:
        return self.slot == self._scenario.backup

    def _is_restore_due(self) -> bool:
        return self.slot == self._scenario.restored


JOINS_LOOSE = Scenario(
    offers={4: {LOOSE: _PART, STRICT: _PART, UNREGISTERED: _PART}, 5: {LOOSE: 7 * _PART}},
    changes={1: [Change("set", "p1", STRICT)], 5: [Change("set", "p0", LOOSE)]},
)
"""p0 is counted as unregistered and joins under `LOOSE`: 2·0.1 + 0.7 of 0.2."""

JOINS_STRICT = Scenario(
    offers={6: {LOOSE: _PART, STRICT: _PART, UNREGISTERED: _PART}, 16: {LOOSE: _PART, STRICT: _PART}},
    changes={1: [Change("set", "p1", STRICT)], 5: [Change("set", "p0", STRICT)]},
)
"""p0 joins under `STRICT`. As one of the unregistered users p0 loses twice the charge of slot 6: 2·0.1 + 0.1 of 0.2."""

UNREGISTERED_AFTER_RESTORE = Scenario(
    offers={
        1: {LOOSE: _PART, STRICT: _PART, UNREGISTERED: _PART},
        4: {LOOSE: _PART, STRICT: _PART},
        13: {LOOSE: _PART, STRICT: _PART, UNREGISTERED: _PART},
    },
    changes={
        1: [Change("set", "p0", LOOSE)],
        2: [Change("remove", "p0")],
        3: [Change("set", "p0", STRICT)],  # lost
        13: [Change("set", "p5", STRICT)],
    },
    backup=3,
    restored=6,
)
"""p0 leaves, returns under `STRICT` in slots that are lost, and is taken for unregistered in slot 13: 0.1 + 2·0.1 of 0.2."""

JOINS_AFTER_RESTORE = Scenario(
    offers={4: {LOOSE: _PART, STRICT: _PART}, 6: {LOOSE: 7 * _PART}},
    changes={
        1: [Change("set", "p1", LOOSE)],
        3: [Change("set", "p0", STRICT)],  # lost
        6: [Change("set", "p0", LOOSE)],
    },
    backup=3,
    restored=6,
    unknown_users=0,
)
"""p0 joins under `STRICT` in slots that are lost, and registers under `LOOSE` after the restore: 0.1 + 0.7 of 0.2."""

UNREGISTERED_IN_LOST_SLOTS = Scenario(
    offers={
        5: {LOOSE: _PART, STRICT: _PART},
        14: {LOOSE: _PART, STRICT: _PART, UNREGISTERED: _PART},
        17: {LOOSE: _PART, STRICT: _PART},
    },
    changes={
        1: [Change("set", "p0", LOOSE)],
        13: [Change("remove", "p0")],  # lost
        14: [Change("set", "p5", STRICT)],
    },
    backup=13,
    restored=17,
)
"""p0 leaves in slots that are lost and is counted there as unregistered; the backup has p0 as a member: 2·0.1 + 0.1 of 0.2.

Only if rows are kept for their own window alone: kept for the widest one, p0 is not counted as unregistered in slot 14.
"""

SCENARIOS = {
    "joins under a loose class": JOINS_LOOSE,
    "joins under a strict class": JOINS_STRICT,
    "unregistered after a restore": UNREGISTERED_AFTER_RESTORE,
    "joins after a restore": JOINS_AFTER_RESTORE,
    "unregistered in lost slots": UNREGISTERED_IN_LOST_SLOTS,
}
