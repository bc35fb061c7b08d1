"""Deployments that are broken on purpose: what the accountant of a whole life has to see."""

from __future__ import annotations

from typing import Any

from wevent.core.arrays import IntArray
from wevent.journal.user_registry import Registry
from wevent.people.classes import ClassHistory, Key
from wevent.people.membership import Boundary, KeyColumn, Rosters

_find_corners, _begin_boundary = Rosters._find_corners, Boundary.__init__


def _forget_tails(self: Rosters, slot: int, in_force: IntArray) -> KeyColumn:
    return _find_corners(self, slot, in_force[:0])


def _begin_without_notes(self: Boundary, *arguments: Any) -> None:
    _begin_boundary(self, *arguments)
    self._unregistered = []


def _take_the_new_class(self: ClassHistory, slot: int) -> Key | None:
    return None if self.is_silent(slot) else self.version_at(slot).unregistered


BROKEN: dict[str, tuple[Any, str, Any]] = {
    "an earlier requirement is forgotten": (Rosters, "_find_corners", _forget_tails),
    "a restore leaves nothing in doubt": (ClassHistory, "doubted", lambda self, slot: frozenset()),
    "a joiner was not unregistered": (Boundary, "__init__", _begin_without_notes),
    "unregistered users change class at once": (ClassHistory, "unregistered_class", _take_the_new_class),
    "a known id is unregistered": (Registry, "former_ids", lambda self: []),
}
"""One of the product's rules each, disabled: where it is, its name, what stands there instead."""

HURT = {  # a life in which users do lose too much; in others most often nothing happens
    "an earlier requirement is forgotten": 1,
    "a restore leaves nothing in doubt": 5,
    "a joiner was not unregistered": 1,
    "unregistered users change class at once": 18,
    "a known id is unregistered": 6,
}
