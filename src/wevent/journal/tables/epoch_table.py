"""The epochs of a journal; one that follows another is stored in the transaction of its first slot."""

from __future__ import annotations

from collections.abc import Iterable

from wevent.journal.coming import Coming, changes_to_queue
from wevent.journal.tables.database import Database, only_row
from wevent.journal.tables.draft import WaitingEpoch
from wevent.journal.tables.facts import Facts
from wevent.journal.terms import Epoch, class_history, decode_terms, encode_terms
from wevent.journal.user_registry import UserRegistry
from wevent.people.membership import Change, Enrolment, check_id


class EpochTable:
    """Reads and writes the table `epochs`.

    Args:
        database: the journal's connection.
        facts: what the journal knows of itself.
        registry: who is told what comes with an epoch.
    """

    def __init__(self, database: Database, facts: Facts, registry: UserRegistry) -> None:
        self._database, self._facts, self._registry = database, facts, registry
        self._read: dict[int, Epoch] = {}
        self._planned: tuple[Epoch, Coming] | None = None
        self._imported: bytes | None = None  # the file that was imported last when it was planned

    def begin_first(self, coming: Coming) -> None:
        """Keep the terms of a journal without slots, in place of others that came to no slot; inside a transaction."""
        self._database.execute("DELETE FROM epochs")
        self._read.clear()
        self._store(Epoch(1, 1, coming.terms), coming)
        self._planned = None

    def plan(self, coming: Coming, first: int, asked: int | None) -> None:
        """Keep the next epoch at hand until its first slot is committed; what is asked for meanwhile waits for that too.

        Args:
            coming: the epoch.
            first: its first slot.
            asked: last request that was queued before it; None: all were.

        Raises:
            InvalidMembership: for an id that nobody can have.
        """
        for change in coming.changes:  # now: what fails with the first slot fails after its draw
            check_id(change.user)
        (stored,) = only_row(self._database, "SELECT count(*) FROM epochs")
        self._planned = Epoch(stored + 1, first, coming.terms), coming
        self._imported = self._facts.get("imported")
        self._registry.held_after = self._registry.last_request() if asked is None else asked

    def store_planned(self) -> None:
        """Store the epoch that waits for its first slot, if one does; inside the transaction of that slot."""
        if self._planned is None:
            return
        epoch, coming = self._planned
        since, words = self._registry.held_back(), None
        if coming.imported is not None and self._facts.get("imported") != self._imported:
            words = {member.user: member.level for member in self._registry.members()}
            coming = coming._replace(imported=None)
        if since or words is not None:
            self._registry.replace_held_back(changes_to_queue(coming, since, words))
            coming = coming._replace(changes=())
        self._store(epoch, coming, since)

    def planned(self) -> WaitingEpoch | None:
        """The epoch that waits for its first slot, if one does, with all that it waits with."""
        if self._planned is None:
            return None
        return WaitingEpoch(*self._planned, self._imported, self._registry.held_after)

    def plan_again(self, planned: WaitingEpoch) -> None:
        """Let an epoch wait as it waited before another writer died."""
        self._planned, self._imported = (planned.epoch, planned.coming), planned.imported
        self._registry.held_after = planned.before

    def committed(self) -> None:
        """What `store_planned` stored is there to stay."""
        self._planned = None
        self._registry.held_after = None

    @property
    def waits(self) -> bool:
        """Whether an epoch is to be stored with its first slot."""
        return self._planned is not None

    def all(self) -> list[Epoch]:
        """Every epoch, the first one first, the one that waits included."""
        return self.all_stored() + ([] if self._planned is None else [self._planned[0]])

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
        planned = self._planned
        return planned[0] if planned is not None and planned[0].number == number else self.stored(number)

    def in_force(self, last: int) -> Epoch:
        """The epoch of the slots to come; `last` is the number of the last one that is stored."""
        return self.stored(last) if self._planned is None else self._planned[0]

    def widest(self) -> int:
        """The widest window of any epoch."""
        return max(epoch.terms.widest for epoch in self.all())

    def _store(self, epoch: Epoch, coming: Coming, since: Iterable[Change] = ()) -> None:
        """An epoch and what comes with it; `since` was asked for after it was begun."""
        terms = encode_terms(epoch.terms).decode()
        self._database.execute("INSERT INTO epochs VALUES (?, ?, ?)", (epoch.number, epoch.first, terms))
        self._facts.add_unsafe(coming.unsafe)
        changes = coming.changes
        if epoch.first == 1 and isinstance(changes, Enrolment):  # the registry is empty: no need to queue everybody
            enrolled = self._registry.enrol(changes, 1, class_history([epoch], self._registry.restores()))
            changes = () if enrolled else changes
        if len(changes):
            self._registry.ask(changes)
        self._facts["together"] = int(self._registry.pending() > 0)
        if coming.imported is not None:
            self._facts["imported"] = coming.imported
            self._facts["changes lost"] = 0
            self._registry.file_imported(since)
