"""One slot, from budgets to a measurement: the personalised window size mechanism PWSM (paper, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.budget import NANO
from wevent.core.dissimilarity import compared, measure_dissimilarity
from wevent.core.ledger import Ledger
from wevent.core.mechanism import (
    Estimate,
    Estimator,
    History,
    Idle,
    Measurement,
    NoiseSource,
    Plan,
    Planner,
    Policy,
    Smoother,
    Split,
    is_mostly_new,
)
from wevent.core.permit import Reservation
from wevent.core.settings import ThresholdRule
from wevent.core.total import plan_ahead, smooth, widened
from wevent.errors import InsufficientBudget

OutcomeKind = Literal["published", "repeated", "nullified"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A mechanism put together for one publisher.

    Attributes:
        policy, estimator, smoother: the pieces.
        rule: how far the dissimilarity must exceed the expected error; None without a probe.
        refund: whether a publication is charged what was really lost.
        planner: the policy, if it plans ahead.
    """

    policy: Policy
    estimator: Estimator
    smoother: Smoother
    rule: ThresholdRule | None
    refund: bool
    planner: Planner | None = None


class Outcome(NamedTuple):
    """What a slot came to: everything here is public once the slot is committed.

    Attributes:
        kind: published, repeated or nullified.
        reservation: what was set aside; None if the ledger refused.
        charges: publication charges per ledger row, as the ledger stores them; None without a publication.
        plan: how the publication was measured, or would have been.
        measurement: the fresh measurement, if any.
        dissimilarity: the noisy distance to the last publication, if it was measured.
    """

    kind: OutcomeKind
    reservation: Reservation | None = None
    charges: IntArray | None = None
    plan: Plan | None = None
    measurement: Measurement | None = None
    dissimilarity: float | None = None


def step(pieces: Pieces, ledger: Ledger, history: History, counts: IntArray, noise: NoiseSource) -> Outcome:
    """Publish a fresh measurement or repeat the last one (paper, Algorithm 2).

    Reserves e¹ + e² for every class before a count is read. Charges e¹ in every slot that could reserve it, and for a
    publication e², or with `refund` what was really lost, raised by `Ledger.raise_charges`. Changes nothing: the caller
    commits the outcome.
    """
    view = ledger.view()
    probe = pieces.policy.probe(view)  # None: this mechanism never looks first
    offer = pieces.policy.offer(view, history)  # Idle: nullified, or not due
    budgets, level = offer if isinstance(offer, Split) else (None if isinstance(offer, Idle) else offer, 0)
    try:
        reservation = ledger.reserve(probe, budgets, level)  # what an anchor takes is part of the budgets
    except InsufficientBudget:
        return Outcome("repeated")  # refused: repeat, counts unread
    if reservation.publication is None:
        return Outcome("nullified" if offer is Idle.NULLIFIED else "repeated", reservation)
    plan = pieces.estimator.plan(reservation.publication)
    if plan.threshold == 0:  # no class has enough budget
        return Outcome("repeated", reservation, plan=plan)

    dissimilarity = None
    if reservation.probe is not None:
        dissimilarity = measure_dissimilarity(reservation.probe, counts, history.measurement, noise)
        if dissimilarity is None or dissimilarity <= _limit(pieces.rule, plan, reservation):
            return Outcome("repeated", reservation, plan=plan, dissimilarity=dissimilarity)

    measurement = pieces.estimator.measure(reservation.publication, plan, counts, noise)
    charges = reservation.publication_budgets
    if pieces.refund:  # spec 8: class g really lost plan.losses[g] ≤ e²_g
        charges = ledger.raise_charges(ledger.with_classes(charges, plan.losses))
    return Outcome("published", reservation, charges, plan, measurement, dissimilarity)


def advance(history: History, outcome: Outcome, pieces: Pieces, ledger: Ledger) -> tuple[History, Estimate]:
    """The history after the slot, and what is published for it. Post-processing of public numbers only.

    ▲ Total: whatever was drawn, it returns finite numbers and raises nothing. A slot that fails after its draw would be
    drawn anew, and whether it fails must not depend on what was drawn (spec 10).

    What was learnt of others is forgotten when most people are new: a smoother then begins with this measurement.

    Rows that are not charged have no members: they did not exist at this publication. What a probe will compare with is
    the measurement itself, in whole numbers, whatever the smoother makes of it.
    """
    if outcome.measurement is not None and is_mostly_new(ledger.sizes, history):
        history = replace(history, smoothed=pieces.smoother.start(len(history.measurement), history.slot))
    smoothed, estimate = smooth(pieces.smoother, history, outcome.measurement)
    slot = history.slot + 1
    if outcome.measurement is None or outcome.charges is None:
        unchanged = history.last_fresh, history.last_charges, history.measurement
        after = History(slot, *unchanged, smoothed, history.memory, history.turnover)
        return after, widened(estimate, history.turnover)
    charges = np.where(ledger.charged, outcome.charges, -1)
    values = outcome.measurement.values if pieces.rule is None else compared(outcome.measurement.values)
    after = History(slot, history.slot, charges, values, smoothed, history.memory)
    if pieces.planner is not None:
        after.memory = plan_ahead(pieces.planner, ledger.view(), after)
    return after, estimate


def first_history(rows: int, cells: int, smoother: Smoother) -> History:
    """Before slot 1: nothing published, zeros to compare with."""
    return History(1, 0, np.full(rows, -1, dtype=np.int64), np.zeros(cells, dtype=np.int64), smoother.start(cells))


def _limit(rule: ThresholdRule | None, plan: Plan, reservation: Reservation) -> float:
    """How large the dissimilarity must be to be worth a publication."""
    assert reservation.publication is not None
    if rule is None or rule == "error":
        return math.sqrt(plan.error)  # the paper's sqrt(err)
    scale = reservation.publication.sensitivity * NANO / plan.threshold
    return scale if rule == "scale" else math.sqrt(2.0) * scale  # Kellaris' Δ/e², or the standard deviation
