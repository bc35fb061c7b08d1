"""What importing a requirements file means for the registry: who joins, changes and leaves, and who may (spec 10)."""

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
from wevent.journal.contract import Journal
from wevent.journal.terms import Epoch, Terms, levels_to_plain
from wevent.people.classes import Key
from wevent.people.membership import Change, Changes, Enrolment, check_declared, differences
from wevent.publishing.configuration import Settings
from wevent.publishing.preview import Preview, preview, strictest_sentences
from wevent.streams.files.requirements_file import Requirements, read_requirements

MOST_LEAVING = 10
"""One in so many registered people may leave with a requirements file; more only if the operator says so."""


class RequirementsFile(NamedTuple):
    """A requirements file, and how it is read: see `read_requirements`."""

    path: Path
    levels: Levels | None = None
    slot_us: int | None = None
    columns: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def from_settings(cls, settings: Settings) -> RequirementsFile | None:
        """Return the one that settings name, None without one."""
        if settings.requirements is None:
            return None
        return cls(settings.requirements, settings.levels, settings.slot_length_us, settings.requirements_columns)

    def read(self) -> Requirements:
        """Return the rows; raises as `read_requirements`."""
        return read_requirements(self.path, self.levels, slot_us=self.slot_us, columns=self.columns)

    def digest(self) -> bytes:
        """Return a digest of the file, its levels and its columns: another one means that something is new.

        Raises:
            InvalidInput: if the file is not there or cannot be read.
        """
        path = self.path
        if not path.is_file():
            raise InvalidInput("a file", f"{str(path)!r}, which is not there", "Check the path.", path=str(path))
        table = msgspec.json.encode(levels_to_plain(self.levels), order="sorted")
        if self.columns:
            table += msgspec.json.encode(dict(self.columns), order="sorted")
        try:
            with path.open("rb") as opened:
                return hashlib.sha256(table + hashlib.file_digest(opened, "sha256").digest()).digest()
        except OSError:
            raise InvalidInput("a readable file", f"{str(path)!r}", "Check the path.", path=str(path)) from None


@dataclass(frozen=True)
class Difference:
    """What importing a requirements file means; public numbers.

    Attributes:
        joining: how many people join.
        changing: how many change their requirement, or the words it is in.
        leaving: how many leave.
        requested: how many of those who leave had joined by request (`users add`), not with a file.
        relevelled: how many have new numbers because the level table changed.
        unchanged: how many of those in the file stay as they are.
        preview: effect on users in transition and classes of one.
        notes: what was made of the file and is not obvious.
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
        """How many changes that is."""
        return self.joining + self.changing + self.leaving + self.relevelled

    def __str__(self) -> str:
        levels = f", {self.relevelled} get the new numbers of their level" if self.relevelled else ""
        return f"{self.joining} join, {self.changing} change, {self.leaving} leave{levels}"

    def sentences(self) -> list[str]:
        """What it means beyond the numbers."""
        said = [*self.notes]
        if self.requested == 1:
            said.append("1 person added by `users` is not in the file and leaves.")
        elif self.requested:
            said.append(f"{self.requested} people added by `users` are not in the file and leave.")
        return [*said, *self.preview.sentences()] if self.total else said

    def to_dict(self) -> dict[str, Any]:
        """The same for programs."""
        names = ("joining", "changing", "leaving", "requested", "relevelled")
        return {
            **{name: getattr(self, name) for name in names},
            **self.preview.to_dict(),
            "notes": list(self.notes),
        }


def read_unchanged(file: RequirementsFile) -> Requirements:
    """Return the rows of a file with its digest.

    Raises:
        InvalidInput: if the file was replaced while it was read: the digest of one would stand for the users of another.
        WeventError: as of `read_requirements`.
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
    """Whether a file was imported already, and says the same for slots of this length.

    ▲ Its windows may be durations: before the first slot the length of slots may change, and a window of 24h with it.
    """
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
    """Make the registry say what a file says; a file that was imported already changes nothing.

    Args:
        journal: the journal.
        wanted: who should be registered.
        allow_removals: whether many may leave at once.
        dry_run: only say what that means; nothing is stored.
        partial: whether the file has some people only: nobody leaves, and who joins did so by request.

    Raises:
        InvalidMembership: if too many would leave, as if the file had been cut; nothing is stored.
    """
    epoch = journal.head().epoch
    if partial:
        return _add_users(journal, wanted, epoch, dry_run=dry_run)
    if journal.imported() == wanted.digest and not journal.changes_lost:
        return Difference(unchanged=len(wanted.keys), preview=preview(journal, ()))
    changes, done = import_changes(journal, wanted, epoch.terms, allow_removals=allow_removals)
    done = replace(done, preview=preview(journal, changes))
    if not dry_run:
        journal.registry.ask(changes, epoch.number)
        journal.note_imported(wanted.digest)
    return done


def _add_users(journal: Journal, wanted: Requirements, epoch: Epoch, *, dry_run: bool) -> Difference:
    """Let people join or change as a file says, and leave all others as they are."""
    everybody = _enrolment(wanted, epoch.terms)
    current = registered(journal)
    asked = {joining.user: (joining.key, joining.level) for joining in everybody if joining.key is not None}
    held = {user: held for user, held in current.items() if user in asked}
    changes = differences(held, asked)
    new = [change for change in changes if change.user not in held]
    done = Difference(
        len(new),
        len(changes) - len(new),
        unchanged=len(asked) - len(changes),
        preview=preview(journal, changes),
        notes=wanted.notes,
    )
    if not dry_run:
        journal.registry.ask([change for change in changes if change.user in held], epoch.number)
        journal.registry.ask(new, epoch.number, by_request=True)
    return done


def registered(journal: Journal, asked: Iterable[Change] = ()) -> dict[str, tuple[Key, str | None]]:
    """Who holds, or will hold, which requirement, and in which words: members, then what is queued, then asked for."""
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
) -> tuple[Changes, Difference]:
    """What makes the registry say what a file says, on top of what is asked for; none if it was imported already."""
    if is_imported(journal, wanted, terms.length_us):
        return [], Difference()
    everybody = _enrolment(wanted, terms)
    notes = (*wanted.notes, *strictest_sentences(terms, _sizes(everybody, terms)))
    current = registered(journal, asked)
    if not current:
        return everybody, Difference(joining=len(everybody), notes=notes)
    changes = differences(
        current, {joining.user: (joining.key, joining.level) for joining in everybody if joining.key is not None}
    )
    leaving = sum(change.action == "remove" for change in changes)
    joining = sum(change.user not in current for change in changes)
    if not allow_removals and not journal.is_new and journal.head().pinned is not None:
        _refuse_many_leaving(leaving, len(current))
    by_request = frozenset() if journal.is_new else journal.registry.joined_by_request()
    requested = sum(change.action == "remove" and change.user in by_request for change in changes)
    changing = len(changes) - leaving - joining
    unchanged = len(everybody) - joining - changing
    return changes, Difference(joining, changing, leaving, requested, unchanged=unchanged, notes=notes)


def _sizes(everybody: Enrolment, terms: Terms) -> dict[Key, int]:
    """Return how many users of a file hold each requirement, declared ones included."""
    return {**dict.fromkeys(terms.declared, 0), **everybody.keys.sizes()}


def _enrolment(wanted: Requirements, terms: Terms) -> Enrolment:
    """Everybody in a file; raises as `check_declared`."""
    for key in sorted(wanted.keys.distinct):
        check_declared(key, terms.declared)
    return Enrolment(wanted.users, wanted.keys, wanted.words)


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
