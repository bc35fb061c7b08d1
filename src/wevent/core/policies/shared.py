"""One budget for all: turns a personalised policy into its classic, uniform ancestor (Kellaris et al. 2014; spec 8)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.budget import decimal_text
from wevent.core.mechanism import Budgets, History, Idle, Policy, Split
from wevent.core.requirements import Requirement


class Shared:
    """Runs a policy on the single strictest requirement, (min ε, max w) over the declared classes, fixed at the start.

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
        self._row = _row(self._strictest)

    def probe(self, ledger: Budgets) -> IntArray | None:
        """The shared e¹ for every row."""
        budget = self._policy.probe(self._row)
        return None if budget is None else _for_all(budget, ledger)

    def offer(self, ledger: Budgets, history: History) -> IntArray | Idle:
        """The shared e² for every row, or why none."""
        widest = self._strictest.window
        windows = ledger.windows.tolist()
        spent = _largest(ledger.publication_spent, windows, widest)
        charges = _largest(history.last_charges, windows, widest)
        offer = self._policy.offer(
            self._row._replace(publication_spent=spent),
            History(history.slot, history.last_fresh, charges, history.measurement, history.smoothed),
        )
        assert not isinstance(offer, Split), "anchors are for classes that have budgets of their own"
        return offer if isinstance(offer, Idle) else _for_all(offer, ledger)


class _Row(NamedTuple):
    """A ledger of one row, as a policy sees it."""

    windows: IntArray
    epsilons: IntArray
    halves: IntArray
    shares: IntArray
    publication_spent: IntArray
    charged: BoolArray
    sizes: IntArray
    typical_sizes: IntArray

    def forecast(self, delays: IntArray) -> IntArray:
        """Only the whole budget is known of a single row."""
        return np.repeat(self.epsilons[:, None], len(delays), axis=1)


def _row(requirement: Requirement) -> _Row:
    return _Row(
        windows=_one(requirement.window),
        epsilons=_one(requirement.nano),
        halves=_one(requirement.nano // 2),
        shares=_one(requirement.share),
        publication_spent=_one(0),
        charged=np.ones(1, dtype=np.bool_),
        sizes=_one(0),
        typical_sizes=_one(0),
    )


def _one(value: int) -> IntArray:
    return np.array([value], dtype=np.int64)


def _largest(values: IntArray, windows: list[int], widest: int) -> IntArray:
    """The largest value of the rows with the widest window: one of the declared rows has it."""
    largest = max(value for value, window in zip(values.tolist(), windows, strict=True) if window == widest)
    return _one(largest)


def _for_all(budget: IntArray, ledger: Budgets) -> IntArray:
    return np.full(len(ledger.windows), budget[0], dtype=np.int64)
