"""The budget of every class as the API shows it: as of the last committed slot, from public numbers alone."""

from __future__ import annotations

from wevent.core.budget import NANO
from wevent.journal import Journal
from wevent.publishing.views import BudgetView
from wevent.schemas import BudgetRow, BudgetTable


class BudgetBoard:
    """Shows the ledger of a journal; follows it from slot to slot. One may ask at a time."""

    def __init__(self) -> None:
        self._view: BudgetView | None = None

    def show(self, journal: Journal) -> BudgetTable:
        """The budget of every class now."""
        if self._view is None:
            self._view = BudgetView(journal.load(), journal.epochs())
        else:
            self._view.follow(journal)
        rows = [
            BudgetRow(
                window=row.requirement.window,
                epsilon=row.requirement.epsilon,
                users=row.users,
                left=row.left / NANO,
                share=row.share,
                charged=row.charged,
            )
            for row in self._view.classes()
        ]
        return BudgetTable(slot=self._view.slot, classes=rows)
