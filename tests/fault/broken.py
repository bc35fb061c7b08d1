"""Wrong ways to publish that are easy to write: the kill test must notice each of them."""

from __future__ import annotations

import dataclasses

from wevent.journal import Batch, Record, SqliteJournal
from wevent.journal.record import Hook, Transaction, no_hook
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


class StoresChargesApart(SqliteJournal):
    """Stores the charges of a slot in a transaction of their own, after the release: a crash between loses them."""

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        before = self._slots.end()
        free = [
            dataclasses.replace(record, probe=record.probe * 0, publication=record.publication * 0)
            for record in batch.records
        ]
        super().commit(batch._replace(records=free), at)
        if not batch.records:
            return
        at("charges apart")
        charged = self._slots.build(batch._replace(state=None), before)
        self._database.write(lambda: self._replace(charged))
        self._end = charged.last, charged.after
        assert self._witness is not None
        self._witness.update(chain=charged.after.hex())

    def _replace(self, charged: Transaction) -> None:
        self._database.execute("DELETE FROM slots WHERE slot >= ?", (charged.first,))
        self._slots.append(charged)
        self._slots.advance(charged)
