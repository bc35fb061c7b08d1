"""From settings to a running publication: the journal opened, its terms compared, its registry brought up to date."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.core.budget import NANO
from wevent.core.requirements import Levels, Requirement
from wevent.core.settings import option_values
from wevent.counting.spelling import Spelled
from wevent.errors import InvalidJournal, InvalidMembership
from wevent.journal.rebuild import new_publisher
from wevent.journal.sqlite.journal import SqliteJournal
from wevent.journal.terms import PERMANENT, SEEDED, Terms, levels_to_plain
from wevent.people.holdout import Key
from wevent.people.membership import Change, Changes, Enrolment, KeyColumn, check_allowed, differences
from wevent.publishing.configuration import Settings
from wevent.streams.files.requirements_file import Requirements

MOST_LEAVING = 10
"""One in so many registered people may leave with a requirements file; more only if the operator says so."""


class Wanted(NamedTuple):
    """Who should be registered, as a requirements file says."""

    users: Sequence[str] | npt.NDArray[np.int64] | Spelled
    keys: Sequence[Key]
    digest: bytes
    words: Sequence[str | None] | None = None


class Difference(NamedTuple):
    """What importing a requirements file means: how many people join, change and leave; public numbers."""

    joining: int = 0
    changing: int = 0
    leaving: int = 0

    @property
    def total(self) -> int:
        """How many changes that is."""
        return sum(self)

    def __str__(self) -> str:
        return f"{self.joining} join, {self.changing} change, {self.leaving} leave"


def wanted_users(path: Path, levels: Levels | None, asked: Requirements) -> Wanted:
    """What a requirements file says, and a digest that tells whether it says something new."""
    return Wanted(asked.users, asked.keys, requirements_digest(path, levels), asked.words)


def requirements_digest(path: Path, levels: Levels | None) -> bytes:
    """Tells whether a requirements file, read with these levels, says something new."""
    table = msgspec.json.encode(levels_to_plain(levels))
    with path.open("rb") as file:
        return hashlib.sha256(table + hashlib.file_digest(file, "sha256").digest()).digest()


def make_terms(
    settings: Settings, clock: tuple[int, int], keys: Iterable[tuple[int, int]], pinned: Terms | None
) -> Terms:
    """The terms that settings ask for.

    Declared classes are those of the first requirements file, of every pair of levels, and the ones in `keys`; a
    resumed journal keeps its own and adds none by itself.

    Args:
        settings: what was asked for.
        clock: origin and length of the slots, microseconds.
        keys: (window, nano-epsilons) of classes to declare.
        pinned: the terms in force, None for a new journal.
    """
    declared = {*keys, *(() if pinned is None else pinned.declared)}
    if settings.levels is not None and (pinned is None or pinned.levels != levels_to_plain(settings.levels)):
        for privacy in settings.levels.privacy:
            for window in settings.levels.window:
                one = settings.levels.requirement(privacy, window)
                declared.add((one.window, one.nano))
    return Terms(
        stream=settings.stream,
        origin_us=clock[0],
        length_us=clock[1],
        cells=settings.cells.declaration(),
        declared=sorted(declared),
        levels=levels_to_plain(settings.levels),
        unknown_users=settings.unknown_users,
        **option_values(settings),
    )


def pinned_terms(journal: SqliteJournal) -> Terms | None:
    """The terms that bind a journal, None before its first slot: a start that came to no slot binds nobody."""
    if journal.is_new:
        return None
    head = journal.head()
    return head.epoch.terms if head.committed or head.copied else None


def refuse_seeded(journal: SqliteJournal) -> None:
    """Refuse to serve people from a journal that ever drew seeded noise: its releases protect nobody.

    Raises:
        InvalidJournal: naming the way out.
    """
    if not journal.is_new and SEEDED in journal.head().unsafe:
        raise InvalidJournal(
            "a journal with secure noise only",
            f"one that ran with seeded noise ({journal.path})",
            "Whoever knows the seed can undo it: publish into another journal (over the same people epsilons add up).",
            path=str(journal.path),
        )


def agree(journal: SqliteJournal, terms: Terms, *, new_epoch: bool) -> bool:
    """Whether these terms are to be begun: the first ones, or an epoch the operator asked for. Stores nothing.

    Raises:
        SettingsDiffer: naming what differs from the terms in force.
        InvalidOption: if no publisher can work under them.
    """
    pinned = pinned_terms(journal)
    if pinned is not None:
        names = pinned.differing(terms)
        if not new_epoch or not names or any(name in PERMANENT for name in names):
            pinned.check_same(terms)
            return False
    new_publisher(terms, None)  # refuses options that do not fit
    return True


def begin(
    journal: SqliteJournal,
    terms: Terms,
    *,
    new_epoch: bool,
    wanted: Wanted | None = None,
    unsafe: tuple[str, ...] = (),
    allow_removals: bool = False,
) -> Difference:
    """Begin a new journal with these terms, go on under the same ones, or begin an epoch the operator asked for.

    A new epoch, and all that comes with it, is stored in the transaction of its first slot (`SqliteJournal.begin`).

    Args:
        journal: opened for writing.
        terms: what to pin.
        new_epoch: whether other terms than those in force are meant.
        wanted: who should be registered; None leaves the registry as it is.
        unsafe: what weakens the promise.
        allow_removals: whether many may leave at once.

    Returns:
        What the registry was told to change for `wanted`.

    Raises:
        SettingsDiffer, InvalidOption: as of `agree`.
        InvalidMembership: for a requirement that nobody may hold under these terms, or too many who leave.
    """
    if not agree(journal, terms, new_epoch=new_epoch):
        done = Difference() if wanted is None else import_users(journal, wanted, allow_removals=allow_removals)
        journal.note_unsafe(unsafe)
        return done
    changes: Changes = []
    done = Difference()
    pinned = pinned_terms(journal)
    if pinned is not None and terms.levels is not None and pinned.levels != terms.levels:
        changes = list(_relevelled(journal, terms.levels))
    if wanted is not None:
        more, done = _import_changes(journal, wanted, terms, changes, allow_removals=allow_removals)
        changes = [*changes, *more] if len(changes) else more
    journal.begin(terms, unsafe, changes, None if wanted is None else wanted.digest)
    return done


def import_users(journal: SqliteJournal, wanted: Wanted, *, allow_removals: bool = False) -> Difference:
    """Make the registry say what a file says; a file that was imported already changes nothing.

    Raises:
        InvalidMembership: if too many would leave, as if the file had been cut; nothing is stored.
    """
    if journal.imported() == wanted.digest:
        return Difference()
    terms = journal.head().epoch.terms
    changes, done = _import_changes(journal, wanted, terms, allow_removals=allow_removals)
    journal.registry.ask(changes)
    journal.note_imported(wanted.digest)
    return done


def registered(journal: SqliteJournal, asked: Iterable[Change] = ()) -> dict[str, tuple[Key, str | None]]:
    """Who holds, or will hold, which requirement, and in which words: members, then what is queued, then asked for."""
    if journal.is_new:
        return {}
    current = {one.user: (one.key, one.level) for one in journal.registry.members()}
    for change in (*journal.registry.queued(), *asked):
        current.pop(change.user, None)
        if change.key is not None:
            current[change.user] = change.key, change.level
    return current


def _import_changes(
    journal: SqliteJournal,
    wanted: Wanted,
    terms: Terms,
    asked: Changes = (),
    *,
    allow_removals: bool,
) -> tuple[Changes, Difference]:
    """What makes the registry say what a file says, on top of what is asked for; none if it was imported already."""
    if not journal.is_new and journal.imported() == wanted.digest:
        return [], Difference()
    keys = wanted.keys if isinstance(wanted.keys, KeyColumn) else KeyColumn.of(wanted.keys)
    for key in sorted(keys.distinct):
        check_requirement(terms, key)
    users = wanted.users if isinstance(wanted.users, (np.ndarray, Spelled)) else Spelled.of(wanted.users)
    everybody = Enrolment(users, keys, wanted.words)
    current = registered(journal, asked)
    if not current:
        return everybody, Difference(joining=len(everybody))
    changes = differences(current, {one.user: (one.key, one.level) for one in everybody if one.key is not None})
    leaving = sum(one.action == "remove" for one in changes)
    joining = sum(one.user not in current for one in changes)
    if not allow_removals and pinned_terms(journal) is not None:
        _refuse_many_leaving(leaving, len(current))
    return changes, Difference(joining, len(changes) - leaving - joining, leaving)


def _refuse_many_leaving(leaving: int, registered: int) -> None:
    """A file that was cut at the end of a line looks like one in which people left.

    Raises:
        InvalidMembership: if at least two people, and more than one in ten, are no longer in it.
    """
    if leaving >= 2 and leaving * MOST_LEAVING > registered:
        raise InvalidMembership(
            f"a requirements file with at least nine in ten of the {registered} who are registered",
            f"one in which {leaving} of them are missing",
            "Nothing was changed. Was the file cut? If they do leave, say --allow-removals.",
        )


def check_requirement(terms: Terms, key: tuple[int, int]) -> None:
    """Whether users may hold a requirement under these terms.

    Raises:
        InvalidMembership: if its window is larger than any declared, or a shared budget was not declared for it.
    """
    requirement = Requirement.from_nano(*key)
    check_allowed(key, terms.requirements)
    if key in {(one.window, one.nano) for one in terms.requirements}:
        return
    strictest = min(one.nano for one in terms.requirements)
    if new_publisher(terms, None).shares_budget and key[1] < strictest:
        raise InvalidMembership(
            f"an epsilon of at least {strictest / NANO:g}, the smallest that was declared: "
            f"{terms.mechanism} has one budget for all",
            f"{requirement.epsilon:g}",
            "Start a new epoch that declares it, or use a personalised mechanism.",
            requirement=key,
        )


def _relevelled(journal: SqliteJournal, levels: dict[str, dict[str, Any]]) -> Iterable[Change]:
    """An edited level table is a change for everybody who holds the level (spec 10)."""
    table = Levels(levels["privacy"], levels["window"])
    for user, (_, words) in registered(journal).items():
        if words is not None:
            requirement = table.requirement(*words.split("/", 1))
            yield Change("set", user, (requirement.window, requirement.nano), words)
