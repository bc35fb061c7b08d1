"""All that a journal holds about one person, and what a wish of theirs will make of it; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wevent.journal.contract import Journal
from wevent.people.declaring import holdout_of
from wevent.people.histories import Boundary, Membership, current_of
from wevent.people.holdout import HoldOut, erased_id
from wevent.people.membership import Change


@dataclass(frozen=True)
class PersonView:
    """What is held about one person.

    Attributes:
        memberships: every requirement held since when and until when, as far as it is kept; under the id, or a digest of it.
        queued: what was asked for and waits for the next slot boundary, in order.
        by_request: whether it is noted that they joined by themselves and not with a requirements file; False if that was
            not looked for.
        holdout: the rule that says how long past memberships are kept.
    """

    memberships: tuple[Membership, ...] = field(repr=False)
    queued: tuple[Change, ...] = field(repr=False)
    by_request: bool
    holdout: HoldOut = field(repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held about them."""
        return not self.memberships and not self.queued and not self.by_request

    @property
    def current(self) -> Membership | None:
        """The membership that lasts, counted or held out; None without one."""
        return current_of(self.memberships)

    @property
    def past(self) -> tuple[Membership, ...]:
        """Memberships that are over and may still hold the person out."""
        return tuple(row for row in self.memberships if row.last is not None)

    def kept_until(self, row: Membership) -> int | None:
        """The last slot through which a membership that is over is kept: after it, it holds nobody out."""
        return None if row.last is None else self.holdout.forgotten_from(row.last) - 1


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
    return PersonView(memberships, queued, by_request, holdout_of(journal.epochs(), registry.restores()))


def after_wishes(view: PersonView, wishes: Iterable[Change], slot: int, salt: bytes) -> PersonView:
    """What is held about a person when all that is queued, and then these wishes, take effect at a slot boundary."""
    boundary = Boundary(view.holdout, slot, salt)
    forgotten = view.holdout.forgotten_through(slot)
    rows = [row for row in view.memberships if row.last is None or row.last > forgotten]
    for change in (*view.queued, *wishes):
        rows = boundary.after(rows, change)
    return PersonView(tuple(rows), (), view.by_request, view.holdout)
