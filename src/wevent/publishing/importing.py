"""Import of requirements, and the effect of registry changes before they are stored (spec 10).

Everything here is public: the number of users that hold a requirement, and when users join, leave or change (spec 1).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from wevent.core.budget import NANO
from wevent.core.ledger import count_typical
from wevent.core.options import Options
from wevent.core.requirements import Levels
from wevent.errors import InvalidInput, InvalidMembership
from wevent.journal import Journal
from wevent.journal.terms import Epoch, Terms, class_history, levels_to_plain
from wevent.people.classes import ClassHistory, Key, find_counting_class
from wevent.people.membership import (
    Boundary,
    Change,
    Changes,
    Enrolment,
    History,
    check_declared,
    differences,
    drop_expired,
    find_current,
    find_in_force,
)
from wevent.publisher.catalogue import find_mechanism
from wevent.settings import Settings
from wevent.streams.requirements_file import Requirements, read_requirements

_MOST_LEAVING = 10  # one in so many registered users may leave with a requirements file without --allow-removals
_SHOWN = 3  # classes of one in a sentence


class Preview(NamedTuple):
    """Effect of changes that take effect at one slot boundary."""

    registered: int = 0  # users who are registered afterwards
    in_transition: int = 0  # changed users who are counted in a stricter class than the one they chose
    until: int | None = None  # first slot in which all of these are counted in their own class
    returning: int = 0  # users who join and are still known: they left, or were erased
    alone: tuple[Key, ...] = ()  # requirements that one user holds then, or classes that count one: sizes are public
    until_time: str | None = None  # start of slot `until`

    def sentences(self) -> list[str]:
        """Return the effect in words."""
        sentences = []
        if self.returning:
            sentences.append(f"{_users(self.returning, 'returns', 'return')} after leaving.")
        if self.in_transition:
            until = f"slot {self.until}" + ("" if self.until_time is None else f" ({self.until_time})")
            sentences.append(
                f"{_users(self.in_transition, 'is', 'are')} counted in a stricter class until {until} at the latest."
            )
        return [*sentences, *self.warnings()]

    def warnings(self) -> list[str]:
        """Return a warning of classes of one, if there are any."""
        if not self.alone:
            return []
        shown = "; ".join(f"window {window}, epsilon {nano / NANO:g}" for window, nano in self.alone[:_SHOWN])
        more = f"; and {len(self.alone) - _SHOWN} more" if len(self.alone) > _SHOWN else ""
        return [
            f"Warning: only one user holds {'each of ' if len(self.alone) > 1 else ''}{shown}{more}. The number of users per "
            "requirement is public: linked to this user, it shows when the user joins, leaves or changes."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the effect in plain types."""
        return {**self._asdict(), "alone": [{"window": key[0], "epsilon": key[1] / NANO} for key in self.alone]}


def _users(count: int, one: str, many: str) -> str:
    return f"1 user {one}" if count == 1 else f"{count:,} users {many}"


def preview(
    journal: Journal, changes: Changes, versions: Iterable[Epoch] | None = None, slot: int | None = None
) -> Preview:
    """Return the effect of these changes together with the queued ones. Store nothing.

    By default the versions are those of the journal, and the changes are active from its next slot on.
    """
    following = 1 if journal.is_new else journal.head().next_slot
    if following == 1 and isinstance(changes, Enrolment):  # nobody was counted yet
        alone = [key for key, size in changes.keys.sizes().items() if size == 1]
        return Preview(len(changes), alone=tuple(sorted(alone)))
    registry, slot = journal.registry, slot or following
    known = journal.epochs() if versions is None else list(versions)
    requested: dict[str, list[Change]] = {}
    for change in (*registry.queued(), *changes):
        requested.setdefault(change.user, []).append(change)
    requests = zip(registry.histories(requested), requested.values(), strict=True)
    found = preview_changes(class_history(known, registry.restores()), slot, registry.salt, registry.sizes(), requests)
    return found if found.until is None else found._replace(until_time=known[-1].terms.slot_span(found.until)[0])


def preview_changes(
    classes: ClassHistory,
    slot: int,
    salt: bytes,
    sizes: Mapping[Key, int],
    requests: Iterable[tuple[History, Sequence[Change]]],
) -> Preview:
    """Return the effect of changes that are active from a slot on.

    `sizes` is the number of users that hold each requirement before; `requests` has the rows of every user who changes, and
    the changes in order.
    """
    boundary, doubted, live = Boundary(classes, slot, salt), classes.doubted(slot), classes.live(slot)
    doubt_ends = max((restore.slot + key[0] for restore in classes.restores for key in restore.doubted), default=0)
    alike: dict[Any, tuple[History, Sequence[Change]]] = {}  # one user of all whose rows and changes are the same
    users = Counter[Any]()
    for history, changes in requests:
        kind = tuple(row[1:] for row in history), tuple((change.action, change.key) for change in changes)
        alike.setdefault(kind, (history, changes))
        users[kind] += 1
    held, moved, touched = Counter(sizes), Counter[Key](), set[Key]()
    in_transition = until = returning = 0
    for kind, (history, changes) in alike.items():
        rows: History = drop_expired(history, classes, slot)
        before, was_known = find_current(rows), any(row.first for row in rows)
        for change in changes:
            rows = boundary.apply(rows, change)
        after = find_current(rows)
        if (before and before.key) == (after and after.key):
            continue
        for row, sign in ((before, -1), (after, 1)):
            if row is not None:
                touched.add(row.key)
                held[row.key] += sign * users[kind]
        if after is None:
            continue
        returning += users[kind] * (before is None and was_known)
        begin = max(slot, after.first)  # a publisher may have applied a queued change for a later slot meanwhile
        counted = find_counting_class([*find_in_force(rows, begin), *doubted], live)
        if counted != after.key:
            in_transition += users[kind]
            moved[counted] += users[kind]
            until = max(until, doubt_ends, *(row.last + row.window for row in rows if row.last is not None))
    moved.pop(classes.version_at(slot).unregistered or (0, 0), None)  # more than one user is counted there
    alone = {key for key in touched if held[key] == 1} | {key for key in moved if held[key] + moved[key] == 1}
    return Preview(held.total(), in_transition, until if in_transition else None, returning, tuple(sorted(alone)))


def strictest_sentences(options: Options, sizes: Mapping[Key, int]) -> list[str]:
    """Return a warning if a few users set the noise for all: mechanisms with one budget or equal weights (spec 8, 11)."""
    shared = find_mechanism(options.mechanism).shared_budget
    if not sizes or not (shared or options.class_weights == "equal"):
        return []
    windows, epsilons = np.array(list(sizes), dtype=np.int64).T
    users = np.array(list(sizes.values()), dtype=np.int64)
    typical = count_typical(windows, epsilons, users) > 0
    if not typical.any():
        return []
    budget, usual = (
        epsilons[rows].min() / windows[rows].max() if shared else (epsilons[rows] / windows[rows]).min()
        for rows in (slice(None), typical)
    )
    if usual <= 1.05 * budget:  # an error of 10 %
        return []
    few = int(users[~typical].sum())
    cause = "one budget for all" if shared else "equal weights"
    return [
        f"Warning: with {cause} the strictest requirement sets the noise for all users. {few:,} of {int(users.sum()):,} "
        f"users make it {usual / budget:.3g} times as large. Use mechanism pft with its default weights, or do not "
        "offer that requirement."
    ]


@dataclass(frozen=True)
class Difference:
    """Difference between a requirements file and the registry; public numbers of users."""

    joining: int = 0
    changing: int = 0  # another requirement, or another level
    leaving: int = 0
    requested: int = 0  # leaving users who had joined by request (`users add`), not with a file
    relevelled: int = 0  # users whose level has new numbers
    unchanged: int = 0  # users in the file who stay as they are
    preview: Preview = field(default_factory=Preview)
    notes: tuple[str, ...] = ()  # remarks on the file

    @property
    def total(self) -> int:
        """Number of changes."""
        return self.joining + self.changing + self.leaving + self.relevelled

    def __str__(self) -> str:
        levels = f", {self.relevelled} get the new numbers of their level" if self.relevelled else ""
        return f"{self.joining} join, {self.changing} change, {self.leaving} leave{levels}"

    def sentences(self) -> list[str]:
        """Return the remarks and the effect in words."""
        sentences = [*self.notes]
        if self.requested == 1:
            sentences.append("1 user added by `users` is not in the file and leaves.")
        elif self.requested:
            sentences.append(f"{self.requested} users added by `users` are not in the file and leave.")
        return [*sentences, *self.preview.sentences()] if self.total else sentences

    def to_dict(self) -> dict[str, Any]:
        """Return the difference in plain types."""
        names = ("joining", "changing", "leaving", "requested", "relevelled")
        return {**{name: getattr(self, name) for name in names}, **self.preview.to_dict(), "notes": list(self.notes)}


def read_wanted(settings: Settings, imported: bytes | None = None) -> Requirements | None:
    """Return the requirements that a configuration names, with their digest.

    None if it names none, or if `imported` is their digest; such a file is not read again.
    """
    people, levels = settings.people, settings.levels
    if people is not None:
        ids = people.users.tolist() if isinstance(people.users, np.ndarray) else list(people.users.texts())
        contents = (levels_to_plain(levels), ids, people.keys.distinct, people.keys.codes.tolist(), people.words)
        digest = hashlib.sha256(msgspec.json.encode(contents, order="sorted")).digest()
        return None if digest == imported else people._replace(digest=digest)
    file, columns = settings.requirements, settings.requirements_columns
    if file is None or (imported is not None and imported == digest_file(file, levels, columns)):
        return None
    return read_unchanged(file, levels, settings.slot_length_us, columns)


def read_unchanged(file: Path, levels: Levels | None, slot_us: int | None, columns: Mapping[str, str]) -> Requirements:
    """Return the rows of a requirements file with its digest. A file that changes while it is read is refused."""
    digest = digest_file(file, levels, columns)
    wanted = read_requirements(file, levels, slot_us=slot_us, columns=columns)
    if digest_file(file, levels, columns) != digest:
        raise InvalidInput(
            f"The requirements file {str(file)!r} changed while it was read.",
            "Nothing was imported: run the same command again.",
            path=str(file),
        )
    return wanted._replace(digest=digest)


def digest_file(file: Path, levels: Levels | None, columns: Mapping[str, str]) -> bytes:
    """Return a digest of a requirements file, its levels and its columns."""
    if not file.is_file():
        raise InvalidInput(f"There is no file {str(file)!r}.", "Check the path.", path=str(file))
    table = msgspec.json.encode((levels_to_plain(levels), dict(columns)), order="sorted")
    try:
        with file.open("rb") as opened:
            return hashlib.sha256(table + hashlib.file_digest(opened, "sha256").digest()).digest()
    except OSError:
        raise InvalidInput(f"The file {str(file)!r} cannot be read.", "Check the path.", path=str(file)) from None


def is_imported(journal: Journal, wanted: Requirements, slot_us: int) -> bool:
    """Return whether a file was imported already for slots of this length: its windows may be durations."""
    if journal.is_new or journal.changes_lost or journal.imported() != wanted.digest:
        return False
    return journal.head().epoch.terms.length_us == slot_us


def import_users(
    journal: Journal,
    wanted: Requirements,
    *,
    allow_removals: bool = False,
    dry_run: bool = False,
    partial: bool = False,
) -> Difference:
    """Queue the changes that make the registry equal to a file; a file that was imported already changes nothing.

    Args:
        allow_removals: whether many may leave at once; otherwise they are refused, as if the file had been cut.
        dry_run: only return the differences.
        partial: whether users who are not in the file stay as they are, and those who join do so by request.
    """
    epoch = journal.head().epoch
    if not partial and is_imported(journal, wanted, epoch.terms.length_us):
        return Difference(unchanged=len(wanted.keys), preview=preview(journal, ()))
    changes, done = import_changes(journal, wanted, epoch.terms, allow_removals=allow_removals, partial=partial)
    done = replace(done, preview=preview(journal, changes))
    if not dry_run and partial:
        known = registered(journal)
        journal.registry.ask([change for change in changes if change.user in known], epoch.number)
        journal.registry.ask([change for change in changes if change.user not in known], epoch.number, by_request=True)
    elif not dry_run:
        journal.registry.ask(changes, epoch.number)
        journal.note_imported(wanted.digest)
    return done


def registered(journal: Journal, asked: Iterable[Change] = ()) -> dict[str, tuple[Key, str | None]]:
    """Return the requirement and level of every user: of members, after queued changes, after requested ones."""
    if journal.is_new:
        return {}
    current = {member.user: (member.key, member.level) for member in journal.registry.members()}
    for change in (*journal.registry.queued(), *asked):
        current.pop(change.user, None)
        if change.key is not None:
            current[change.user] = change.key, change.level
    return current


def import_changes(
    journal: Journal,
    wanted: Requirements,
    terms: Terms,
    asked: Changes = (),
    *,
    allow_removals: bool,
    partial: bool = False,
) -> tuple[Changes, Difference]:
    """Return the changes from the registry, after requested ones, to a file; none if the file was imported already.

    Raises:
        InvalidMembership: for a requirement that was not declared, or if so many leave that the file may have been cut.
    """
    if not partial and is_imported(journal, wanted, terms.length_us):
        return [], Difference()
    for key in sorted(wanted.keys.distinct):
        check_declared(key, terms.declared)
    everybody = Enrolment(wanted.users, wanted.keys, wanted.words)
    notes = wanted.notes
    if not partial:
        notes += tuple(strictest_sentences(terms, {**dict.fromkeys(terms.declared, 0), **wanted.keys.sizes()}))
    current = registered(journal, asked)
    if not current:
        return everybody, Difference(joining=len(everybody), notes=notes)
    requested = {change.user: (change.key, change.level) for change in everybody if change.key is not None}
    if partial:
        current = {user: held for user, held in current.items() if user in requested}
    changes = differences(current, requested)
    removed = {change.user for change in changes if change.action == "remove"}
    leaving, is_pinned = len(removed), not journal.is_new and journal.head().pinned is not None
    if is_pinned and not allow_removals and leaving >= 2 and leaving * _MOST_LEAVING > len(current):
        raise InvalidMembership(
            f"{leaving} of the {len(current)} registered users are missing in the requirements file.",
            "Nothing was changed. Was the file cut? If they do leave, add --allow-removals.",
        )
    joining = sum(change.user not in current for change in changes)
    changing = len(changes) - leaving - joining
    by_request = frozenset() if journal.is_new else journal.registry.joined_by_request()
    unchanged = len(everybody) - joining - changing
    return changes, Difference(joining, changing, leaving, len(removed & by_request), unchanged=unchanged, notes=notes)
