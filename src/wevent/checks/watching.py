"""Pieces of a mechanism with a witness: what a policy asks for in each slot, and what a smoother answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.checks.subject import Broken, expect, expect_same
from wevent.core.arrays import IntArray
from wevent.core.mechanism import (
    Budgets,
    Estimate,
    History,
    Idle,
    Measurement,
    Mechanism,
    Planner,
    Policy,
    Smoother,
    Split,
)
from wevent.core.requirements import Requirement
from wevent.core.settings import Options

Key = tuple[int, int]  # (window in slots, epsilon in nano-epsilons)


@dataclass(frozen=True)
class AskedBudgets:
    """What a policy asked for in one slot, by requirement, in plain integers; rows that can't be charged left out.

    Attributes:
        slot: the slot.
        probe: e¹, None without a probe.
        offer: e², or why there is none.
        level: how much of each e² goes into an anchor.
        members: registered users.
    """

    slot: int
    probe: dict[Key, int] | None
    offer: dict[Key, int] | Idle
    members: dict[Key, int]
    level: int = 0

    def most(self) -> dict[Key, int]:
        """The most the slot may charge each requirement."""
        offer = {} if isinstance(self.offer, Idle) else self.offer
        return {key: (self.probe or {}).get(key, 0) + offer.get(key, 0) for key in self.members}


class WatchedPolicy:
    """Writes down what a policy asks for, and holds it to being a function of what it is shown.

    Args:
        policy: the policy that lives through the stream.
        again: makes a new one, which has seen nothing.
        seen: where to write.
    """

    def __init__(self, policy: Policy, again: Callable[[], Policy], seen: list[AskedBudgets]) -> None:
        self._policy, self._again, self._seen = policy, again, seen
        self._probe: IntArray | None = None
        self._failed = ""

    def probe(self, ledger: Budgets) -> IntArray | None:
        """What the policy says."""
        self._probe = self._policy.probe(ledger)
        return self._probe

    def offer(self, ledger: Budgets, history: History) -> IntArray | Split | Idle:
        """What the policy says; a policy that was made just now must say the same, and nothing it sees may change."""
        expect(not self._failed, "a policy that can plan after every publication", self._failed, history.slot)
        before = _frozen(history)
        offer = self._policy.offer(ledger, history)
        asked = _asked(history.slot, ledger, self._probe, offer)
        fresh = self._again()
        repeated = _asked(history.slot, ledger, fresh.probe(ledger), fresh.offer(ledger, history))
        expect_same(before, _frozen(history), "a policy to leave the history as it is", history.slot)
        expect_same(repeated, asked, "a policy without memory of its own: made anew, it asks for", history.slot)
        self._seen.append(asked)
        return offer


class WatchedPlanner(WatchedPolicy):
    """The same for a policy that plans ahead. A plan that fails is told in the next slot: here the guard would hide it."""

    def replan(self, ledger: Budgets, history: History) -> Any:
        """What the policy says."""
        policy = self._policy
        assert isinstance(policy, Planner)
        try:
            return policy.replan(ledger, history)
        except Exception as error:
            self._failed = f"{type(error).__name__}: {error}"
            raise


class WatchedSmoother:
    """Writes down where a smoother raises or publishes what is not finite: the guard passes it over in silence.

    Args:
        smoother: the smoother.
        failures: where to write.
    """

    def __init__(self, smoother: Smoother, failures: list[str]) -> None:
        self._smoother, self._failures = smoother, failures
        self.start, self.dump, self.load = smoother.start, smoother.dump, smoother.load

    def advance(self, state: Any, measurement: Measurement | None) -> tuple[Any, Estimate]:
        """What the smoother says."""
        try:
            after, estimate = self._smoother.advance(state, measurement)
        except Exception as error:
            self._failures.append(f"{type(error).__name__}: {error}")
            raise
        parts = [estimate.values] if estimate.std_error is None else [estimate.values, estimate.std_error]
        if not all(np.isfinite(part).all() for part in parts):
            self._failures.append("values or errors that are not finite")
        return after, estimate


def watched_policy(row: Mechanism, seen: list[AskedBudgets]) -> Callable[[tuple[Requirement, ...], Options], Policy]:
    """The mechanism's maker of policies, with a witness."""

    def make(declared: tuple[Requirement, ...], options: Options) -> Policy:
        policy = row.policy(declared, options)
        kind = WatchedPlanner if isinstance(policy, Planner) else WatchedPolicy
        return kind(policy, lambda: row.policy(declared, options), seen)

    return make


def watched_smoother(row: Mechanism, failures: list[str]) -> Callable[[Options], Smoother]:
    """The mechanism's maker of smoothers, with a witness."""
    return lambda options: WatchedSmoother(row.smoother(options), failures)


def _asked(slot: int, ledger: Budgets, probe: IntArray | None, offer: IntArray | Split | Idle) -> AskedBudgets:
    level = offer.level if isinstance(offer, Split) else 0
    offer = offer.budgets if isinstance(offer, Split) else offer
    expect(type(level) is int and level >= 0, "a level in whole nano-epsilons", repr(level), slot)
    keys = list(zip(ledger.windows.tolist(), ledger.epsilons.tolist(), strict=True))
    charged = ledger.charged.tolist()

    def by_requirement(budgets: IntArray, what: str) -> dict[Key, int]:
        kind = getattr(budgets, "dtype", type(budgets).__name__)
        fits = isinstance(budgets, np.ndarray) and budgets.dtype == np.int64 and budgets.shape == (len(keys),)
        expect(fits, f"{what} of one int64 for each of {len(keys)} rows", f"{kind} {np.shape(budgets)}", slot)
        expect(bool((budgets >= 0).all()), f"{what} of nothing below 0", budgets.tolist(), slot)
        return {key: value for key, value, pays in zip(keys, budgets.tolist(), charged, strict=True) if pays}

    return AskedBudgets(
        slot,
        None if probe is None else by_requirement(probe, "a probe"),
        offer if isinstance(offer, Idle) else by_requirement(offer, "an offer"),
        {key: size for key, size, pays in zip(keys, ledger.sizes.tolist(), charged, strict=True) if pays},
        level,
    )


def _frozen(history: History) -> tuple[Any, ...]:
    """What a policy could have changed in place."""
    if not isinstance(history, History):
        raise Broken("a history", type(history).__name__)
    parts = history.last_charges.tolist(), history.measurement.tolist(), repr(history.memory)
    return history.slot, history.last_fresh, *parts
