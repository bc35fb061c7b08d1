"""What spec 8 says every mechanism spends, in the order of spec 15.1, re-computed slot by slot in plain integers.

Independent of wevent: dictionaries of charges by slot, sums over slot ranges written as in the spec, no ledger. Given
the adversary's wish it also predicts the outcome, so a test compares charges *and* outcomes of every slot.

Spec 8 leaves two things open that matter only when classes leave and return; both are marked ● below.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from tests.support.window_checker import RequirementKey

Offers = dict[RequirementKey, int]
PERSONAL = ("pbd", "pba", "pbu", "plbu")
SHARED = ("bd", "ba", "uniform", "sample", "lbu")
PROBING = ("pbd", "pba", "bd", "ba")
LOCAL = ("lbu", "plbu")
NULLIFIED = None  # instead of offers


def share(requirement: RequirementKey) -> int:
    """ε // (2·w)."""
    window, nano = requirement
    return nano // (2 * window)


def ordered(offers: Offers) -> Offers:
    """Rule 3 of spec 15.1: a class is offered at most what every class is offered that it is at least as strict as."""
    return {
        (window, nano): min(offer for (wide, much), offer in offers.items() if window >= wide and nano <= much)
        for window, nano in offers
    }


class Rule(Protocol):
    """One row of spec 8's table."""

    def offers(self, slot: int, members: Collection[RequirementKey]) -> Offers | None:
        """e² of every member class; None: nullified."""

    def published(self, slot: int, charges: Offers) -> None:
        """Take note of a publication and what it charged."""


class Distribution:
    """rem_g = max(0, ε_g//2 − Σ of own publication charges in the last w_g − 1 slots); e²_g = rem_g // 2."""

    def __init__(self) -> None:
        self.history: dict[int, Offers] = {}

    def offers(self, slot: int, members: Collection[RequirementKey]) -> Offers | None:
        return {one: max(0, one[1] // 2 - self.spent(slot, one)) // 2 for one in members}

    def spent(self, slot: int, requirement: RequirementKey) -> int:
        window = requirement[0]
        recent = range(max(1, slot - window + 1), slot)  # w − 1 slots
        return sum(self.history[past].get(requirement, 0) for past in recent if past in self.history)

    def published(self, slot: int, charges: Offers) -> None:
        self.history[slot] = dict(charges)


class Absorption(Distribution):
    """Nullified while t − l ≤ max_g(k_g − 1), else min(t − l − (k_g − 1), w_g) shares; l is the last fresh slot.

    k_g = max(1, ceil(charge_g / share_g)), which without a refund is the number of shares offered. l = 0 and k_g = 1
    before the first publication and for a class that did not exist at l.

    ● Only classes of the population in force are asked; one that left after l and came back still has its k_g.
    ● A class that was away may come back with charges that this forgets; its offer is cut to what is left of its
      publication half. For a class that was always there no cut is allowed: the block argument must suffice.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last = 0
        self.taken: dict[RequirementKey, int] = {}  # k_g of the classes that existed at the last publication
        self.present: set[RequirementKey] = set()
        self.away: set[RequirementKey] = set()

    def offers(self, slot: int, members: Collection[RequirementKey]) -> Offers | None:
        self.away |= self.present - set(members)
        self.present |= set(members)
        bounds = [self.taken.get(one, 1) - 1 for one in members]
        if slot - self.last <= max(bounds):
            return NULLIFIED
        offers = {}
        for one in members:
            known = one in self.taken
            shares = min(slot - self.last - (self.taken[one] - 1) if known else slot, one[0])
            offers[one] = share(one) * shares
            if one in self.away:
                offers[one] = min(offers[one], max(0, one[1] // 2 - self.spent(slot, one)))
        return offers

    def published(self, slot: int, charges: Offers) -> None:
        super().published(slot, charges)
        self.last = slot
        self.taken = {one: max(1, -(-charge // share(one))) for one, charge in charges.items()}


class EverySlot:
    """ε // w in every slot."""

    def offers(self, slot: int, members: Collection[RequirementKey]) -> Offers | None:
        return {one: one[1] // one[0] for one in members}

    def published(self, slot: int, charges: Offers) -> None:
        pass


class OncePerWindow:
    """The whole ε at slots 1, 1 + w, 1 + 2w, …; nothing in between."""

    def offers(self, slot: int, members: Collection[RequirementKey]) -> Offers | None:
        return {one: one[1] if slot % one[0] == 1 % one[0] else 0 for one in members}

    def published(self, slot: int, charges: Offers) -> None:
        pass


_RULES = {
    "pbd": Distribution,
    "bd": Distribution,
    "pba": Absorption,
    "ba": Absorption,
    "pbu": EverySlot,
    "uniform": EverySlot,
    "plbu": EverySlot,
    "lbu": EverySlot,
    "sample": OncePerWindow,
}


class SpecBudgets:
    """The spending of one built-in mechanism, by the book.

    Args:
        mechanism: its name.
        declared: the requirements declared at the start; shared budgets are (min ε, max w) over them, for good.
        refund: whether a publication is charged min(e², θ) instead of e².
    """

    def __init__(self, mechanism: str, declared: Iterable[RequirementKey], *, refund: bool = False) -> None:
        declared = list(declared)
        self.rule: Rule = _RULES[mechanism]()
        self.probes = mechanism in PROBING
        self.refund = refund
        self.strictest = (
            (max(window for window, _ in declared), min(nano for _, nano in declared)) if mechanism in SHARED else None
        )

    def slot(
        self, slot: int, members: Collection[RequirementKey], *, publish: bool, threshold: int | None
    ) -> tuple[str, dict[RequirementKey, tuple[int, int]], set[int]]:
        """The outcome of a slot, its (probe, publication) charges, and the budgets that θ may be chosen from.

        Args:
            slot: its number, from 1.
            members: the classes of the population in force.
            publish: what the adversary forces.
            threshold: θ that the mechanism reports; only a refund depends on it.
        """
        spenders = members if self.strictest is None else [self.strictest]
        offers = self.rule.offers(slot, spenders)
        outcome, charges = "repeated", dict.fromkeys(spenders, 0)
        if offers is None:
            outcome = "nullified"
        elif any((offers := ordered(offers)).values()) and (publish or not self.probes):
            outcome = "fresh"
            charges = {one: min(offer, threshold) if self.refund else offer for one, offer in offers.items()}
            self.rule.published(slot, charges)
        expected = {}
        for one in members:
            spender = self.strictest or one
            expected[one] = (share(spender) if self.probes else 0, charges[spender])
        return outcome, expected, set((offers or {}).values()) - {0}
