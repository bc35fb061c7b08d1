"""Contents of a journal as public values: budgets of classes, levels, and the data of one user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wevent.core.budget import NANO
from wevent.core.requirements import Levels, Requirement
from wevent.journal.contents import Loaded
from wevent.journal.contract import Journal
from wevent.journal.rebuild import follow_ledger, rebuild_ledger
from wevent.journal.terms import Epoch, class_history
from wevent.people.classes import ClassHistory, Key
from wevent.people.membership import Change
from wevent.people.membership_history import Boundary, Membership, drop_expired, find_current
from wevent.publishing.configuration import Settings
from wevent.publishing.importing import AskingFile
from wevent.streams.windows import span_text


class RemainingBudget(NamedTuple):
    """Budget of a class.

    Attributes:
        requirement: requirement of the class.
        users: number of users who are counted in it.
        left: nano-epsilons that the next slot may still charge.
    """

    requirement: Requirement
    users: int
    left: int

    @property
    def share(self) -> float:
        """Share of epsilon that is left."""
        return self.left / self.requirement.nano

    @property
    def charged(self) -> float:
        """Epsilon charged in the open window."""
        return (self.requirement.nano - self.left) / NANO


class BudgetView:
    """Ledger of a journal as of the last committed slot, for reading."""

    def __init__(self, loaded: Loaded, epochs: list[Epoch]) -> None:
        self._ledger, self._population = rebuild_ledger(loaded, epochs)

    @property
    def slot(self) -> int:
        """Last slot that is charged, 0 before the first."""
        return self._ledger.slot - 1

    def follow(self, journal: Journal) -> None:
        """Charge the slots that were committed since."""
        for record in journal.releases(self._ledger.slot):
            if record.slot != self._ledger.slot:  # slots in between were dropped
                self._ledger, self._population = rebuild_ledger(journal.load(), journal.epochs())
                return
            self._population = follow_ledger(self._ledger, self._population, record)

    def classes(self) -> list[RemainingBudget]:
        """Return the budget of every class, the shortest window first."""
        left = self._ledger.remaining().tolist()
        rows = zip(self._population.items(), left, strict=True)
        return [RemainingBudget(requirement, users, nano) for (requirement, users), nano in rows]


class LevelRow(NamedTuple):
    """One level or requirement of a stream.

    Attributes:
        level: name of the level; None for a requirement that users hold in numbers only.
        requirement: window in slots and nano-epsilons.
        span: window as a duration, None where slots have no length.
        size: number of users who hold the requirement, under any name. For operators (spec 15.2). None: not counted.
    """

    level: str | None
    requirement: Key
    span: str | None
    size: int | None


@dataclass(frozen=True)
class LevelOffer:
    """Levels that a stream offers.

    Attributes:
        rows: every pair of names, the strictest privacy and the shortest window first, then combined names, then
            requirements that are held in numbers only.
        slot_us: length of a slot, None where slots have no length.
        declared: whether the stream declares its levels; False for the default ones.
        notes: remarks about the settings.
    """

    rows: tuple[LevelRow, ...]
    slot_us: int | None
    declared: bool
    notes: tuple[str, ...] = ()


def read_offer(journal: Journal) -> LevelOffer:
    """Return the levels of a journal and the number of users who hold each, without queued changes."""
    terms = journal.head().epoch.terms
    return _offer(terms.level_table, terms.slot_length_us, journal.registry.sizes())


def configured_offer(settings: Settings) -> LevelOffer:
    """Return the levels of a configuration and the number of users who ask for each in its requirements file.

    Raises:
        WeventError: as of `read_requirements`.
    """
    sizes: Mapping[Key, int] | None = None
    notes = settings.notes
    file = AskingFile.of(settings)
    if file is not None:
        asked = file.read()
        sizes = asked.keys.sizes()
        notes = (*notes, *asked.notes)
    return _offer(settings.levels, settings.slot_length_us, sizes, notes)


def _offer(
    levels: Levels | None, slot_us: int | None, sizes: Mapping[Key, int] | None, notes: tuple[str, ...] = ()
) -> LevelOffer:
    table = levels or Levels.default()
    offered = sorted(table.offered().items(), key=lambda row: (row[0] in table.combined, row[1].nano, row[1].window))
    names: list[tuple[str | None, Key]] = [(level, requirement.key) for level, requirement in offered]
    named = {key for _, key in names}
    names += [(None, key) for key in sorted(sizes or {}) if key not in named]
    rows = [
        LevelRow(
            level,
            key,
            None if slot_us is None else span_text(key[0] * slot_us),
            None if sizes is None else sizes.get(key, 0),
        )
        for level, key in names
    ]
    return LevelOffer(tuple(rows), slot_us, levels is not None, notes)


@dataclass(frozen=True)
class UserView:
    """Data of one user.

    Attributes:
        memberships: every requirement that is kept, with its first and last slot; under the id, or a digest of it.
        queued: requests that wait for the next slot boundary, in order.
        classes: classes of the journal.
    """

    memberships: tuple[Membership, ...] = field(repr=False)
    queued: tuple[Change, ...] = field(repr=False)
    classes: ClassHistory = field(repr=False)

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

    def after(self, changes: Iterable[Change], slot: int, salt: bytes) -> UserView:
        """Return the data once the queued requests, and then these, take effect at the boundary before a slot."""
        boundary = Boundary(self.classes, slot, salt)
        rows = drop_expired(self.memberships, self.classes, slot)
        for change in (*self.queued, *changes):
            rows = boundary.apply(rows, change)
        return UserView(tuple(rows), (), self.classes)


def view_user(journal: Journal, user: str) -> UserView:
    """Return the data of one user."""
    registry = journal.registry
    memberships = tuple(next(iter(registry.histories([user]))))
    queued = tuple(change for change in registry.queued() if change.user == user)
    return UserView(memberships, queued, class_history(journal.epochs(), registry.restores()))
