"""The whole budget once per window (Kellaris et al. 2014, "Sample"; spec 8)."""

from __future__ import annotations

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Budgets, History, Idle


class Sample:
    """No probe; e² = ε at slots 1, 1 + w, 1 + 2w, …, w the largest window: no window holds two of them."""

    def probe(self, ledger: Budgets) -> IntArray | None:
        """Never looks first."""
        return None

    def offer(self, ledger: Budgets, history: History) -> IntArray | Idle:
        """ε when due."""
        if (history.slot - 1) % int(ledger.windows.max()):
            return Idle.NOT_DUE
        return ledger.epsilons
