"""Test doubles: noise whose draws are forced, extreme or fail, and policies and smoothers that are watched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.checks.subject import expect, expect_same
from wevent.core.arrays import IntArray
from wevent.core.mechanism import (
    Estimate,
    History,
    Measurement,
    Mechanism,
    NoOffer,
    Planner,
    Policy,
    PolicyInput,
    Smoother,
    Split,
)
from wevent.core.options import Options
from wevent.core.permit import NoisePermit, ResponsePermit, SamplingPermit, redeem
from wevent.core.requirements import Requirement
from wevent.noise.seeded import SeededNoise

HUGE = 2**40  # far above any threshold, far below the ends of 64 bits
ENDS = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**53 + 1, 0, 1, -1)

Key = tuple[int, int]  # (window in slots, epsilon in nano-epsilons)


class Adversary(SeededNoise):
    """Seeded noise whose probe draws (size one) are pushed up or down by a coin, to force any publish/skip pattern."""

    def __init__(self, seed: int, publish: float) -> None:
        super().__init__(seed)
        self._coin = np.random.default_rng(seed + 1)
        self._publish = publish

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Draw; a draw of size one is a probe's, since every stream of the checks has more cells."""
        draws = super().laplace(permit, size)
        if size == 1:
            draws += HUGE if self._coin.random() < self._publish else -HUGE
        return draws


class ScriptedDraws:
    """Noise from a list, again and again, that keeps every record; probes (size one) draw from a list of their own.

    Attributes:
        fails: whether every draw raises after its permit was redeemed.
    """

    seeded = True

    def __init__(self, draws: Iterable[int], probes: Iterable[int] = (HUGE,), *, mirrored: bool = False) -> None:
        self._draws = itertools.cycle(draws)
        self._probes = itertools.cycle(probes)
        self._mirrored = mirrored
        self.fails = False

    def force(self, probe: int) -> None:
        """Set what the next probes draw."""
        self._probes = itertools.cycle([probe])

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Return the next numbers of the list."""
        self._redeem(permit, NoisePermit)
        source = self._probes if size == 1 else self._draws
        return np.array(list(itertools.islice(source, size)), dtype=np.int64)

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        """Keep every record."""
        self._redeem(permit, SamplingPermit)
        return counts.copy()

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Return the true answers; mirrored, every answer from the other end."""
        self._redeem(permit, ResponsePermit)
        return (counts[:, ::-1] if self._mirrored else counts).copy()

    def _redeem(self, permit: Any, kind: Any) -> None:
        redeem(permit, kind)
        if self.fails:
            raise OSError("no entropy")


@dataclass(frozen=True)
class AskedBudgets:
    """Budgets that a policy asked for in one slot, by requirement, in plain integers; without rows that are not charged.

    Attributes:
        slot: the slot.
        probe: e¹, None without a probe.
        offer: e², or why there is none.
        members: registered users.
        level: how much of each e² goes into an anchor.
    """

    slot: int
    probe: dict[Key, int] | None
    offer: dict[Key, int] | NoOffer
    members: dict[Key, int]
    level: int = 0


class WatchedPolicy:
    """Record what a policy asks for, and check that it is a function of its arguments.

    Args:
        policy: the policy that lives through the stream.
        again: makes a new one, without a past.
        seen: where to write.
    """

    def __init__(self, policy: Policy, again: Callable[[], Policy], seen: list[AskedBudgets]) -> None:
        self._policy, self._again, self._seen = policy, again, seen
        self._probe: IntArray | None = None
        self._failed = ""

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        """Return the policy's probe."""
        self._probe = self._policy.probe(ledger)
        return self._probe

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | Split | NoOffer:
        """Return the policy's offer; a new policy must offer the same, and the history must not change."""
        expect(not self._failed, f"the plan after a publication fails: {self._failed}", history.slot)
        before = _frozen(history)
        offer = self._policy.offer(ledger, history)
        asked = _asked(history.slot, ledger, self._probe, offer)
        fresh = self._again()
        repeated = _asked(history.slot, ledger, fresh.probe(ledger), fresh.offer(ledger, history))
        expect_same(before, _frozen(history), "the policy changes the history", history.slot)
        expect_same(repeated, asked, "the policy has a memory of its own and asks for", history.slot)
        self._seen.append(asked)
        return offer


class WatchedPlanner(WatchedPolicy):
    """The same for a policy that plans ahead. A failed plan is reported in the next slot: the step would hide it."""

    def replan(self, ledger: PolicyInput, history: History) -> Any:
        """Return the policy's plan."""
        policy = self._policy
        assert isinstance(policy, Planner)
        try:
            return policy.replan(ledger, history)
        except Exception as error:
            self._failed = f"{type(error).__name__}: {error}"
            raise


class WatchedSmoother:
    """Record where a smoother raises or publishes what is not finite: the step would hide it.

    Args:
        smoother: the smoother.
        failures: where to write.
    """

    def __init__(self, smoother: Smoother, failures: list[str]) -> None:
        self._smoother, self._failures = smoother, failures
        self.start, self.dump, self.load = smoother.start, smoother.dump, smoother.load

    def advance(self, state: Any, measurement: Measurement | None) -> tuple[Any, Estimate]:
        """Return the smoother's estimate."""
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
    """Return the mechanism's maker of policies, watched."""

    def make(declared: tuple[Requirement, ...], options: Options) -> Policy:
        policy = row.policy(declared, options)
        kind = WatchedPlanner if isinstance(policy, Planner) else WatchedPolicy
        return kind(policy, lambda: row.policy(declared, options), seen)

    return make


def _asked(slot: int, ledger: PolicyInput, probe: IntArray | None, offer: IntArray | Split | NoOffer) -> AskedBudgets:
    level = offer.level if isinstance(offer, Split) else 0
    offer = offer.budgets if isinstance(offer, Split) else offer
    expect(type(level) is int and level >= 0, f"the level {level!r} is no whole number of nano-epsilons", slot)
    keys = list(zip(ledger.windows.tolist(), ledger.epsilons.tolist(), strict=True))
    charged = ledger.charged.tolist()

    def by_requirement(budgets: IntArray, what: str) -> dict[Key, int]:
        fits = isinstance(budgets, np.ndarray) and budgets.dtype == np.int64 and budgets.shape == (len(keys),)
        expect(fits, f"{what} is not one int64 for each of {len(keys)} rows", slot)
        expect(bool((budgets >= 0).all()), f"{what} is below 0: {budgets.tolist()}", slot)
        return {key: value for key, value, pays in zip(keys, budgets.tolist(), charged, strict=True) if pays}

    return AskedBudgets(
        slot,
        None if probe is None else by_requirement(probe, "a probe"),
        offer if isinstance(offer, NoOffer) else by_requirement(offer, "an offer"),
        {key: size for key, size, pays in zip(keys, ledger.sizes.tolist(), charged, strict=True) if pays},
        level,
    )


def _frozen(history: History) -> tuple[Any, ...]:
    """Return what a policy could have changed in place."""
    parts = history.last_charges.tolist(), history.measurement.tolist(), repr(history.memory)
    return history.slot, history.last_fresh, *parts
