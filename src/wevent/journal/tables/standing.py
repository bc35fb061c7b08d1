"""Where a journal stands: its head, and what a publisher continues from, each in one consistent view."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import msgspec

from wevent.journal.contents import Head, Loaded
from wevent.journal.tables.chain import SlotChain
from wevent.journal.tables.database import Database, maybe_row, only_row, stored_bytes
from wevent.journal.tables.epoch_table import EpochTable
from wevent.journal.tables.facts import Facts


class Standing:
    """Reads the tables `head` and `states`, and the slots since.

    Args:
        database: the journal's connection.
        chain: its slots.
        epochs: its epochs.
        facts: what it knows of itself.
        shown: the last slot that may be shown, of the last committed and the last emitted one.
    """

    def __init__(
        self, database: Database, chain: SlotChain, epochs: EpochTable, facts: Facts, shown: Callable[[int, int], int]
    ) -> None:
        self._database, self._chain, self._epochs, self._facts = database, chain, epochs, facts
        self._shown = shown

    def head(self) -> Head:
        """See `wevent.journal.contract.Slots.head`."""
        head = self._head()
        shown = self._shown(head.committed, head.emitted)
        if shown == head.committed:
            return head
        with self._database.readable():
            return replace(head, committed=shown, digest=self._link(shown), unshown=head.committed - shown)

    def shown_through(self) -> int:
        """The last slot that may be shown."""
        with self._database.readable():
            committed, emitted = only_row(self._database, "SELECT committed, emitted FROM head")
        return self._shown(committed, emitted)

    def _head(self) -> Head:
        with self._database.readable():
            row = only_row(
                self._database,
                "SELECT committed, emitted, position, link, copied, first, (SELECT max(number) FROM epochs) FROM head",
            )
            committed, emitted, position, link, copied, first, number = row
            if number is None:
                raise self._database.damaged()
            unsafe, place = self._facts.unsafe, msgspec.json.decode(position)
            return Head(committed, emitted, place, link, self._epochs.in_force(number), bool(copied), first, unsafe)

    def load(self) -> Loaded:
        """See `wevent.journal.contract.Slots.load`."""
        with self._database.readable():
            return self._database.read(self._load)

    def check(self) -> None:
        """Every slot that is kept is what was stored, and all are there.

        Raises:
            InvalidJournal: if not.
        """
        self._database.read(self._check)

    def _load(self) -> Loaded:
        head = self.head()
        start, state = self._state(head.committed)
        if start < head.first - 1:  # slots are dropped only behind a state
            raise self._database.damaged()
        since, last = [], None
        for record in self._chain.records(max(start, head.first)):  # each is confirmed by its link
            if record.slot > head.committed:
                break
            last = record
            if record.slot > start:
                since.append(record)
        if (last.slot if last else 0) != head.committed or self._link(head.committed) != head.digest:
            raise self._database.damaged()
        return Loaded(head, state, since, last)

    def _check(self) -> None:
        kept = deque(self._chain.records(1), maxlen=1)
        head = self._head()
        if (kept[0].slot if kept else head.first - 1) != head.committed:
            raise self._database.damaged()

    def _state(self, through: int) -> tuple[int, bytes | None]:
        """The last stored state up to a slot, and its slot; 0 before the first was stored."""
        query = "SELECT slot, data, digest FROM states WHERE slot <= ? ORDER BY slot DESC LIMIT 1"
        row = maybe_row(self._database, query, (through,))
        if row is None:
            return 0, None
        slot, state, digest = row
        if hashlib.sha256(state).digest() != digest:
            raise self._database.damaged()
        return slot, state

    def _link(self, slot: int) -> bytes:
        """The chain's link after a slot; before the first kept one it is the anchor."""
        link = self._chain.link_at(slot)
        return stored_bytes(only_row(self._database, "SELECT anchor FROM head")[0]) if link is None else link
