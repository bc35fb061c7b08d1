"""Budget distribution: each publication takes half of what is left in the window (paper, Algorithm 4, PBD; spec 8)."""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Budgets, History, Idle


class Distribution:
    """e¹ = share; e² = half of the publication half that the window has left."""

    def probe(self, ledger: Budgets) -> IntArray | None:
        """One share per slot: w·share ≤ ε // 2 in every window."""
        return ledger.shares

    def offer(self, ledger: Budgets, history: History) -> IntArray | Idle:
        """(ε//2 − S) // 2, S the publication charges of the last w − 1 slots: S + (ε//2 − S)//2 ≤ ε//2."""
        offer: IntArray = np.maximum(ledger.halves - ledger.publication_spent, 0) >> 1
        return offer
