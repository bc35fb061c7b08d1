"""Budget absorption: take the shares of skipped slots, give back as many later (paper, Algorithm 5, PBA; spec 8)."""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Budgets, History, Idle


class Absorption:
    """e¹ = share; e² = as many shares as slots were skipped since the last publication's block.

    A publication of k shares at slot t owns the block [t − k + 1, t + k − 1]; blocks of one class are disjoint, so a
    window of w slots holds at most w shares (a single publication: the cap at w).
    """

    def probe(self, ledger: Budgets) -> IntArray | None:
        """One share per slot: w·share ≤ ε // 2 in every window."""
        return ledger.shares

    def offer(self, ledger: Budgets, history: History) -> IntArray | Idle:
        """min(t − l − (k − 1), w) shares, where k shares were charged at the last publication l.

        k is what the charge comes to in shares, rounded up, so a refunded charge still owns its whole block ▲. A class
        that did not exist at l counts from slot 0. It may come back with older charges: the offer never exceeds what is
        left of its publication half. A class with a share of 0 is offered 0 and owns no block.
        """
        known = (history.last_charges >= 0) & ledger.charged
        taken = np.where(known, np.maximum(-(-history.last_charges // np.maximum(ledger.shares, 1)), 1), 1)
        last = np.where(known, history.last_fresh, 0)
        if history.slot - history.last_fresh <= int(taken.max()) - 1:
            return Idle.NULLIFIED
        shares = np.minimum(history.slot - last - (taken - 1), ledger.windows)
        offer: IntArray = np.minimum(ledger.shares * shares, np.maximum(ledger.halves - ledger.publication_spent, 0))
        return offer
