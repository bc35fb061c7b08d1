"""Bugs of budgets: policies that count wrong, behind no gate, and a gate that lets pass what it should not (spec 4 and 8)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.broken_policies import TRAPS, AddingLedger, HugeOffer, Trap, UngatedLedger
from tests.zoo.bug import Bug, Subject, Undone, together
from wevent.auditing.audit_subject import AuditSubject, build_subject
from wevent.auditing.exact.cases import LIVED, WIDE, World
from wevent.core.budget import MAX_EPSILON, NANO
from wevent.core.estimators import Sampling
from wevent.core.ledger import Ledger
from wevent.core.mechanism import Estimator, NoiseSource, Plan, Policy
from wevent.core.permit import Permit
from wevent.core.requirements import Population, Requirement
from wevent.publisher.publisher import Publisher


def rebuilt(
    name: str,
    mechanism: str,
    *,
    policy: Callable[[], Policy] | None = None,
    estimator: Callable[[Population], Estimator] | None = None,
    ledger: Callable[..., Ledger] | None = None,
    **options: Any,
) -> AuditSubject:
    """A mechanism as it is shipped, with one of its pieces replaced by another."""

    def make(population: Population, cells: int, noise: NoiseSource | None) -> Publisher:
        publisher = Publisher(population, cells, mechanism, noise=noise, **options)
        if policy is not None:
            publisher._pieces = replace(publisher._pieces, policy=policy())
        if estimator is not None:
            publisher._pieces = replace(publisher._pieces, estimator=estimator(population))
        if ledger is not None:
            chosen = publisher._options
            given = {"sensitivity": chosen.sensitivity, "cells_per_user": chosen.max_cells_per_user}
            publisher._ledger = ledger(population, **given)
        return publisher

    return AuditSubject(name, make, options)


def _trapped(name: str, sentence: str, origin: str, trap: str, mechanism: str) -> Bug:
    """A broken policy of the tests of the gate, without the gate."""
    kept: Trap = TRAPS[trap]

    def subject(policy: Callable[[], Policy]) -> Subject:
        one = rebuilt(name, mechanism, policy=policy, ledger=UngatedLedger, refund=kept.refund)
        return Subject(mechanism=one, population=kept.population, script=kept.script)

    return Bug(
        name=name,
        sentence=sentence,
        origin=origin,
        broken=subject(kept.broken),
        healthy=subject(kept.correct),
        audits=("journal", "exact", "black box"),
    )


class LargestBudget(Sampling):
    """Measures with as much as everybody offers, up to what an epsilon may be."""

    def plan(self, permit: Permit) -> Plan:
        threshold = min(int(permit.budgets.min()), MAX_EPSILON * NANO)
        error = 2.0 * (permit.sensitivity * NANO / threshold) ** 2 if threshold else np.inf
        return Plan(threshold, error, np.minimum(permit.budgets, threshold))


def _wrapping(ledger: Callable[..., Ledger]) -> Subject:
    one = rebuilt(
        "offer that wraps",
        "pbd",
        policy=HugeOffer,
        estimator=lambda population: LargestBudget(),
        ledger=ledger,
        refund=True,
    )
    return Subject(mechanism=one, population=Population({Requirement(4, "0.8"): 100}), script="pppp")


def short_ring() -> Undone:
    """The ledger keeps charges for 64 slots, also of wider windows."""
    open_next = Ledger._open_next

    def forgetting(self: Ledger) -> None:
        if self.slot >= 64:
            wide = self.windows > 64
            place = self._offsets + (self.slot - 63) % self.windows
            self._sums -= self._charges[:, place] * wide
            self._charges[:, place] *= ~wide
        open_next(self)

    return together((Ledger, "_open_next", forgetting))


def lone_forgotten() -> Undone:
    """An update drops rows with one member or none that are in no new population, whatever they owe."""
    update = Ledger.update

    def forgetting(self: Ledger, population: Population, keep: Any = None) -> Any:
        self._sums[:, self.sizes <= 1] = 0
        return update(self, population, keep)

    return together((Ledger, "update", forgetting))


def _ledger(world: World, undone: Undone = nullcontext, script: str = "") -> Subject:
    return Subject(
        undone=undone, mechanism=build_subject("pbd"), population=world.population, life=world.life, script=script
    )


SPENDING = (
    _trapped(
        "spending forgotten after a publication",
        "Absorption forgets its last publication and absorbs from slot 0 for ever.",
        "the published research code, where a field that held it was overwritten (specification, section 12)",
        "forgets its last publication",
        "pba",
    ),
    _trapped(
        "window one short",
        "Distribution adds up the charges of w − 2 slots instead of w − 1.",
        "an off-by-one: the open slot is one of the w",
        "window one slot short, in the sum",
        "pbd",
    ),
    _trapped(
        "nullified slots ignored",
        "Absorption takes the shares of skipped slots and gives none back after the publication.",
        "Algorithm 5 of the paper without its nullified slots",
        "nullified slots ignored",
        "pba",
    ),
    _trapped(
        "dissimilarity not charged",
        "The probe is measured in every slot, and publications distribute the whole ε all the same.",
        "the dissimilarity taken for free, as if it were public",
        "dissimilarity charge skipped",
        "pbd",
    ),
    _trapped(
        "refund that keeps fractional shares",
        "After a refund a charge of 1.9 shares nullifies as if it were one.",
        "▲ of section 8 of the specification: k is rounded up",
        "shares rounded down after a refund",
        "pba",
    ),
    Bug(
        name="offer that wraps the gate",
        sentence="The gate adds probe and publication before it compares: an offer near 2^63 wraps below zero and passes.",
        origin="a repair: gate, the parts are added before they are compared",
        broken=_wrapping(AddingLedger),
        healthy=_wrapping(Ledger),
        audits=("journal", "exact", "black box"),
    ),
    Bug(
        name="charges forgotten after 64 slots",
        sentence="The ledger keeps the charges of 64 slots, and a window of 70 begins anew within itself.",
        origin="a review: a ring of fixed length, or a bit mask",
        broken=_ledger(WIDE, short_ring(), script="p" * 72),
        healthy=_ledger(WIDE, script="p" * 72),
        audits=("journal", "exact"),
    ),
    Bug(
        name="charges of a class of one or none forgotten",
        sentence="A class without its last member loses its charges at the next update, and returns with a whole budget.",
        origin="a review: an update that keeps rows with members only",
        broken=_ledger(LIVED, lone_forgotten()),
        healthy=_ledger(LIVED),
        audits=("exact",),
    ),
)
