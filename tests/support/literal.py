"""The paper's algorithms, literally: one budget, one coin and one account per user. Plain and slow.

OBS (Algorithm 1), SM and DC (Algorithm 3), PBD (Algorithm 4) and PBA (Algorithm 5) are written down user by user as
printed, with the corrections of spec 8 and 12: integer nano-epsilons, the cap of w shares, independent samples for
dissimilarity and publication, integer noise. Offers have the order of spec 15.1. BD and BA (Kellaris 2014) are the same
with the strictest requirement for every user and the threshold Δ/ε. Nothing is imported from wevent, and no two users ever
share a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

ABSENT = -1
NANO = 10**9


@dataclass
class User:
    """One person's requirement and everything ever charged to them, slot by slot."""

    window: int
    nano: int
    probe_charges: list[int] = field(default_factory=list)
    publication_charges: list[int] = field(default_factory=list)

    @property
    def share(self) -> int:
        """ε / (2·w), rounded down."""
        return self.nano // (2 * self.window)


class LiteralRelease(NamedTuple):
    """What one slot published and what it charged each user."""

    outcome: str
    histogram: np.ndarray
    probe_charges: list[int]
    publication_charges: list[int]
    threshold: int | None


class LiteralPublisher:
    """PBD, PBA, BD or BA over users.

    Args:
        requirements: (window, nano-epsilons) of each user.
        cells: d.
        mechanism: "pbd", "pba", "bd" or "ba".
        generator: where coins and noise come from.
        sensitivity: Δ.
        refund: charge min(e², θ) instead of e².
    """

    def __init__(
        self,
        requirements: Sequence[tuple[int, int]],
        cells: int,
        mechanism: str,
        generator: np.random.Generator,
        *,
        sensitivity: int = 1,
        refund: bool = False,
    ) -> None:
        if mechanism in ("bd", "ba"):  # everybody gets the strictest requirement
            strictest = max(window for window, _ in requirements), min(nano for _, nano in requirements)
            requirements = [strictest] * len(requirements)
        self.users = [User(window, nano) for window, nano in requirements]
        self.cells = cells
        self.absorbs = mechanism in ("pba", "ba")
        self.personal = mechanism in ("pbd", "pba")
        self.generator = generator
        self.sensitivity = sensitivity
        self.refund = refund
        self.slot = 0
        self.last_fresh = 0
        self.last_release = np.zeros(cells, dtype=np.int64)

    def step(self, locations: np.ndarray, force: bool | None = None) -> LiteralRelease:
        """One slot (Algorithm 2).

        Args:
            locations: the cell of each user, or ABSENT.
            force: take this decision instead of comparing the dissimilarity.
        """
        self.slot += 1
        probe = [user.share for user in self.users]
        offer = self._absorbed() if self.absorbs else self._distributed()
        if offer is None:
            return self._repeat("nullified", probe)
        offer = self._ordered(offer)
        if not any(offer):
            return self._repeat("repeated", probe)
        threshold, error = self.choose(offer)
        limit = math.sqrt(error) if self.personal else self.sensitivity * NANO / threshold
        publish = self.dissimilarity(locations, probe) > limit if force is None else force
        if not publish:
            return self._repeat("repeated", probe)
        counts = self.sample(locations, offer, threshold)
        self.last_release = counts + self.noise(threshold, self.cells)
        self.last_fresh = self.slot
        charges = [min(budget, threshold) for budget in offer] if self.refund else offer
        self._charge(probe, charges)
        return LiteralRelease("fresh", self.last_release, probe, charges, threshold)

    def _ordered(self, offer: list[int]) -> list[int]:
        """Spec 15.1, rule 3: a user is offered at most what everybody with a looser requirement, or the same, is offered."""
        offered = list(zip(self.users, offer, strict=True))
        return [
            min(budget for other, budget in offered if user.window >= other.window and user.nano <= other.nano)
            for user in self.users
        ]

    def choose(self, budgets: list[int]) -> tuple[int, float]:
        """OBS: try every different positive budget as the threshold; the smallest reporting error wins."""
        best, least = 0, math.inf
        for threshold in sorted({budget for budget in budgets if budget > 0}):
            kept = self.probabilities(budgets, threshold)
            sampling = float((kept * (1 - kept)).sum() + (1 - kept).sum() ** 2)
            error = sampling + 2 * (self.sensitivity * NANO / threshold) ** 2
            if error < least:
                best, least = threshold, error
        return best, least

    def probabilities(self, budgets: list[int], threshold: int) -> np.ndarray:
        """(exp(ε_i) − 1)/(exp(θ) − 1) for a user below the threshold, else 1."""
        ratio = np.expm1(np.array(budgets) / NANO) / math.expm1(threshold / NANO)
        return np.where(np.array(budgets) < threshold, ratio, 1.0)

    def sample(self, locations: np.ndarray, budgets: list[int], threshold: int) -> np.ndarray:
        """SM_s and Q: a coin for every user, then the histogram of those who stayed."""
        stays = self.generator.random(len(locations)) < self.probabilities(budgets, threshold)
        return np.bincount(locations[stays & (locations != ABSENT)], minlength=self.cells)

    def noise(self, threshold: int, size: int) -> np.ndarray:
        """SM_d's noise: whole parts of exponential numbers are geometric; the difference of two is integer Laplace."""
        scale = self.sensitivity * NANO / threshold
        draws = np.floor(self.generator.exponential(scale, (2, size)))
        return (draws[0] - draws[1]).astype(np.int64)

    def dissimilarity(self, locations: np.ndarray, budgets: list[int]) -> float:
        """DC: the mean distance of a sample of its own to the last release, with noise."""
        threshold, _ = self.choose(budgets)
        distance = np.abs(self.sample(locations, budgets, threshold) - self.last_release).sum()
        return float(distance + self.noise(threshold, 1)[0]) / self.cells

    def _distributed(self) -> list[int]:
        """PBD, line 5 and 6: half of what the last w_i − 1 slots left of the publication half."""
        offers = []
        for user in self.users:
            recent = user.publication_charges[-(user.window - 1) :] if user.window > 1 else []
            offers.append(max(0, user.nano // 2 - sum(recent)) // 2)
        return offers

    def _absorbed(self) -> list[int] | None:
        """PBA, lines 4 to 11: None while nullified, else min(t − l − t_{i,N}, w_i) shares."""
        nullified = []  # t_{i,N}
        for user in self.users:
            charge = user.publication_charges[self.last_fresh - 1] if self.last_fresh else user.share
            nullified.append(max(1, math.ceil(Fraction(charge, user.share))) - 1)
        since = self.slot - self.last_fresh
        if since <= max(nullified):
            return None
        return [
            user.share * min(since - blocked, user.window) for user, blocked in zip(self.users, nullified, strict=True)
        ]

    def _repeat(self, outcome: str, probe: list[int]) -> LiteralRelease:
        nothing = [0] * len(self.users)
        self._charge(probe, nothing)
        return LiteralRelease(outcome, self.last_release, probe, nothing, None)

    def _charge(self, probe: list[int], publication: list[int]) -> None:
        for user, one, two in zip(self.users, probe, publication, strict=True):
            user.probe_charges.append(one)
            user.publication_charges.append(two)
