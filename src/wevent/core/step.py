"""One slot: from budgets to a measurement (`step`), and from the measurement to what is published (`advance`).

The personalised window size mechanism PWSM (paper, Algorithm 2), with its private distance (Algorithm 3, DC; spec 7).

What comes after the draw cannot fail (spec 10): a smoother and a planner compute with floats from what was drawn. If some
draw made them raise, or give what is not finite, the slot would fail after its draw and be drawn anew, and what goes out
would depend on a draw that was thrown away. So there is always an estimate: in the last resort the measurement itself, with
the error it is known to have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.core.estimators import choose_threshold, sample
from wevent.core.ledger import Ledger
from wevent.core.limits import farthest_compared
from wevent.core.mechanism import (
    Estimate,
    Estimator,
    History,
    Measurement,
    NoiseSource,
    NoOffer,
    Plan,
    Planner,
    Policy,
    PolicyInput,
    Smoother,
    Split,
    is_mostly_new,
)
from wevent.core.options import ThresholdRule
from wevent.core.permit import Permit, Reservation
from wevent.errors import InsufficientBudget

OutcomeKind = Literal["published", "repeated", "nullified"]


@dataclass(frozen=True, slots=True)
class Assembled:
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


def step(pieces: Assembled, ledger: Ledger, history: History, counts: IntArray, noise: NoiseSource) -> Outcome:
    """Publish a fresh measurement or repeat the last one (paper, Algorithm 2).

    Reserves e¹ + e² for every class before a count is read. Charges e¹ in every slot that could reserve it, and for a
    publication e², or with `refund` what was really lost, raised by `Ledger.raise_charges`. Changes nothing: the caller
    commits the outcome.
    """
    view = ledger.view()
    probe = pieces.policy.probe(view)  # None: this mechanism never looks first
    offer = pieces.policy.offer(view, history)  # NoOffer: nullified, or not due
    budgets, level = offer if isinstance(offer, Split) else (None if isinstance(offer, NoOffer) else offer, 0)
    try:
        reservation = ledger.reserve(probe, budgets, level)  # what an anchor takes is part of the budgets
    except InsufficientBudget:
        return Outcome("repeated")  # refused: repeat, counts unread
    if reservation.publication is None:
        return Outcome("nullified" if offer is NoOffer.NULLIFIED else "repeated", reservation)
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


def advance(history: History, outcome: Outcome, pieces: Assembled, ledger: Ledger) -> tuple[History, Estimate]:
    """Return the history after the slot, and what is published for it. Post-processing of public numbers only.

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
    """Return how large the dissimilarity must be to be worth a publication."""
    assert reservation.publication is not None
    if rule is None or rule == "error":
        return math.sqrt(plan.error)  # the paper's sqrt(err)
    scale = reservation.publication.sensitivity * NANO / plan.threshold
    return scale if rule == "scale" else math.sqrt(2.0) * scale  # Kellaris' Δ/e², or the standard deviation


def compared(values: npt.NDArray[Any]) -> IntArray:
    """Return a measurement as the whole numbers that the next probes compare with: l.

    A probe adds whole noise to a whole distance, and the distance must not wrap: values beyond what any count can be are
    drawn in. Post-processing of what was published.
    """
    farthest = farthest_compared(len(values))
    if values.dtype != np.int64:
        values = np.rint(np.clip(np.nan_to_num(values), -farthest, farthest)).astype(np.int64)
    whole: IntArray = np.minimum(np.maximum(values, -farthest), farthest)
    return whole


def measure_dissimilarity(permit: Permit, counts: IntArray, last: IntArray, noise: NoiseSource) -> float | None:
    """Return dis = (1/d)·(Σ_j |c̃[j] − l[j]| + integer noise of scale Δ/θ), with c̃ sampled under θ = OBS(e¹).

    Charges e¹_g to class g: under the neighbouring relation one user's records change Σ_j |c̃ − l| by at most Δ, and the
    sample amplifies as in SM. ▲ The sample is used here and discarded; a publication draws its own.

    Returns:
        The noisy distance; None if no class has enough budget to look with.
    """
    choice = choose_threshold(permit)
    if choice.nano == 0:
        return None  # no class has enough budget to look with: never a reason to publish
    spend = permit.for_sampling(choice.nano)
    distance = int(np.add.reduce(np.abs(sample(counts, spend, noise) - last)))
    return (distance + int(noise.laplace(spend.noise, 1)[0])) / len(last)


def smooth(smoother: Smoother, history: History, measurement: Measurement | None) -> tuple[Any, Estimate]:
    """Return the smoother's next state and what is published, finite for every measurement.

    First from what the smoother knows (once more where the caller's numpy raises); if that fails, from this measurement
    alone, as if it were the first; if that fails too, the measurement as it is (without one, the last), and the smoother
    learns nothing from it. Live and replayed slots take the same way: it is a function of past outputs.
    """
    found = _advanced(smoother, history.smoothed, measurement)
    if found is None:
        with np.errstate(all="ignore"):
            found = _advanced(smoother, history.smoothed, measurement)
            if found is None and measurement is not None:
                found = _advanced(smoother, smoother.start(len(history.measurement), history.slot), measurement)
    return (history.smoothed, as_measured(history, measurement)) if found is None else found


def _advanced(smoother: Smoother, state: Any, measurement: Measurement | None) -> tuple[Any, Estimate] | None:
    """Return the smoother's step, or None if it failed or is not finite."""
    try:
        after, estimate = smoother.advance(state, measurement)
        held = estimate is state  # it was checked when it was new
        return (after, estimate) if held or _is_finite(estimate) else None
    except Exception:  # noqa: BLE001  whatever a draw can lead to, the slot goes on
        return None


def widened(estimate: Estimate, turnover: int) -> Estimate:
    """Return an estimate that knows nothing of so many people, who joined or left since the last publication.

    All of them may be in one cell, or none: half of their number as a further standard error makes a 95 % band wide enough
    for either. Public numbers only; what is measured or repeated as it was keeps the error of its noise.
    """
    law, std_error = estimate.error, estimate.std_error
    if not turnover or law is None or std_error is None or law.law != "estimate":
        return estimate
    more = (turnover / 2.0) ** 2
    with np.errstate(all="ignore"):  # no draw may make it fail where the caller's numpy raises
        variance = law.variance + more
        wide = _finite(np.sqrt(std_error**2 + more))
    return estimate._replace(std_error=wide, error=law._replace(scale=variance**0.5, variance=variance))


def plan_ahead(planner: Planner, ledger: PolicyInput, history: History) -> Any:
    """Return what a planner remembers; if it fails, what it remembered before."""
    with np.errstate(all="ignore"):
        try:
            return planner.replan(ledger, history)
        except Exception:  # noqa: BLE001  as there
            return history.memory


def as_measured(history: History, measurement: Measurement | None) -> Estimate:
    """Return a measurement as it is, with its own error; the last one's values without an error if there is none now."""
    if measurement is None:
        return Estimate(_finite(history.measurement), None, None)
    error = measurement.error
    deviation = _finite(np.full(len(measurement.values), error.variance)) ** 0.5
    return Estimate(_finite(measurement.values), _finite(deviation), error)


def _is_finite(estimate: Estimate) -> bool:
    """Return whether an estimate is finite: a sum is if all of it is, the fastest way to ask."""
    total = np.add.reduce(estimate.values)
    if estimate.std_error is not None:
        total = total + np.add.reduce(estimate.std_error)
    return math.isfinite(total)


def _finite(values: Any) -> FloatArray:
    finite: FloatArray = np.nan_to_num(np.asarray(values, dtype=np.float64))
    finite.setflags(write=False)
    return finite
