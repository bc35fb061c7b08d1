"""Contents of a journal as public values: budgets of classes, levels, and the data of one user."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from wevent.core.budget import NANO
from wevent.core.ledger import Ledger
from wevent.core.requirements import Levels, Population
from wevent.journal import Journal
from wevent.journal.rebuild import follow_ledger, rebuild_ledger
from wevent.journal.record import Loaded
from wevent.journal.terms import Epoch, class_history
from wevent.people.classes import ClassHistory, Key
from wevent.people.membership import Boundary, Change, Membership, drop_expired, find_current
from wevent.publishing.importing import read_wanted
from wevent.schemas import BudgetRow, BudgetTable, LevelTable, OfferedLevel
from wevent.settings import Settings
from wevent.settings.values import SECOND_US, span_text


class BudgetView:
    """Budgets of all classes as of the last committed slot. Follows a journal from slot to slot, one caller at a time."""

    def __init__(self) -> None:
        self._standing: tuple[Ledger, Population] | None = None

    def read(self, journal: Journal) -> BudgetTable:
        """Charge the slots that were committed since, and return the budgets."""
        standing, self._standing = self._standing, None  # after a failure the next call rebuilds it
        if standing is not None:
            ledger, population = standing
            for record in journal.releases(ledger.slot):
                if record.slot != ledger.slot:  # slots before it were dropped
                    return self.read(journal)
                population = follow_ledger(ledger, population, record)
            standing = ledger, population
        self._standing = standing or rebuild_ledger(journal.load(), journal.epochs())
        return _budget_table(*self._standing)


def read_budgets(loaded: Loaded, epochs: list[Epoch]) -> BudgetTable:
    """Return the budgets of all classes as of the last slot of a loaded journal."""
    return _budget_table(*rebuild_ledger(loaded, epochs))


def _budget_table(ledger: Ledger, population: Population) -> BudgetTable:
    rows = [
        BudgetRow(
            window=requirement.window,
            epsilon=requirement.epsilon,
            users=users,
            left=left / NANO,
            share=left / requirement.nano,
            charged=(requirement.nano - left) / NANO,
        )
        for (requirement, users), left in zip(population.items(), ledger.remaining().tolist(), strict=True)
    ]
    return BudgetTable(slot=ledger.slot - 1, classes=rows)


def read_levels(journal: Journal) -> LevelTable:
    """Return the levels of a journal and the number of users who chose each, without queued changes. For operators.

    A user in transition is counted in another class than the chosen one. Only sizes as counted are public (spec 15.2).
    """
    terms = journal.head().epoch.terms
    return _level_table(terms.level_table, terms.slot_length_us, journal.registry.sizes())


def configured_levels(settings: Settings) -> tuple[LevelTable, tuple[str, ...]]:
    """Return the levels of a configuration, the number of users who ask for each in its requirements file, and notes."""
    asked = read_wanted(settings)
    sizes, notes = (None, ()) if asked is None else (asked.keys.sizes(), asked.notes)
    return _level_table(settings.levels, settings.slot_length_us, sizes), (*settings.notes, *notes)


def hide_choices(levels: LevelTable) -> LevelTable:
    """Return the levels that everybody may see: the offered ones, without the number of users who chose each."""
    rows = [msgspec.structs.replace(row, users=None) for row in levels.rows if row.level is not None]
    return msgspec.structs.replace(levels, rows=rows)


def _level_table(levels: Levels | None, slot_us: int | None, sizes: Mapping[Key, int] | None) -> LevelTable:
    """Return every pair of words, then combined names, then requirements that users hold in numbers only.

    `sizes` is the number of users who hold each requirement, under any name; None: not counted.
    """
    table = levels or Levels.default()
    offered = sorted(table.offered().items(), key=lambda row: (row[0] in table.combined, row[1].nano, row[1].window))
    rows: list[tuple[str | None, Key]] = [(level, requirement.key) for level, requirement in offered]
    named = {key for _, key in rows}
    # the noise of a release is in proportion to w / ε if every slot of a window has an equal part
    mildest = min((window / nano for window, nano in named), default=1.0)
    rows += [(None, key) for key in sorted(sizes or {}) if key not in named]
    words = {f"{privacy}/{window}": (privacy, window) for privacy in table.privacy for window in table.window}
    return LevelTable(
        rows=[
            OfferedLevel(
                level=level,
                privacy=words[level][0] if level in words else None,
                window_word=words[level][1] if level in words else None,
                window=key[0],
                epsilon=key[1] / NANO,
                span=None if slot_us is None else span_text(key[0] * slot_us),
                odds=math.exp(key[1] / NANO),
                users=None if sizes is None else sizes.get(key, 0),
                noise=key[0] / key[1] / mildest,
            )
            for level, key in rows
        ],
        users=0 if sizes is None else sum(sizes.values()),
        privacy=sorted(table.privacy, key=lambda word: table.requirement(word, next(iter(table.window))).nano),
        windows=sorted(table.window, key=lambda word: table.window[word]),
        slot_length_s=None if slot_us is None else slot_us / SECOND_US,
    )


@dataclass(frozen=True)
class UserView:
    """Data of one user: kept requirements, and requests that wait for the next slot boundary."""

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
