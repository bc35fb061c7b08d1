"""Where a journal file stands: its head, and what a publisher continues from, each in one consistent view."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from wevent.journal.contents import Head, Loaded
from wevent.journal.sqlite.chain import SlotChain
from wevent.journal.sqlite.epoch_table import EpochTable
from wevent.journal.sqlite.facts import Facts
from wevent.journal.sqlite.storage import damaged, maybe_row, only_row, readable


class Standing:
    """Reads the tables `head` and `states`, and the slots since.

    Args:
        database: the journal's connection.
        path: its file, for messages.
        chain: its slots.
        epochs: its epochs.
        facts: what it knows of itself.
    """

    def __init__(
        self, database: apsw.Connection, path: Path, chain: SlotChain, epochs: EpochTable, facts: Facts
    ) -> None:
        self._database, self._path = database, path
        self._chain, self._epochs, self._facts = chain, epochs, facts

    def head(self) -> Head:
        """See `wevent.journal.contract.Slots.head`."""
        with readable(self._path):
            row = only_row(
                self._database,
                "SELECT committed, emitted, position, link, copied, first, (SELECT max(number) FROM epochs) FROM head",
            )
            committed, emitted, position, link, copied, first, number = row
            if number is None:
                raise damaged(self._path)
            unsafe, place = self._facts.unsafe, msgspec.json.decode(position)
            return Head(committed, emitted, place, link, self._epochs.in_force(number), bool(copied), first, unsafe)

    def load(self, pending: Callable[[], bytes | None]) -> Loaded:
        """See `wevent.journal.contract.Slots.load`; `pending` reads the events of open slots."""
        with readable(self._path), self._snapshot():
            head = self.head()
            start, state = self._state()
            since, last = [], None
            for record in self._chain.records(max(start, head.first)):  # each is confirmed by its link
                last = record
                if record.slot > start:
                    since.append(record)
            if (last.slot if last else 0) != head.committed or self._link(head.committed) != head.digest:
                raise damaged(self._path)
            return Loaded(head, state, since, last, pending())

    def check(self) -> None:
        """Every slot that is kept is what was stored, and all are there.

        Raises:
            InvalidJournal: if not.
        """
        with self._snapshot():
            kept = deque(self._chain.records(1), maxlen=1)
            head = self.head()
            if (kept[0].slot if kept else head.first - 1) != head.committed:
                raise damaged(self._path)

    def _state(self) -> tuple[int, bytes | None]:
        """The stored state and its slot; 0 before the first was stored."""
        row = maybe_row(self._database, "SELECT slot, data, digest FROM states ORDER BY slot DESC LIMIT 1")
        if row is None:
            return 0, None
        slot, state, digest = row
        if hashlib.sha256(state).digest() != digest:
            raise damaged(self._path)
        return slot, state

    def _link(self, slot: int) -> bytes:
        """The chain's link after a slot; before the first kept one it is the anchor."""
        link = self._chain.link_at(slot)
        return bytes(only_row(self._database, "SELECT anchor FROM head")[0]) if link is None else link

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """One consistent view over several queries, whoever commits meanwhile."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("ROLLBACK")
