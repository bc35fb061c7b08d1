"""The slots of a journal as they are written: charges, releases, the head, and what is dropped again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from wevent.journal.contents import Batch
from wevent.journal.record import KINDS, Record, encode_charges
from wevent.journal.tables.database import Database, only_row
from wevent.journal.tables.shelf import Shelf

Row = tuple[Any, ...]

_OUTLIVED = (
    "DELETE FROM states WHERE slot <"
    " (SELECT coalesce(max(slot), 0) FROM states WHERE slot <= (SELECT emitted FROM head))"
)  # the last one that went out stays: who may not be shown later slots begins with it
_BESIDE_STATE = 1024  # bytes of a row that are not the state, at most


class SlotTable:
    """Writes the tables `slots`, `head` and `states`, inside whatever transaction is open; `SlotChain` reads them.

    Args:
        database: the journal's connection.
        shelf: where charges, populations and histograms go.
    """

    def __init__(self, database: Database, shelf: Shelf) -> None:
        self._database, self._shelf = database, shelf

    def end(self) -> tuple[int, bytes]:
        """The last committed slot, and the end of the hash chain."""
        committed, link = only_row(self._database, "SELECT committed, link FROM head")
        return committed, link

    def store_charges(self, records: Sequence[Record], link: bytes) -> tuple[list[Row], bytes]:
        """Store what slots point to; returns the slots' rows and the new end of the hash chain."""
        rows = []
        for record in records:
            link = record.digest(link)
            rows.append(self._row(record, link))
        return rows, link

    def store_releases(self, rows: list[Row]) -> None:
        """Store the slots themselves: a slot that is there already fails the transaction."""
        self._database.executemany("INSERT INTO slots VALUES (?,?,?,?,?,?,?,?,?,?)", rows)

    def advance(self, batch: Batch, link: bytes) -> None:
        """Move the head: input position, end of the chain; and the state, when one comes with the batch."""
        last = batch.records[-1].slot if batch.records else None
        position = None if batch.position is None else msgspec.json.encode(batch.position).decode()
        self._database.execute(
            "UPDATE head SET committed = coalesce(?, committed), emitted = CASE WHEN emitted < ? THEN ? ELSE emitted END,"
            " link = ?, position = coalesce(?, position)",
            (last, batch.emitted, batch.emitted, link, position),
        )
        if batch.state is not None and self._holds(batch.state):
            digest = hashlib.sha256(batch.state).digest()
            self._database.execute(_OUTLIVED)
            self._database.execute("INSERT INTO states SELECT committed, ?, ? FROM head", (batch.state, digest))

    def _holds(self, state: bytes) -> bool:
        """Whether a state fits into a row: where one does not (very many cells, with a cycle), more slots are replayed."""
        return len(state) + _BESIDE_STATE <= self._database.largest_value

    def drop_before(self, first: int, anchor: bytes) -> None:
        """Drop the slots before `first`, and what only they point to; `anchor` is the link before it."""
        run = self._database.execute
        run("UPDATE head SET first = ?, anchor = ?", (first, anchor))
        run("DELETE FROM slots WHERE slot < ?", (first,))
        run("DELETE FROM histograms WHERE slot < (SELECT min(shown) FROM slots WHERE shown > 0)")
        run(
            "DELETE FROM charges WHERE id IN"
            " (SELECT id FROM charges EXCEPT SELECT probe FROM slots EXCEPT SELECT publication FROM slots)"
        )
        run("DELETE FROM populations WHERE id IN (SELECT id FROM populations EXCEPT SELECT population FROM slots)")

    def _row(self, record: Record, link: bytes) -> Row:
        """One slot as it is stored; charges, populations and histograms that occurred lately are not stored again."""
        shown = record.shown
        if shown is not None and shown.slot == record.slot:
            self._database.execute("INSERT INTO histograms VALUES (?, ?)", (record.slot, shown.data))
        return (
            record.slot,
            KINDS.index(record.kind),
            record.epoch.number,
            self._shelf.store("populations", record.group.data),
            self._shelf.store("charges", encode_charges(record.probe)),
            self._shelf.store("charges", encode_charges(record.publication)),
            record.threshold,
            record.dissimilarity,
            0 if shown is None else shown.slot,
            link,
        )
