"""Import of a requirements file: differences between the file and the registry, and safeguards (spec 10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from wevent.core.requirements import Levels
from wevent.errors import InvalidInput, InvalidMembership
from wevent.journal import Journal
from wevent.journal.terms import Terms, levels_to_plain
from wevent.people.classes import Key
from wevent.people.membership import Change, Changes, Enrolment, check_declared, differences
from wevent.publishing.preview import Preview, preview, strictest_sentences
from wevent.settings import Settings
from wevent.streams.requirements_file import Requirements, read_requirements

_MOST_LEAVING = 10  # one in so many registered users may leave with a requirements file without --allow-removals


class RequirementsFile(NamedTuple):
    """Requirements file with the arguments of `read_requirements`."""

    path: Path
    levels: Levels | None = None
    slot_us: int | None = None
    columns: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def from_settings(cls, settings: Settings) -> RequirementsFile | None:
        if settings.requirements is None:
            return None
        return cls(settings.requirements, settings.levels, settings.slot_length_us, settings.requirements_columns)

    def read(self) -> Requirements:
        return read_requirements(self.path, self.levels, slot_us=self.slot_us, columns=self.columns)

    def digest(self) -> bytes:
        """Return a digest of the file, its levels and its columns.

        Raises:
            InvalidInput: if the file is not there or cannot be read.
        """
        path = self.path
        if not path.is_file():
            raise InvalidInput("a file", f"{str(path)!r}, which is not there", "Check the path.", path=str(path))
        table = msgspec.json.encode((levels_to_plain(self.levels), dict(self.columns)), order="sorted")
        try:
            with path.open("rb") as opened:
                return hashlib.sha256(table + hashlib.file_digest(opened, "sha256").digest()).digest()
        except OSError:
            raise InvalidInput("a readable file", f"{str(path)!r}", "Check the path.", path=str(path)) from None


@dataclass(frozen=True)
class Difference:
    """Difference between a requirements file and the registry; public numbers of users.

    Attributes:
        joining, changing, leaving: users who join, change their requirement or its level, and leave.
        requested: leaving users who had joined by request (`users add`), not with a file.
        relevelled: users whose level has new numbers.
        unchanged: users in the file who stay as they are.
        preview: effect on users in transition and classes of one.
        notes: remarks on the file.
    """

    joining: int = 0
    changing: int = 0
    leaving: int = 0
    requested: int = 0
    relevelled: int = 0
    unchanged: int = 0
    preview: Preview = field(default_factory=Preview)
    notes: tuple[str, ...] = ()

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
            sentences.append("1 person added by `users` is not in the file and leaves.")
        elif self.requested:
            sentences.append(f"{self.requested} people added by `users` are not in the file and leave.")
        return [*sentences, *self.preview.sentences()] if self.total else sentences

    def to_dict(self) -> dict[str, Any]:
        """Return the difference in plain types."""
        names = ("joining", "changing", "leaving", "requested", "relevelled")
        return {**{name: getattr(self, name) for name in names}, **self.preview.to_dict(), "notes": list(self.notes)}


def read_unchanged(file: RequirementsFile) -> Requirements:
    """Return the rows of a file with its digest.

    Raises:
        InvalidInput: if the file changed while it was read. WeventError: as of `read_requirements`.
    """
    digest = file.digest()
    wanted = file.read()
    if file.digest() != digest:
        raise InvalidInput(
            "a requirements file that stays as it is while it is read",
            f"{str(file.path)!r}, which changed meanwhile",
            "Nothing was imported: run the same command again.",
            path=str(file.path),
        )
    return wanted._replace(digest=digest)


def digest_people(people: Requirements, levels: Levels | None) -> Requirements:
    """Return requirements in memory with a digest as of a file."""
    ids = people.users.tolist() if isinstance(people.users, np.ndarray) else list(people.users.texts())
    contents = (levels_to_plain(levels), ids, people.keys.distinct, people.keys.codes.tolist(), people.words)
    return people._replace(digest=hashlib.sha256(msgspec.json.encode(contents, order="sorted")).digest())


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
    """Make the registry equal to a file; a file that was imported already changes nothing.

    Args:
        journal: the journal.
        wanted: the contents of the file.
        allow_removals: whether many may leave at once.
        dry_run: only return the differences; nothing is stored.
        partial: whether users who are not in the file stay as they are, and those who join do so by request.

    Raises:
        InvalidMembership: if too many would leave, as if the file had been cut; nothing is stored.
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
    """Return the changes from the registry, after requested ones, to a file. None if the file was imported already.

    Raises:
        InvalidMembership: for a requirement that nobody may hold, or if so many leave that the file may have been cut.
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
            f"a requirements file with at least nine in ten of the {len(current)} who are registered",
            f"one in which {leaving} of them are missing",
            "Nothing was changed. Was the file cut? If they do leave, say --allow-removals.",
        )
    joining = sum(change.user not in current for change in changes)
    changing = len(changes) - leaving - joining
    by_request = frozenset() if journal.is_new else journal.registry.joined_by_request()
    unchanged = len(everybody) - joining - changing
    return changes, Difference(joining, changing, leaving, len(removed & by_request), unchanged=unchanged, notes=notes)
