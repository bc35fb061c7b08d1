"""Who is registered with which requirement, changed by request: one person or a whole file; works while somebody publishes.

A change is queued by anyone, and put in force at a slot boundary by the writer: by the publisher before its next slot, or
here at once if nobody publishes. So it takes effect exactly between two slots (spec 10).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wevent.core.requirements import Levels, Requirement
from wevent.errors import InvalidMembership, JournalLocked
from wevent.journal import Journal, Registry, Terms, open_journal
from wevent.journal.coming import check_requirement
from wevent.people.declaring import holdout_of
from wevent.people.holdout import Key
from wevent.people.membership import Change, check_countable, check_id
from wevent.publishing.importing import Difference, import_users, wanted_users
from wevent.publishing.staleness import known_released, refuse_stale


class Asked(NamedTuple):
    """A requirement as people state it: a window in slots with an epsilon, or a word for each of the level table."""

    window: str
    epsilon: str | None = None
    privacy: str | None = None


class InForce(NamedTuple):
    """From when on a change is in force.

    Attributes:
        slot: the slot; None: the publisher's next one.
        user: of whom a requirement was set, None otherwise.
        counted: the slot from which the user is counted, if that is later and known.
    """

    slot: int | None
    user: str | None = None
    counted: int | None = None


def register(path: Path, user: str, asked: Asked) -> InForce:
    """Register somebody new.

    Raises:
        InvalidMembership: if they are registered already, or may not hold such a requirement.
        StaleJournal: if the journal is a backup, or behind what was released.
    """
    return _set(path, user, asked, known=False)


def change(path: Path, user: str, asked: Asked) -> InForce:
    """Change somebody's requirement; as `register`, for those who are registered."""
    return _set(path, user, asked, known=True)


def remove(path: Path, user: str) -> InForce:
    """Let somebody leave; the id is kept as long as a hold-out may need it. Returns and raises as `register`."""
    return _leave(path, Change("remove", user))


def erase(path: Path, user: str) -> InForce:
    """Let somebody leave and erase the id; a keyed digest of it stays as long as a hold-out may need it."""
    return _leave(path, Change("erase", user))


def import_file(path: Path, file: Path, *, allow_removals: bool = False) -> Difference:
    """Queue what makes the registry say what a requirements file says; `put_in_force` follows.

    Raises:
        InvalidInput: if the file cannot be read, or changes while it is.
        InvalidMembership: for a requirement that nobody may hold, or if too many would leave.
        StaleJournal: if the journal is a backup, or behind what was released.
    """
    with _changeable(path) as journal:
        wanted = wanted_users(file, journal.head().epoch.terms.level_table)
        return import_users(journal, wanted, allow_removals=allow_removals)


def put_in_force(path: Path, user: str | None = None) -> InForce:
    """Apply the queue at once if nobody publishes; otherwise the publisher does it before its next slot.

    Args:
        path: the journal.
        user: of whom it is to be said from when on they are counted.
    """
    with suppress(JournalLocked), open_journal(path, write=True) as journal:
        slot = journal.head().committed + 1
        journal.registry.apply(slot, holdout_of(journal.epochs(), journal.registry.restores()))
        journal.mark()
        counted = None if user is None else journal.registry.counts_from(user)
        return InForce(slot, user, counted if counted is not None and counted > slot else None)
    return InForce(None, user)


@contextmanager
def _changeable(path: Path) -> Iterator[Journal]:
    """A journal whose registry may change: not a backup, nor one that is behind what was released (spec 10)."""
    with open_journal(path) as journal:
        head = journal.head()
        known = known_released(journal, head.committed, stated=head.copied)
        committed = journal.head().committed  # again: a publisher may have gone on between, and marks after it commits
        refuse_stale(committed, known, copied=head.copied)
        yield journal


def _set(path: Path, user: str, asked: Asked, *, known: bool) -> InForce:
    check_id(user)
    if not known:  # who is registered under such an id, by an older version, can still change and leave
        check_countable(user)
    with _changeable(path) as journal:
        epoch = journal.head().epoch
        key, level = _requirement(epoch.terms, asked)
        check_requirement(epoch.terms, key)
        _check_known(journal.registry, user, known=known)
        journal.registry.ask([Change("set", user, key, level)], epoch.number)
    return put_in_force(path, user)


def _leave(path: Path, leaving: Change) -> InForce:
    check_id(leaving.user)
    with _changeable(path) as journal:
        if leaving.action != "erase" or not journal.registry.remembers(leaving.user):
            _check_known(journal.registry, leaving.user, known=True)
        journal.registry.ask([leaving])
    return put_in_force(path)


def _requirement(terms: Terms, asked: Asked) -> tuple[Key, str | None]:
    """The requirement that is asked for, and the words it comes from."""
    if (asked.epsilon is None) == (asked.privacy is None):
        raise InvalidMembership(
            "either --epsilon (with a window in slots) or --privacy (with a window word)",
            "both" if asked.epsilon else "neither",
            "Give one of them.",
        )
    if asked.privacy is not None:
        requirement = (terms.level_table or Levels.default()).requirement(asked.privacy, asked.window)
        return (requirement.window, requirement.nano), f"{asked.privacy}/{asked.window}"
    requirement = Requirement(int(asked.window) if asked.window.isdecimal() else 0, asked.epsilon)
    return (requirement.window, requirement.nano), None


def _check_known(registry: Registry, user: str, *, known: bool) -> None:
    if registry.holds(user) != known:
        raise InvalidMembership(
            "a registered user" if known else "a user who is not registered yet",
            "one who is not" if known else "one who is",
            "Use `add` for new users." if known else "Use `set` to change a requirement.",
        )
