"""When and how much: the policies of the published mechanisms (spec 8). `tracking` and `anchoring` are those of `pft`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.budget import decimal_text
from wevent.core.mechanism import History, NoOffer, Policy, PolicyInput, Split
from wevent.core.requirements import Requirement


class Distribution:
    """Each publication takes half of what is left in the window (paper, Algorithm 4, PBD).

    e¹ = share; e² = half of the publication half that the window has left.
    """

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        """Return one share per slot: w·share ≤ ε // 2 in every window."""
        return ledger.shares

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | NoOffer:
        """Return (ε//2 − S) // 2, S the publication charges of the last w − 1 slots: S + (ε//2 − S)//2 ≤ ε//2."""
        offer: IntArray = np.maximum(ledger.halves - ledger.publication_spent, 0) >> 1
        return offer


class Absorption:
    """Take the shares of skipped slots, give back as many later (paper, Algorithm 5, PBA).

    e¹ = share; e² = as many shares as slots were skipped since the last publication's block.

    A publication of k shares at slot t owns the block [t − k + 1, t + k − 1]; blocks of one class are disjoint, so a
    window of w slots holds at most w shares (a single publication: the cap at w).
    """

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        """Return one share per slot: w·share ≤ ε // 2 in every window."""
        return ledger.shares

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | NoOffer:
        """Return min(t − l − (k − 1), w) shares, where k shares were charged at the last publication l.

        k is what the charge comes to in shares, rounded up, so a refunded charge still owns its whole block ▲. A class
        that did not exist at l counts from slot 0. It may come back with older charges: the offer never exceeds what is
        left of its publication half. A class with a share of 0 is offered 0 and owns no block.
        """
        known = (history.last_charges >= 0) & ledger.charged
        taken = np.where(known, np.maximum(-(-history.last_charges // np.maximum(ledger.shares, 1)), 1), 1)
        last = np.where(known, history.last_fresh, 0)
        if history.slot - history.last_fresh <= int(taken.max()) - 1:
            return NoOffer.NULLIFIED
        shares = np.minimum(history.slot - last - (taken - 1), ledger.windows)
        offer: IntArray = np.minimum(ledger.shares * shares, np.maximum(ledger.halves - ledger.publication_spent, 0))
        return offer


class Uniform:
    """No probe; e² = ε // w in every slot: w of them stay within ε (Kellaris et al. 2014)."""

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        return None

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | NoOffer:
        return ledger.epsilons // ledger.windows


class Sample:
    """No probe; e² = ε at slots 1, 1 + w, 1 + 2w, …, w the largest window (Kellaris et al. 2014): no window holds two."""

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        return None

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | NoOffer:
        if (history.slot - 1) % int(ledger.windows.max()):
            return NoOffer.NOT_DUE
        return ledger.epsilons


class Shared:
    """Run a policy on the strictest requirement, (min ε, max w) over the declared classes, fixed at the start.

    It turns a personalised policy into its uniform ancestor (Kellaris et al. 2014).

    Every declared class is charged the same. The history of the shared budget is read from the declared rows with the
    largest window: the ledger pins them, so they are charged in every slot, members or not.

    Args:
        policy: the personalised policy to run on one row.
        declared: the requirements declared at the start.

    Raises:
        InvalidRequirement: if the smallest ε does not split into shares for the widest window.
    """

    def __init__(self, policy: Policy, declared: Iterable[Requirement]) -> None:
        self._policy = policy
        declared = tuple(declared)
        self._strictest = Requirement(
            max(requirement.window for requirement in declared),
            decimal_text(min(requirement.nano for requirement in declared)),
        )
        nano = _one(self._strictest.nano)
        self._row = PolicyInput(
            windows=_one(self._strictest.window),
            epsilons=nano,
            halves=nano // 2,
            shares=_one(self._strictest.share),
            sizes=_one(0),
            typical_sizes=_one(0),
            charged=np.ones(1, dtype=np.bool_),
            publication_spent=_one(0),
            forecast=lambda delays: np.repeat(nano[:, None], len(delays), axis=1),
        )

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        budget = self._policy.probe(self._row)
        return None if budget is None else _for_all(budget, ledger)

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | NoOffer:
        widest = self._strictest.window
        windows = ledger.windows.tolist()
        spent = _largest(ledger.publication_spent, windows, widest)
        charges = _largest(history.last_charges, windows, widest)
        offer = self._policy.offer(
            self._row._replace(publication_spent=spent),
            History(history.slot, history.last_fresh, charges, history.measurement, history.smoothed),
        )
        assert not isinstance(offer, Split), "anchors are for classes that have budgets of their own"
        return offer if isinstance(offer, NoOffer) else _for_all(offer, ledger)


def _one(value: int) -> IntArray:
    return np.array([value], dtype=np.int64)


def _largest(values: IntArray, windows: list[int], widest: int) -> IntArray:
    """Return the largest value of the rows with the widest window: one of the declared rows has it."""
    largest = max(value for value, window in zip(values.tolist(), windows, strict=True) if window == widest)
    return _one(largest)


def _for_all(budget: IntArray, ledger: PolicyInput) -> IntArray:
    return np.full(len(ledger.windows), budget[0], dtype=np.int64)
