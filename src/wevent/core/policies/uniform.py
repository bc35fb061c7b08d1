"""The same budget in every slot: ε // w (Kellaris et al. 2014; spec 8)."""

from __future__ import annotations

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Budgets, History, Idle


class Uniform:
    """No probe; e² = ε // w in every slot: w of them stay within ε."""

    def probe(self, ledger: Budgets) -> IntArray | None:
        """Never looks first."""
        return None

    def offer(self, ledger: Budgets, history: History) -> IntArray | Idle:
        """ε // w, always."""
        return ledger.epsilons // ledger.windows
