"""Who is registered with which requirement, changed by request: one person or a whole file; works while somebody publishes.

A change is queued by anyone, and put in force at a slot boundary by the writer: by the publisher before its next slot, or
here at once if nobody publishes. So it takes effect exactly between two slots (spec 10). A service, whose own publisher has
the journal, only queues (`choose`, `leave`, `import_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wevent.core.requirements import Levels, Requirement
from wevent.errors import InvalidMembership, JournalLocked, NotRegistered
from wevent.journal import Journal, JournalPlace, Registry, Terms, open_journal
from wevent.journal.contents import Head
from wevent.journal.terms import class_history
from wevent.people.classes import Key
from wevent.people.membership import Change, check_declared, check_id
from wevent.publishing.importing import Difference, RequirementsFile, import_users, read_unchanged
from wevent.publishing.members import limit_changes
from wevent.publishing.preview import Preview, preview
from wevent.publishing.staleness import known_released, refuse_stale
from wevent.publishing.views import UserView, view_user
from wevent.settings.values import WindowReader

DueThrough = Callable[[], int]
"""Returns the last slot whose release is due, out or not: a publisher that catches up puts no change in force before."""

_LONG_QUEUE = 10_000  # changes: what is asked beside them is not looked at together with all of them


class Asked(NamedTuple):
    """A requirement as people state it: a level, a word for each of window and privacy, or a window with an epsilon.

    A window with an epsilon is a number of slots or a duration.
    """

    window: str | None = None
    epsilon: str | None = None
    privacy: str | None = None
    level: str | None = None

    @property
    def given(self) -> list[str]:
        """What of it is stated, by name."""
        return [name for name, value in self._asdict().items() if value is not None]

    @property
    def is_one_way(self) -> bool:
        """Whether it states a requirement in one of the three ways, and nothing beside it."""
        return set(self.given) in ({"level"}, {"window", "privacy"}, {"window", "epsilon"})


class InForce(NamedTuple):
    """From when on a change is in force.

    Attributes:
        slot: the slot; None: the publisher's next one.
        user: of whom a requirement was set, None otherwise.
        earlier_until: first slot in which no earlier choice of the user is in force any more; None without one.
        preview: effect of the change if it is active from the next slot on; None if it was not computed.
        notes: what was made of the wish and is not obvious.
        person: what will be held about the person then; None if that was not asked.
        terms: settings of the stream, None if that was not asked.
    """

    slot: int | None
    user: str | None = None
    earlier_until: int | None = None
    preview: Preview | None = None
    notes: tuple[str, ...] = ()
    person: UserView | None = None
    terms: Terms | None = None


def register(place: JournalPlace, user: str, asked: Asked, *, dry_run: bool = False) -> InForce:
    """Register somebody new.

    Args:
        place: the journal.
        user: the id.
        asked: the requirement.
        dry_run: only say what that means; nothing is stored.

    Raises:
        InvalidMembership: if they are registered already, or may not hold such a requirement.
        StaleJournal: if the journal is a backup, or behind what was released.
    """
    return _set(place, user, asked, known=False, dry_run=dry_run)


def change(place: JournalPlace, user: str, asked: Asked, *, dry_run: bool = False) -> InForce:
    """Change somebody's requirement; as `register`, for those who are registered."""
    return _set(place, user, asked, known=True, dry_run=dry_run)


def remove(place: JournalPlace, user: str, *, dry_run: bool = False) -> InForce:
    """Let a user leave; the id is kept while the requirement is in force. Returns and raises as `register`."""
    return _leave(place, Change("remove", user), dry_run=dry_run)


def erase(place: JournalPlace, user: str, *, dry_run: bool = False) -> InForce:
    """Let a user leave and erase the id; a keyed digest of it is kept while the requirement is in force."""
    return _leave(place, Change("erase", user), dry_run=dry_run)


def choose(
    place: JournalPlace, user: str, asked: Asked, *, dry_run: bool = False, due_through: DueThrough = lambda: 0
) -> InForce:
    """Queue what somebody asks for, new or known; the publisher puts it in force.

    The answer's slot is the first boundary at which a publisher that keeps up will look for changes: the roster of the slot
    that is open is made already. Raises as `register`.
    """
    check_id(user)
    with _changeable(place) as journal:
        holds = journal.registry.holds(user)
        wish, epoch, notes = _wish(journal, user, asked)
        before = _before(journal, wish)
        if not dry_run:
            journal.registry.ask([wish], epoch, by_request=not holds)
        return _left_to_publisher(journal, wish, before, due_through)._replace(notes=notes)


def leave(
    place: JournalPlace,
    user: str,
    *,
    erased: bool = False,
    dry_run: bool = False,
    due_through: DueThrough = lambda: 0,
) -> InForce:
    """Queue that somebody leaves, as `remove` or as `erase`; the publisher puts it in force. Returns as `choose`."""
    leaving = Change("erase" if erased else "remove", user)
    with _leaving(place, leaving) as journal:
        before = _before(journal, leaving)
        if not dry_run:
            journal.registry.ask([leaving])
        return _left_to_publisher(journal, leaving, before, due_through)


def import_file(
    place: JournalPlace,
    file: Path,
    *,
    allow_removals: bool = False,
    columns: Mapping[str, str] | None = None,
    dry_run: bool = False,
    partial: bool = False,
) -> Difference:
    """Queue what makes the registry say what a requirements file says; `put_in_force` follows, or a publisher does it.

    Args:
        place: the journal.
        file: the requirements file.
        allow_removals: whether many may leave at once.
        columns: what the file's columns are called, where they have names of their own.
        dry_run: only say what that means; nothing is stored.
        partial: whether the file has some people only: who is not in it stays as they are.

    Raises:
        InvalidInput: if the file cannot be read, or changes while it is.
        InvalidMembership: for a requirement that nobody may hold, or if too many would leave.
        StaleJournal: if the journal is a backup, or behind what was released.
    """
    with _changeable(place) as journal:
        terms = journal.head().epoch.terms
        wanted = read_unchanged(RequirementsFile(file, terms.level_table, terms.slot_length_us, columns or {}))
        return import_users(journal, wanted, allow_removals=allow_removals, dry_run=dry_run, partial=partial)


def boundary_ahead(journal: Journal, head: Head, due_through: int) -> int:
    """Return the first slot in which a running publisher applies a change that was queued last.

    The slot after the last committed one is open, and its roster made; the one behind it is not begun. A publisher that
    catches up makes one roster for all slots that are due. A boundary applies a limited number of changes.
    """
    boundaries = max(0, journal.registry.pending() - 1) // limit_changes(head.epoch.terms)
    return max(head.committed, due_through) + 2 + boundaries


def put_in_force(place: JournalPlace, user: str | None = None) -> InForce:
    """Apply the queue at once if nobody publishes; otherwise the publisher does it before its next slot.

    Args:
        place: the journal.
        user: whose earlier choices the answer mentions.
    """
    with suppress(JournalLocked), open_journal(place, write=True) as journal:
        _refuse_stale(journal, is_writer=True)  # again: what writers wrote down may say that a slot was drawn
        slot = journal.head().next_slot
        journal.registry.apply(slot, class_history(journal.epochs(), journal.registry.restores()))
        journal.update_witness()
        return InForce(slot, user, None if user is None else view_user(journal, user).earlier_until(slot))
    return InForce(None, user)


def next_boundary(place: JournalPlace) -> InForce:
    """From when on a change would be in force that is asked for now."""
    with _changeable(place) as journal:
        return InForce(None if journal.writer() is not None else journal.head().next_slot)


@contextmanager
def _changeable(place: JournalPlace) -> Iterator[Journal]:
    """A journal whose registry may change: not a backup, nor one that is behind what was released (spec 10)."""
    with open_journal(place) as journal:
        _refuse_stale(journal)
        yield journal


def _refuse_stale(journal: Journal, *, is_writer: bool = False) -> None:
    """Refuse a backup and a journal behind its witness. A running publisher writes ahead what it is about to store."""
    record = journal.witnessed()  # before the head: a publisher may go on meanwhile
    head = journal.head()
    if not is_writer and journal.writer() is not None and record.follows(head.digest):
        return
    refuse_stale(
        journal, head.committed, known_released(journal, head.committed, stated=head.copied), copied=head.copied
    )


def _set(place: JournalPlace, user: str, asked: Asked, *, known: bool, dry_run: bool) -> InForce:
    check_id(user)
    with _changeable(place) as journal:
        wish, epoch, notes = _wish(journal, user, asked)
        _check_known(journal.registry, user, known=known)
        expected = _expect(journal, wish, notes)
        if dry_run:
            return expected
        journal.registry.ask([wish], epoch, by_request=not known)
    done = put_in_force(place, user)
    return expected._replace(slot=done.slot, earlier_until=done.earlier_until)


def _wish(journal: Journal, user: str, asked: Asked) -> tuple[Change, int, tuple[str, ...]]:
    """What somebody asks for, if the terms allow it; the epoch it was checked against; what was made of it."""
    epoch = journal.head().epoch
    windows = WindowReader(epoch.terms.slot_length_us)
    key, level = _requirement(epoch.terms, asked, windows)
    check_declared(key, epoch.terms.declared)
    return Change("set", user, key, level), epoch.number, windows.notes


def _leave(place: JournalPlace, leaving: Change, *, dry_run: bool) -> InForce:
    with _leaving(place, leaving) as journal:
        expected = _expect(journal, leaving)
        if dry_run:
            return expected
        journal.registry.ask([leaving])
    return put_in_force(place)._replace(preview=expected.preview)


@contextmanager
def _leaving(place: JournalPlace, leaving: Change) -> Iterator[Journal]:
    """A journal that somebody may leave: they are registered, or had left and are to be erased."""
    check_id(leaving.user)
    with _changeable(place) as journal:
        if leaving.action != "erase" or not journal.registry.remembers(leaving.user):
            _check_known(journal.registry, leaving.user, known=True, remedy=_NOBODY_TO_LEAVE)
        yield journal


def _before(journal: Journal, wish: Change) -> tuple[UserView, Preview | None]:
    """What is held about a person before a wish is queued, and what the wish means for others, if that is soon known."""
    is_short = journal.registry.pending() <= _LONG_QUEUE
    return view_user(journal, wish.user), preview(journal, [wish]) if is_short else None


def _left_to_publisher(
    journal: Journal, wish: Change, before: tuple[UserView, Preview | None], due_through: DueThrough
) -> InForce:
    """What a wish means, with all that the person asked for before it, when a publisher puts it in force.

    The boundary is that of the slot after the one that is open now, which is looked at after the wish was queued: slots may
    have been committed while it was.
    """
    view, effect = before
    head = journal.head()
    slot = boundary_ahead(journal, head, due_through())
    person = view.after([wish], slot, journal.registry.salt)
    earlier = person.earlier_until(slot)
    return InForce(slot, wish.user, earlier, effect, (), person, head.epoch.terms)


def _expect(journal: Journal, wish: Change, notes: tuple[str, ...] = ()) -> InForce:
    """What a wish means if it takes effect at the next slot."""
    slot = journal.head().next_slot
    effect = preview(journal, [wish])
    if wish.action != "set":
        return InForce(slot, None, None, effect, notes)
    after = view_user(journal, wish.user).after([wish], slot, journal.registry.salt)
    terms = journal.head().epoch.terms
    return InForce(slot, wish.user, after.earlier_until(slot), effect, notes, after, terms)


def _requirement(terms: Terms, asked: Asked, windows: WindowReader) -> tuple[Key, str | None]:
    """The requirement that is asked for, and the words it comes from."""
    table = terms.level_table or Levels.default()
    if not asked.is_one_way:
        raise InvalidMembership(
            "--level, or --window (in slots, or a duration) with --epsilon, or --window with --privacy (words)",
            ", ".join(f"--{name}" for name in asked.given) or "none of them",
            "Give one of these; `wevent levels` shows the words.",
        )
    if asked.level is not None:
        requirement, words = table.choose(asked.level), asked.level
    elif asked.privacy is not None:
        requirement, words = table.requirement(asked.privacy, str(asked.window)), f"{asked.privacy}/{asked.window}"
    else:
        return Requirement(windows.read(asked.window), asked.epsilon).key, None
    return requirement.key, words


_NOBODY_TO_LEAVE = "Check the id, letter by letter: `list` shows everybody."


def _check_known(registry: Registry, user: str, *, known: bool, remedy: str | None = None) -> None:
    if registry.holds(user) == known:
        return
    if known:
        raise NotRegistered("a registered user", "one who is not", remedy or "Use `add` for new users.")
    raise InvalidMembership("a user who is not registered yet", "one who is", "Use `set` to change a requirement.")
