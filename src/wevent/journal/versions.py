"""Configuration versions; one that follows another is stored in the transaction of its first slot (spec 10)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from wevent.core.requirements import Levels
from wevent.errors import InvalidMembership, InvalidRequirement
from wevent.journal.database import Database, only_row
from wevent.journal.metadata import Facts
from wevent.journal.terms import Epoch, Terms, class_history, decode_terms, encode_terms
from wevent.journal.user_registry import UserRegistry
from wevent.people.classes import Key
from wevent.people.membership import Change, Changes, Enrolment, check_declared, check_id

_log = logging.getLogger("wevent.journal.versions")


class NewVersion(NamedTuple):
    """A configuration, and what comes with it; see `wevent.journal.contract.Epochs.begin`."""

    terms: Terms
    unsafe: tuple[str, ...]
    changes: Changes
    imported: bytes | None


class PendingVersion(NamedTuple):
    """A version that waits for its first slot.

    Attributes:
        epoch: the version.
        new: what comes with it.
        imported_before: the requirements file that was imported last when it began.
        asked: last request that its own changes take into account; None: the last one.
    """

    epoch: Epoch
    new: NewVersion
    imported_before: bytes | None
    asked: int | None

    def encode(self) -> bytes:
        """Return it as bytes, for a write-ahead record."""
        epoch, new, before, asked = self
        fields = epoch.number, epoch.first, encode_terms(epoch.terms), new.unsafe, list(new.changes), new.imported
        return msgspec.msgpack.encode((*fields, before, asked))

    @classmethod
    def decode(cls, data: bytes) -> PendingVersion:
        """Return the counterpart of `encode`."""
        number, first, terms, unsafe, changes, imported, before, asked = msgspec.msgpack.decode(data, type=_Encoded)
        epoch = Epoch(number, first, decode_terms(terms), terms)
        return cls(epoch, NewVersion(epoch.terms, unsafe, changes, imported), before, asked)


_Encoded = tuple[int, int, bytes, tuple[str, ...], list[Change], bytes | None, bytes | None, int | None]


class VersionTable:
    """Reads and writes the table `epochs`.

    Args:
        database: the journal's connection.
        facts: what the journal knows of itself.
        registry: who is told what comes with an epoch.
    """

    def __init__(self, database: Database, facts: Facts, registry: UserRegistry) -> None:
        self._database, self._facts, self._registry = database, facts, registry
        self._read: dict[int, Epoch] = {}
        self._pending: PendingVersion | None = None

    def begin_first(self, new: NewVersion) -> None:
        """Keep the terms of a journal without slots, in place of others that came to no slot; inside a transaction."""
        self._database.execute("DELETE FROM epochs")
        self._read.clear()
        self._store(Epoch(1, 1, new.terms), new)
        self._pending = None

    def begin_next(self, new: NewVersion, first: int, asked: int | None) -> None:
        """Keep the next epoch at hand until its first slot is committed; what is asked for meanwhile waits for that too.

        Args:
            new: the epoch.
            first: its first slot.
            asked: last request that its changes take into account; None: the last one.

        Raises:
            InvalidMembership: for an id that nobody can have.
        """
        for change in new.changes:  # now: what fails with the first slot fails after its draw
            check_id(change.user)
        (stored,) = only_row(self._database, "SELECT count(*) FROM epochs")
        asked = self._registry.last_request() if asked is None else asked
        self.restore_pending(
            PendingVersion(Epoch(stored + 1, first, new.terms), new, self._facts.get("imported"), asked)
        )

    def store_pending(self) -> None:
        """Store the epoch that waits for its first slot, if one does; inside the transaction of that slot."""
        if self._pending is None:
            return
        epoch, new, imported_before, _ = self._pending
        since, words = self._registry.held_back(), None
        if new.imported is not None and self._facts.get("imported") != imported_before:
            words = {member.user: member.level for member in self._registry.members()}
            new = new._replace(imported=None)
        if since or words is not None:
            self._registry.replace_held_back(changes_to_queue(new, since, words))
            new = new._replace(changes=())
        self._store(epoch, new, since)

    @property
    def pending(self) -> PendingVersion | None:
        """The version that waits for its first slot."""
        if self._pending is None:
            return None
        return self._pending._replace(asked=self._registry.held_after)

    def restore_pending(self, pending: PendingVersion) -> None:
        """Let a version wait, as it waited before another writer died."""
        self._pending = pending
        self._registry.held_after = pending.asked

    def committed(self) -> None:
        """What `store_pending` stored is there to stay."""
        self._pending = None
        self._registry.held_after = None

    @property
    def waits(self) -> bool:
        """Whether an epoch is to be stored with its first slot."""
        return self._pending is not None

    def all(self) -> list[Epoch]:
        """Every epoch, the first one first, the one that waits included."""
        return self.all_stored() + ([] if self._pending is None else [self._pending.epoch])

    def all_stored(self) -> list[Epoch]:
        """Return every stored epoch, the first one first."""
        numbers = self._database.execute("SELECT number FROM epochs ORDER BY number")
        return [self.stored(row[0]) for row in numbers]

    def stored(self, number: int) -> Epoch:
        """The epoch of a number."""
        if number not in self._read:
            first, terms = only_row(self._database, "SELECT first, terms FROM epochs WHERE number = ?", (number,))
            self._read[number] = Epoch(number, first, decode_terms(terms), terms.encode())
        return self._read[number]

    def named(self, number: int) -> Epoch:
        """The epoch of a number, the one that waits included."""
        pending = self._pending
        return pending.epoch if pending is not None and pending.epoch.number == number else self.stored(number)

    def in_force(self, last: int) -> Epoch:
        """The epoch of the slots to come; `last` is the number of the last one that is stored."""
        return self.stored(last) if self._pending is None else self._pending.epoch

    def widest(self) -> int:
        """The widest window of any epoch."""
        return max(epoch.terms.widest for epoch in self.all())

    def _store(self, epoch: Epoch, new: NewVersion, since: Iterable[Change] = ()) -> None:
        """An epoch and what comes with it; `since` was asked for after it was begun."""
        terms = (epoch.text or encode_terms(epoch.terms)).decode()
        self._database.execute("INSERT INTO epochs VALUES (?, ?, ?)", (epoch.number, epoch.first, terms))
        self._facts.add_unsafe(new.unsafe)
        changes = new.changes
        if epoch.first == 1 and isinstance(changes, Enrolment):  # the registry is empty: no need to queue everybody
            enrolled = self._registry.enrol(changes, 1, class_history([epoch], self._registry.restores()))
            changes = () if enrolled else changes
        if len(changes):
            self._registry.ask(changes)
        self._facts["together"] = int(self._registry.pending() > 0)
        if new.imported is not None:
            self._facts["imported"] = new.imported
            self._facts["changes lost"] = 0
            self._registry.file_imported(since)


def changes_to_queue(new: NewVersion, since: Iterable[Change], words: Mapping[str, str | None] | None) -> list[Change]:
    """What is queued when an epoch is stored: what was asked for since it was begun, then the changes that come with it.

    The rule: whoever asked for something since gets that, and none of the epoch's changes. A wish in words has the numbers
    of the epoch's table; words that it lacks leave the numbers they had. After another requirements file was imported, of
    the epoch's changes only new numbers for words that people hold are left: that file is the later one.

    ▲ A wish that the epoch's terms do not allow (it was checked against those before) becomes "remove": nobody counts under
    a weaker requirement than the one they asked for, and no publisher ends because of it. The log warns of it; nothing else
    happens here.

    Args:
        new: the epoch.
        since: what was asked for since it was begun, in order.
        words: the words that every member holds, if another file was imported since; None otherwise.
    """
    table = new.terms.level_table
    wishes = [_in_numbers(table, change) for change in since]
    refused = {
        key for key in {change.key for change in wishes if change.key is not None} if _is_refused(new.terms, key)
    }
    wishes = [Change("remove", change.user) if change.key in refused else change for change in wishes]
    asked = {change.user for change in wishes}
    kept = (change for change in new.changes if change.user not in asked)
    if words is None:
        return [*wishes, *kept]
    return [
        *wishes,
        *(change for change in kept if change.level is not None and words.get(change.user) == change.level),
    ]


def _in_numbers(table: Levels | None, change: Change) -> Change:
    """A wish with the numbers that its words have in a level table."""
    if change.level is None or table is None:
        return change
    try:
        return change._replace(key=table.choose(change.level).key)
    except InvalidRequirement:
        return change._replace(level=None)


def _is_refused(terms: Terms, key: Key) -> bool:
    try:
        check_declared(key, terms.declared)
    except InvalidMembership as error:
        _log.warning(
            "while an epoch began, a requirement was asked for that its terms do not allow: whoever asked is not counted "
            "until they ask again, for one that is declared. %s (private: do not publish this line)",
            error,
        )
        return True
    return False
