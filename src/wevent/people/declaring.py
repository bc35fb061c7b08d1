"""What declared terms mean for people: the classes that exist, the one of strangers, the hold-out rule; pure (spec 10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from wevent.core.requirements import Requirement
from wevent.people.holdout import HoldOut, Reign, Restore
from wevent.people.membership import Unknown, unknown_class


class Declaring(Protocol):
    """What the rules need of a journal's terms."""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The declared classes."""

    @property
    def widest(self) -> int:
        """The widest declared window."""

    @property
    def unknown_users(self) -> int:
        """How many unregistered users a slot may count."""

    @property
    def neighbours(self) -> str:
        """The neighbouring relation."""


class Reigning(Protocol):
    """Terms in force from a slot on."""

    @property
    def first(self) -> int:
        """The slot."""

    @property
    def terms(self) -> Declaring:
        """The terms."""


def strangers_class(terms: Declaring) -> Unknown | None:
    """The class that unregistered users are counted in under these terms, None if they are rejected."""
    return unknown_class(terms.requirements, terms.unknown_users, terms.neighbours)


def declared_classes(terms: Declaring) -> tuple[Requirement, ...]:
    """The classes that exist with or without members: the declared ones, and that of unknown users."""
    unknown = strangers_class(terms)
    return tuple(sorted({*terms.requirements, *([] if unknown is None else [unknown.requirement])}))


def holdout_of(epochs: Iterable[Reigning], restores: Iterable[Restore]) -> HoldOut:
    """The hold-out rule for a journal with these epochs and restores."""
    return HoldOut(tuple(_reign(epoch) for epoch in epochs), tuple(restores))


def _reign(epoch: Reigning) -> Reign:
    unknown = strangers_class(epoch.terms)
    key = None if unknown is None else unknown.requirement.key
    return Reign(epoch.first, epoch.terms.widest, key, halved=epoch.terms.neighbours != "replace")
