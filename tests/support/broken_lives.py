"""Deployments that are broken on purpose: what the accountant of a whole life has to see."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.fault.broken import EmitsBeforeCommit
from tests.support import lives
from wevent.core.arrays import IntArray
from wevent.journal import Batch, Journal, SqliteJournal
from wevent.journal.record import Hook, no_hook
from wevent.journal.user_registry import Registry
from wevent.people import membership
from wevent.people.classes import ClassHistory, Key
from wevent.people.membership import Boundary, KeyColumn, Membership, Rosters
from wevent.publishing import staleness

_find_corners, _begin_boundary = Rosters._find_corners, Boundary.__init__
_charge_elsewhere, _commit = staleness._charge_elsewhere, SqliteJournal.commit


def _forget_tails(self: Rosters, slot: int, in_force: IntArray) -> KeyColumn:
    return _find_corners(self, slot, in_force[:0])


def _begin_without_notes(self: Boundary, *arguments: Any) -> None:
    _begin_boundary(self, *arguments)
    self._unregistered = []


def _take_the_new_class(self: ClassHistory, slot: int) -> Key | None:
    return None if self.is_silent(slot) else self.version_at(slot).unregistered


def _without_charges(batch: Batch) -> Batch:
    free = [dataclasses.replace(one, probe=one.probe * 0, publication=one.publication * 0) for one in batch.records]
    return batch._replace(records=free, state=None)


def _commit_without_charges(self: SqliteJournal, batch: Batch, at: Hook = no_hook) -> None:
    _commit(self, _without_charges(batch), at)


def _charge_nothing(journal: Journal, through: int) -> Batch:
    return _without_charges(_charge_elsewhere(journal, through))


def _close_nothing(journal: Journal, through: int) -> Batch:
    return Batch((), None, None, through)


def _keep_no_row(history: membership.History, slot: int) -> list[Membership]:
    return [row for row in history if row.last is not None]


BROKEN: dict[str, tuple[Any, str, Any]] = {
    "an earlier requirement is forgotten": (Rosters, "_find_corners", _forget_tails),
    "a restore leaves nothing in doubt": (ClassHistory, "doubted", lambda self, slot: frozenset()),
    "a joiner was not unregistered": (Boundary, "__init__", _begin_without_notes),
    "unregistered users change class at once": (ClassHistory, "unregistered_class", _take_the_new_class),
    "a known id is unregistered": (Registry, "former_ids", lambda self: []),
}
"""One of the product's rules each, disabled: where it is, its name, what stands there instead."""

NOTICED: dict[str, tuple[Any, str, Any]] = {
    "who leaves is forgotten": (membership, "end_current", _keep_no_row),
    "slots released elsewhere cost nothing": (staleness, "_charge_elsewhere", _charge_nothing),
    "slots released elsewhere are drawn": (staleness, "_charge_elsewhere", _close_nothing),
    "a slot goes out before it is stored": (lives, "Publication", EmitsBeforeCommit),
    "charges are not stored": (SqliteJournal, "commit", _commit_without_charges),
}
"""Other mistakes that are easy to make: the accountant sees them, or a slot goes out with other numbers."""

HURT = {  # a life in which it shows; in others most often nothing happens
    "an earlier requirement is forgotten": 1,
    "a restore leaves nothing in doubt": 5,
    "a joiner was not unregistered": 1,
    "unregistered users change class at once": 18,
    "a known id is unregistered": 6,
    "who leaves is forgotten": 1,
    "slots released elsewhere cost nothing": 4,
    "slots released elsewhere are drawn": 0,
    "a slot goes out before it is stored": 3,
    "charges are not stored": 0,
}
