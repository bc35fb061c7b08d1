"""The budget that every class has left in its open window: public, as of the last committed slot."""

from __future__ import annotations

from typing import NamedTuple

from wevent.core.budget import NANO
from wevent.core.requirements import Requirement
from wevent.journal.contents import Loaded
from wevent.journal.contract import Journal
from wevent.journal.rebuild import follow_ledger, rebuild_ledger
from wevent.journal.terms import Epoch


class BudgetLeft(NamedTuple):
    """The budget of a class.

    Attributes:
        requirement: of the class.
        users: how many hold it and are counted.
        left: nano-epsilons that the next slot may still charge.
    """

    requirement: Requirement
    users: int
    left: int

    @property
    def share(self) -> float:
        """What is left, as a share of epsilon."""
        return self.left / self.requirement.nano

    @property
    def charged(self) -> float:
        """What the open window was charged."""
        return (self.requirement.nano - self.left) / NANO


class BudgetView:
    """The ledger of a journal as a reader sees it: made once, and taken on by every slot that is committed.

    Args:
        loaded: what the journal has.
        epochs: every epoch of it.
    """

    def __init__(self, loaded: Loaded, epochs: list[Epoch]) -> None:
        self._ledger, self._population = rebuild_ledger(loaded, epochs)

    @property
    def slot(self) -> int:
        """The last slot that is charged, 0 before the first."""
        return self._ledger.slot - 1

    def follow(self, journal: Journal) -> None:
        """Take on what was committed since."""
        for record in journal.releases(self._ledger.slot):
            if record.slot != self._ledger.slot:  # slots in between were dropped
                self._ledger, self._population = rebuild_ledger(journal.load(), journal.epochs())
                return
            self._population = follow_ledger(self._ledger, self._population, record)

    def classes(self) -> list[BudgetLeft]:
        """Every class of the population, the shortest window first."""
        left = self._ledger.remaining().tolist()
        rows = zip(self._population.items(), left, strict=True)
        return [BudgetLeft(requirement, users, nano) for (requirement, users), nano in rows]
