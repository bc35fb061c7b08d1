"""Wrong ways to publish that are easy to write: the kill test must notice each of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from wevent.journal.tables.slot_table import SlotTable

from wevent.journal import Batch, Record, SqliteJournal
from wevent.journal.contents import Hook, no_hook
from wevent.publishing.loop import Publication


class EmitsBeforeCommit(Publication):
    """Emits a release before it is stored: after a crash the slot is drawn again and goes out with other numbers."""

    def _commit(self, batch: Batch) -> bool:
        super()._emit(list(batch.records))
        return super()._commit(batch)

    def _emit(self, records: list[Record]) -> bool:
        """Done already."""
        return True


class DropsCharges(SqliteJournal):
    """Stores releases without what they cost: after a crash the ledger forgets and the budget is spent again."""

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        free = [
            dataclasses.replace(record, probe=record.probe * 0, publication=record.publication * 0)
            for record in batch.records
        ]
        super().commit(batch._replace(records=free), at)


class _WithoutCharges(SlotTable):
    """Slots that point to no charges."""

    def _row(self, record: Record, link: bytes) -> tuple[object, ...]:
        row = list(super()._row(record, link))
        row[4] = row[5] = 0
        return tuple(row)


class StoresChargesApart(SqliteJournal):
    """Stores the charges of a slot in a transaction of their own, after the release: a crash between loses them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._charged = self._slots
        self._slots = _WithoutCharges(self._database, self._shelf)

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        super().commit(batch, at)
        at("charges apart")
        for record in batch.records:
            row = self._charged._row(dataclasses.replace(record, shown=None), b"")
            self._database.execute(
                "UPDATE slots SET probe = ?, publication = ? WHERE slot = ?", (*row[4:6], record.slot)
            )
