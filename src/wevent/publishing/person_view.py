"""All that a journal holds about one person, and what a wish of theirs will make of it; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wevent.journal.contract import Journal
from wevent.journal.terms import class_history
from wevent.people.classes import ClassHistory
from wevent.people.membership import Change, erased_id
from wevent.people.membership_history import Boundary, Membership, drop_expired, find_current


@dataclass(frozen=True)
class PersonView:
    """What is held about one person.

    Attributes:
        memberships: every requirement held since when and until when, as far as it is kept; under the id, or a digest of it.
        queued: what was asked for and waits for the next slot boundary, in order.
        by_request: whether it is noted that they joined by themselves and not with a requirements file; False if that was
            not looked for.
        classes: classes of the journal.
    """

    memberships: tuple[Membership, ...] = field(repr=False)
    queued: tuple[Change, ...] = field(repr=False)
    by_request: bool
    classes: ClassHistory = field(repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held about them."""
        return not self.memberships and not self.queued and not self.by_request

    @property
    def current(self) -> Membership | None:
        """Requirement that the user holds, None without one."""
        return find_current(self.memberships)

    @property
    def past(self) -> tuple[Membership, ...]:
        """Requirements that ended and are still kept."""
        return tuple(row for row in self.memberships if row.last is not None)

    def kept_until(self, row: Membership) -> int | None:
        """Return the last slot through which a requirement that ended is kept."""
        return None if row.last is None else self.classes.kept_through(row.window, row.last)

    def earlier_until(self, slot: int) -> int | None:
        """Return the first slot in which no earlier choice of the user is in force any more, None if none is in a slot."""
        ends = [row.last + row.window for row in self.past if row.last is not None and row.first]
        return max((end for end in ends if end > slot), default=None)


def view_person(journal: Journal, user: str, *, whole: bool = False) -> PersonView:
    """What a journal holds about one person.

    Args:
        journal: the journal.
        user: the id.
        whole: whether to look, too, how they joined, which takes longer the more people did so by themselves.
    """
    registry = journal.registry
    memberships = tuple(next(iter(registry.histories([user]))))
    queued = tuple(change for change in registry.queued() if change.user == user)
    by_request = whole and erased_id(user, registry.salt) in registry.joined_by_request()
    return PersonView(memberships, queued, by_request, class_history(journal.epochs(), registry.restores()))


def after_wishes(view: PersonView, wishes: Iterable[Change], slot: int, salt: bytes) -> PersonView:
    """What is held about a person when all that is queued, and then these wishes, take effect at a slot boundary."""
    boundary = Boundary(view.classes, slot, salt)
    rows = drop_expired(view.memberships, view.classes, slot)
    for change in (*view.queued, *wishes):
        rows = boundary.apply(rows, change)
    return PersonView(tuple(rows), (), view.by_request, view.classes)
