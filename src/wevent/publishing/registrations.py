"""Changes of the registry by request, of one user or a whole file, also while a publisher runs.

Any process queues a change. The writer applies it at a slot boundary (spec 10): the publisher before its next slot, or this
module at once if nobody publishes. A service, whose own publisher has the journal, only queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wevent.core.requirements import Levels, Requirement
from wevent.errors import InvalidMembership, JournalLocked, NotRegistered
from wevent.journal import Journal, JournalAddress, Terms, open_journal
from wevent.journal.record import Head
from wevent.journal.terms import class_history
from wevent.people.classes import Key
from wevent.people.membership import Change, check_declared, check_id
from wevent.publishing.importing import Difference, Preview, import_users, preview, read_unchanged
from wevent.publishing.loop import limit_changes
from wevent.publishing.staleness import refuse_stale
from wevent.publishing.views import UserView, view_user
from wevent.settings.values import WindowReader

DueThrough = Callable[[], int]
"""Returns the last slot whose release is due, out or not: a publisher that catches up applies no change before."""

_LONG_QUEUE = 10_000  # changes: a request beside them is not previewed together with all of them


class Requested(NamedTuple):
    """Requirement as users state it: a level, a word for each of window and privacy, or a window with an epsilon.

    A window with an epsilon is a number of slots or a duration.
    """

    window: str | None = None
    epsilon: str | None = None
    privacy: str | None = None
    level: str | None = None

    @property
    def given(self) -> list[str]:
        """Names of the parts that are stated."""
        return [name for name, value in self._asdict().items() if value is not None]

    @property
    def is_one_way(self) -> bool:
        """True if it states a requirement in one of the three ways and nothing else."""
        return set(self.given) in ({"level"}, {"window", "privacy"}, {"window", "epsilon"})


class ChangeResult(NamedTuple):
    """Slot from which on a change is active, and its effect."""

    slot: int | None  # None: the publisher's next one
    earlier_until: int | None = None  # first slot in which no earlier choice of the user is in force any more
    preview: Preview | None = None  # effect of the change if it is active from the next slot on, if computed
    notes: tuple[str, ...] = ()  # remarks on the request
    person: UserView | None = None  # data of the user then
    terms: Terms | None = None  # settings of the stream


def choose(
    place: JournalAddress,
    user: str,
    asked: Requested,
    *,
    is_known: bool | None = None,
    dry_run: bool = False,
    due_through: DueThrough | None = None,
) -> ChangeResult:
    """Request a requirement; it is active at once if nobody publishes.

    Args:
        is_known: whether the user must be registered already, or must not; None: either.
        dry_run: only return the effect.
        due_through: given by a service: only queue the change for its publisher. The slot of the answer is the first boundary
            at which a publisher that keeps up applies changes: the roster of the open slot is made already.

    Raises:
        InvalidMembership: if the user may not choose the requirement, or is or is not registered.
        StaleJournal: if the journal is a backup, or behind what was released.
    """
    check_id(user)
    with _changeable(place) as journal:
        epoch = journal.head().epoch
        windows = WindowReader(epoch.terms.slot_length_us)
        key, level = _requirement(epoch.terms, asked, windows)
        check_declared(key, epoch.terms.declared)
        holds = journal.registry.holds(user)
        if is_known and not holds:
            raise NotRegistered("The user is not registered.", "Use `add` for new users.")
        if is_known is False and holds:
            raise InvalidMembership("The user is registered already.", "Use `set` to change a requirement.")
        wish = Change("set", user, key, level)
        force = _ask(journal, wish, epoch.number, by_request=not holds, dry_run=dry_run, due_through=due_through)
    force = force._replace(notes=windows.notes)
    if dry_run or due_through is not None:
        return force
    done = apply_changes(place, user)
    return force._replace(slot=done.slot, earlier_until=done.earlier_until)


def leave(
    place: JournalAddress,
    user: str,
    *,
    erased: bool = False,
    dry_run: bool = False,
    due_through: DueThrough | None = None,
) -> ChangeResult:
    """Let a user leave; the id is kept while the requirement is in force, as a keyed digest if it is to be erased.

    An id that left may still be erased. Other arguments, result and errors as of `choose`.
    """
    check_id(user)
    with _changeable(place) as journal:
        registry = journal.registry
        if not registry.holds(user) and not (erased and registry.remembers(user)):
            raise NotRegistered("The user is not registered.", "Check the id: `list` shows all users.")
        leaving = Change("erase" if erased else "remove", user)
        force = _ask(journal, leaving, dry_run=dry_run, due_through=due_through)._replace(earlier_until=None)
    return force if dry_run or due_through is not None else force._replace(slot=apply_changes(place).slot)


def import_file(
    place: JournalAddress,
    file: Path,
    *,
    allow_removals: bool = False,
    columns: Mapping[str, str] | None = None,
    dry_run: bool = False,
    partial: bool = False,
) -> Difference:
    """Queue the changes that make the registry equal to a requirements file; `apply_changes` or a publisher applies them.

    Arguments and errors as of `import_users` and `read_requirements`.
    """
    with _changeable(place) as journal:
        terms = journal.head().epoch.terms
        wanted = read_unchanged(file, terms.level_table, terms.slot_length_us, columns or {})
        return import_users(journal, wanted, allow_removals=allow_removals, dry_run=dry_run, partial=partial)


def boundary_ahead(journal: Journal, head: Head, due_through: int) -> int:
    """Return the first slot in which a running publisher applies a change that was queued last.

    The slot after the last committed one is open, and its roster made; the one behind it is not begun. A publisher that
    catches up makes one roster for all slots that are due. A boundary applies a limited number of changes.
    """
    boundaries = max(0, journal.registry.pending() - 1) // limit_changes(head.epoch.terms)
    return max(head.committed, due_through) + 2 + boundaries


def apply_changes(place: JournalAddress, user: str | None = None, *, dry_run: bool = False) -> ChangeResult:
    """Apply the queue at once if nobody publishes; otherwise the publisher does it before its next slot.

    The answer mentions the earlier choices of a user. With `dry_run` only return the slot.
    """
    if dry_run:
        with _changeable(place) as journal:
            return ChangeResult(None if journal.writer() is not None else journal.head().next_slot)
    with suppress(JournalLocked), open_journal(place, write=True) as journal:
        _refuse_stale(journal, is_writer=True)  # again: what writers wrote down may say that a slot was drawn
        slot = journal.head().next_slot
        journal.registry.apply(slot, class_history(journal.epochs(), journal.registry.restores()))
        journal.update_witness()
        return ChangeResult(slot, None if user is None else view_user(journal, user).earlier_until(slot))
    return ChangeResult(None)


@contextmanager
def _changeable(place: JournalAddress) -> Iterator[Journal]:
    """A journal whose registry may change: not a backup, nor one that is behind what was released (spec 10)."""
    with open_journal(place) as journal:
        _refuse_stale(journal)
        yield journal


def _refuse_stale(journal: Journal, *, is_writer: bool = False) -> None:
    """Refuse a backup and a journal behind its witness.

    A publisher writes ahead what it is about to store. If it died there, the next writer stores it.
    """
    record = journal.witnessed()  # before the head: a publisher may go on meanwhile
    head = journal.head()
    is_ahead = not is_writer and not head.copied and record.follows(head.digest)
    if is_ahead and (journal.writer() is not None or record.revision == journal.registry.revision()):
        return
    refuse_stale(journal, head, record)


def _ask(
    journal: Journal,
    wish: Change,
    epoch: int | None = None,
    *,
    by_request: bool = False,
    dry_run: bool,
    due_through: DueThrough | None,
) -> ChangeResult:
    """Queue a change, unless it is a dry run, and return its effect together with earlier requests of the user."""
    view = view_user(journal, wish.user)
    is_short = due_through is None or journal.registry.pending() <= _LONG_QUEUE
    effect = preview(journal, [wish]) if is_short else None
    if not dry_run:
        journal.registry.ask([wish], epoch, by_request=by_request)
    head = journal.head()  # slots may have been committed while the change was queued
    slot = head.next_slot if due_through is None else boundary_ahead(journal, head, due_through())
    person = view.after([wish], slot, journal.registry.salt)
    return ChangeResult(slot, person.earlier_until(slot), effect, (), person, head.epoch.terms)


def _requirement(terms: Terms, asked: Requested, windows: WindowReader) -> tuple[Key, str | None]:
    """Return the requirement that is stated, and the words it comes from."""
    table = terms.level_table or Levels.default()
    if not asked.is_one_way:
        given = ", ".join(f"--{name}" for name in asked.given)
        raise InvalidMembership(
            f"These options state no requirement: {given}." if given else "No requirement is stated.",
            "Give --level, or --window (in slots, or a duration) with --epsilon, or --window with --privacy (words); `wevent "
            "levels` shows the words.",
        )
    if asked.level is not None:
        return table.choose(asked.level).key, asked.level
    if asked.privacy is not None:
        return table.requirement(asked.privacy, str(asked.window)).key, f"{asked.privacy}/{asked.window}"
    return Requirement(windows.read(asked.window), asked.epsilon).key, None
