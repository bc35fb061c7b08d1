"""Deliberately broken mechanisms, and the doubles that show who stops them ("Must show" 2).

Every policy here makes a mistake that somebody could make (forgetting the last publication somebody did: spec 12). Each
is put behind the real gate, which must refuse, and behind `UngatedLedger`, which refuses nothing, to show that the
independent checker sees. `Trap` holds what makes the mistake cost privacy: a population and the adversary's script.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wevent
from wevent.core.estimators import Sampling
from wevent.core.ledger import Ledger
from wevent.core.mechanism import History, NoOffer, Policy, PolicyInput
from wevent.core.permit import Reservation
from wevent.core.policies import Absorption, Distribution
from wevent.core.postprocess import LastValue

# --- doubles of the gate ----------------------------------------------------------------------------------------------


class WatchedLedger(Ledger):
    """The real gate, which also remembers what it refused (the publisher turns a refusal into a repeated slot)."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.refusals: list[tuple[int, wevent.InsufficientBudget]] = []

    def reserve(self, probe: Any, publication: Any, level: int = 0) -> Reservation:
        try:
            return super().reserve(probe, publication, level)
        except wevent.InsufficientBudget as refusal:
            self.refusals.append((self.slot, refusal))
            raise


class UngatedLedger(Ledger):
    """No gate: every slot is reserved from fresh, empty books. What is charged is still written down."""

    def __init__(self, population: wevent.Population, **options: Any) -> None:
        super().__init__(population, **options)
        self._blank = lambda: Ledger(population, **options)

    def reserve(self, probe: Any, publication: Any, level: int = 0) -> Reservation:
        self._live = self._blank().reserve(probe, publication, level)
        return self._live


class ProbeForgettingLedger(Ledger):
    """A gate with a hole: probes are permitted and measured, but never written into the books."""

    def commit(self, reservation: Reservation | None, publication_charges: Any) -> None:
        if reservation is not None:
            reservation = self.reserve(None, reservation.publication_budgets)
        super().commit(reservation, publication_charges)


class AddingLedger(Ledger):
    """A gate that adds before it compares: a sum of two huge offers wraps, and what is below zero passes."""

    def reserve(self, probe: Any, publication: Any, level: int = 0) -> Reservation:
        budgets = self._checked(probe), self._checked(publication)
        exceeding = budgets[0] + budgets[1] > self._remaining
        if exceeding.any():
            row = int(exceeding.argmax())
            asked = int(budgets[0][row]) + int(budgets[1][row])
            raise wevent.InsufficientBudget(self.rows[row], asked, int(self._remaining[row]))
        permits = None if probe is None else self._permit(budgets[0]), self._permit(budgets[1], level)
        self._live = Reservation(self.slot, budgets, permits)
        return self._live


# --- broken policies --------------------------------------------------------------------------------------------------


class View:
    """A ledger as a deluded policy sees it: some things are different, everything else is the ledger's."""

    def __init__(self, ledger: PolicyInput, **delusions: Any) -> None:
        self._ledger = ledger
        self._delusions = delusions

    def __getattr__(self, name: str) -> Any:
        return self._delusions[name] if name in self._delusions else getattr(self._ledger, name)


class ForgetfulAbsorption(Absorption):
    """Forgets its last publication, as the authors' published Java does (spec 12): absorbs from slot 0 for ever."""

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        return ledger.shares * np.minimum(history.slot, ledger.windows)


class ShortSumDistribution(Distribution):
    """A window one slot short: sums the publication charges of w − 2 slots instead of w − 1."""

    def __init__(self) -> None:
        self._past: dict[int, Any] = {}

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        if history.last_fresh:
            self._past[history.last_fresh] = history.last_charges
        spent = np.zeros_like(ledger.windows)
        for slot, charges in self._past.items():
            spent = spent + np.where(history.slot - slot <= ledger.windows - 2, charges, 0)
        return super().offer(View(ledger, publication_spent=spent), history)


class ShortWindow:
    """A window one slot short: takes ε / (2·(w − 1)) for the share of a slot, for probes and publications."""

    def __init__(self) -> None:
        self._policy = Absorption()

    def _short(self, ledger: PolicyInput) -> View:
        windows = np.maximum(ledger.windows - 1, 1)
        nothing = np.zeros_like(windows)  # and trusts its own block argument
        return View(ledger, windows=windows, shares=ledger.epsilons // (2 * windows), publication_spent=nothing)

    def probe(self, ledger: PolicyInput) -> Any:
        return self._policy.probe(self._short(ledger))

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        return self._policy.offer(self._short(ledger), history)


class FreeProbe(Distribution):
    """Skips the dissimilarity charge in its own accounts: looks with a share, then distributes the whole ε."""

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        return super().offer(View(ledger, halves=ledger.epsilons), history)


class SilentProbe(FreeProbe):
    """Skips the dissimilarity charge by reserving a probe of nothing and hoping to look all the same."""

    def probe(self, ledger: PolicyInput) -> Any:
        return np.zeros_like(ledger.shares)


class NoProbe(Distribution):
    """Skips the dissimilarity charge by not reserving a probe at all, in a mechanism that looks first."""

    def probe(self, ledger: PolicyInput) -> Any:
        return None


class SmallestBound(Absorption):
    """Nullifies by the smallest instead of the largest bound: max(t − l − (k_g − 1), 0) shares as printed in the paper.

    A class whose block is not over gets 0 shares, and with them a new block of its own: the old one is forgotten.
    """

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        taken = np.maximum(-(-history.last_charges // ledger.shares), 1)  # −1 before the first: one share
        if history.slot - history.last_fresh <= int(taken.min()) - 1:
            return NoOffer.NULLIFIED
        return ledger.shares * np.clip(history.slot - history.last_fresh - (taken - 1), 0, ledger.windows)


class SmallestBoundUnclipped(SmallestBound):
    """The same without max(…, 0): asks for a negative budget, which would give charges back."""

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        taken = np.maximum(-(-history.last_charges // ledger.shares), 1)
        if history.slot - history.last_fresh <= int(taken.min()) - 1:
            return NoOffer.NULLIFIED
        return ledger.shares * np.minimum(history.slot - history.last_fresh - (taken - 1), ledger.windows)


class IgnoredNullification(Absorption):
    """Absorbs the shares of skipped slots and never gives them back: no slot after a publication is nullified."""

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        return ledger.shares * np.minimum(history.slot - history.last_fresh, ledger.windows)


class HugeOffer(Distribution):
    """Offers so much that a share on top of it wraps around 64 bits."""

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        return np.iinfo(np.int64).max - ledger.shares + 1


class RoundedDownShares(Absorption):
    """With a refund, k_g = floor(charge / share): a charge of 1.9 shares owns the block of one."""

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        taken = np.maximum(history.last_charges // ledger.shares, 1)
        if history.slot - history.last_fresh <= int(taken.max()) - 1:
            return NoOffer.NULLIFIED
        return ledger.shares * np.minimum(history.slot - history.last_fresh - (taken - 1), ledger.windows)


class KeptShares(Absorption):
    """With a refund, keeps the shares that came back and adds them to its next offer: their slots have gone by."""

    def __init__(self) -> None:
        self._offered: dict[int, Any] = {}

    def offer(self, ledger: PolicyInput, history: History) -> Any:
        taken = np.maximum(-(-history.last_charges // ledger.shares), 1)
        if history.slot - history.last_fresh <= int(taken.max()) - 1:
            return NoOffer.NULLIFIED
        kept = self._offered[history.last_fresh] - taken if history.last_fresh else 0
        shares = np.minimum(history.slot - history.last_fresh - (taken - 1) + kept, ledger.windows)
        self._offered[history.slot] = shares
        return ledger.shares * shares


# --- what makes them cost privacy -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trap:
    """A broken policy, the correct one it is a mutation of, and a stream in which the difference overspends."""

    broken: Callable[[], Policy]
    correct: Callable[[], Policy]
    sizes: dict[wevent.Requirement, int]
    script: str  # one letter per slot: p forces a publication, s a skip
    refund: bool = False

    @property
    def population(self) -> wevent.Population:
        return wevent.Population(self.sizes)

    @property
    def decisions(self) -> list[bool]:
        return [letter == "p" for letter in self.script]


def mechanism(name: str, policy: Callable[[], Policy]) -> wevent.Mechanism:
    """A row as pbd's and pba's, with another policy."""
    return wevent.Mechanism(
        name,
        "for tests only",
        policy=lambda declared, options: policy(),
        estimator=lambda options: Sampling(),
        smoother=lambda options: LastValue(),
        threshold="error",
    )


def _sizes(*classes: tuple[int, object, int]) -> dict[wevent.Requirement, int]:
    return {wevent.Requirement(window, epsilon): size for window, epsilon, size in classes}


_MIXED = _sizes((4, "0.8", 100), (6, "1.001", 50))
# One user with w = 3 and shares of 0.1 beside many with w = 1 and a share of 0.19: when the one is offered 2 shares or
# more, OBS chooses θ = 0.19, so the one is charged 1.9 shares and the rest is refunded.
_REFUNDED = _sizes((3, "0.6", 1), (1, "0.38", 1000))

TRAPS = {
    "forgets its last publication": Trap(ForgetfulAbsorption, Absorption, _MIXED, "pppppppp"),
    "window one slot short, in the sum": Trap(ShortSumDistribution, Distribution, _MIXED, "pppppppp"),
    "window one slot short, in the share": Trap(ShortWindow, Absorption, _MIXED, "pppppppp"),
    "dissimilarity charge skipped": Trap(FreeProbe, Distribution, _MIXED, "pppppppp"),
    "nullified slots ignored": Trap(IgnoredNullification, Absorption, _MIXED, "ssspppp"),
    "nullified by the smallest bound": Trap(
        SmallestBound, Absorption, _sizes((2, "0.8", 50), (4, "0.8", 50)), "ssspspppp"
    ),
    "shares rounded down after a refund": Trap(RoundedDownShares, Absorption, _REFUNDED, "sppppp", refund=True),
    "shares kept after a refund": Trap(KeptShares, Absorption, _REFUNDED, "sspppp", refund=True),
}
