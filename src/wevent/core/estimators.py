"""Measure a slot: permit + counts + noise → measurement. Each class says what it charges and why.

`Sampling` is the paper's mechanism (section 4.1; spec 5 and 6), `Weighting` and `CalibratedSum` leave nobody out
(spec 11.1 and 11.8), `RandomizedResponse` is the local model (spec 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO, least_threshold, response_probability
from wevent.core.mechanism import ErrorModel, Measurement, NoiseSource, Plan
from wevent.core.permit import (
    WEIGHT_BITS,
    Permit,
    SamplingPermit,
    WeightingPermit,
    integer_weights,
    largest_budget,
    split_budgets,
    suffices,
    weighted_losses,
)


def randomize(answer: int, *, cells: int, budget: int, draw_bits: Callable[[int], int]) -> int:
    """Return one report out of 0 … cells, where `cells` means absent.

    The truth is kept with probability p = e^ε/(e^ε + d), floored to 64 bits; otherwise each of the d other answers is
    equally likely, by rejection. Charges the user `budget` nano-epsilons: p/q ≤ e^ε for any two answers.

    Args:
        answer: the true cell, or `cells` if absent.
        cells: d.
        budget: ε of this slot in nano-epsilons.
        draw_bits: gives an integer of that many random bits.
    """
    if draw_bits(64) < response_probability(budget, cells):
        return answer
    width = (cells - 1).bit_length()
    other = draw_bits(width) if width else 0
    while other >= cells:
        other = draw_bits(width)
    return other + (other >= answer)


def unbiased(reports: npt.NDArray[np.int64], users: Any, truths: Any, cells: int) -> npt.NDArray[np.float64]:
    """Return (reports_j − m·q)/(p − q) with q = (1 − p)/d: unbiased for the true counts; post-processing.

    Args:
        reports: how often each cell was reported.
        users: m, the number of reports received (absent ones included).
        truths: p as it was used, after rounding.
        cells: d.
    """
    lies = (1.0 - truths) / cells
    estimates: npt.NDArray[np.float64] = (reports - users * lies) / (truths - lies)
    return estimates


class Threshold(NamedTuple):
    """The chosen θ in nano-epsilons (0: no class has enough budget) and the error expected of it."""

    nano: int
    error: float


def reporting_errors(
    budgets: npt.ArrayLike, sizes: npt.ArrayLike, *, sensitivity: int = 1, cells_per_user: int = 1
) -> tuple[IntArray, FloatArray]:
    """Return all candidate thresholds, ascending, and the reporting error of each (paper, Definitions 6 and 7; spec 5).

    For threshold θ, p_g = expm1(e_g/k)/expm1(θ/k) below θ and 1 from it on:
    error(θ) = Σ k·n_g·p_g(1 − p_g) + (Σ k·n_g(1 − p_g))² + 2(Δ/θ)².

    One sort, then prefix sums of n, n·E and n·E² with E = expm1(e/k): O(G). E is scaled by the largest exp, so nothing
    overflows. Classes with equal budgets contribute nothing to each other (p = 1), so ties need no care; a class with
    budget 0 has E = 0, counts fully in the bias and is no candidate.
    """
    budget_array = np.asarray(budgets, dtype=np.int64)
    order = budget_array.argsort(kind="stable")
    ascending = budget_array[order]
    users = np.asarray(sizes, dtype=np.float64)[order] * cells_per_user
    epsilons = ascending / NANO
    exponents = epsilons / cells_per_user
    growth = np.exp(exponents - exponents[-1:]) * -np.expm1(-exponents)  # expm1(e/k)/exp(max/k)

    first = int(ascending.searchsorted(1))  # budgets of 0 are no candidates
    growth_sums = _sums_before(users * growth)[first:]
    square_sums = _sums_before(users * growth * growth)[first:]
    user_sums = _sums_before(users)[first:]
    growth, epsilons = growth[first:], epsilons[first:]

    kept = growth_sums / growth
    variance = kept - square_sums / (growth * growth)
    bias = user_sums - kept
    noise = sensitivity / epsilons
    return ascending[first:], np.maximum(variance, 0.0) + bias * bias + 2.0 * noise * noise


def _sums_before(values: FloatArray) -> FloatArray:
    """Return for each entry the sum of those before it."""
    sums = np.empty_like(values)
    sums[0] = 0.0
    np.cumsum(values[:-1], out=sums[1:])
    return sums


def choose_threshold(permit: Permit) -> Threshold:
    """Return the threshold with the smallest reporting error, the smallest such if several: OBS (paper, Algorithm 1; spec 5).

    Pure accuracy: any threshold is private, because the sampling probabilities follow from it. Floats are fine here.

    It reads the permit's budgets e_g and the registered class sizes n_g (never the number present), Δ and k. The sizes are
    those of users who are counted in their own class (spec 15.3): a user in transition does not move θ. A budget so small
    that its noise would be cut off (`least_threshold`) is no candidate.
    """
    return _choose(
        permit.budgets.tobytes(), permit.threshold_sizes.tobytes(), permit.sensitivity, permit.cells_per_user
    )


@lru_cache(maxsize=64)  # budgets stay the same in most slots: nothing was charged, nothing left a window
def _choose(budgets: bytes, sizes: bytes, sensitivity: int, cells_per_user: int) -> Threshold:
    candidates, errors = reporting_errors(
        np.frombuffer(budgets, dtype=np.int64),
        np.frombuffer(sizes, dtype=np.int64),
        sensitivity=sensitivity,
        cells_per_user=cells_per_user,
    )
    first = int(candidates.searchsorted(least_threshold(sensitivity)))
    if first == len(candidates):
        return Threshold(0, math.inf)
    best = first + int(errors[first:].argmin())
    return Threshold(int(candidates[best]), float(errors[best]))


class Sampling:
    """Sample every class down to one threshold, sum, add integer noise."""

    def plan(self, permit: Permit) -> Plan:
        """Return θ = OBS(e); class g loses min(e_g, θ)."""
        choice = choose_threshold(permit)
        return Plan(choice.nano, choice.error, np.minimum(permit.budgets, choice.nano))

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Sample, then disturb (SM_s, SM_d). Charges class g at most e_g; its true loss is min(e_g, θ)."""
        spend = permit.for_sampling(plan.threshold)
        values = sample(counts, spend, noise)
        values += noise.laplace(spend.noise, len(values))
        return Measurement(values, laplace_error(spend.noise.scale), users=int(permit.sizes.sum()))


def sample(counts: IntArray, spend: SamplingPermit, noise: NoiseSource) -> IntArray:
    """Draw SM_s: Binomial(C[g, j], p_g), summed over classes; p_g = 1 keeps everyone without a draw."""
    kept = counts if spend.keeps_all else noise.binomial(counts, spend)
    total: IntArray = np.add.reduce(kept, axis=0)
    return total


def laplace_error(scale: float) -> ErrorModel:
    """Return the variance of integer Laplace noise, 2q/(1 − q)² with q = exp(−1/scale)."""
    return ErrorModel("laplace", scale, 2.0 * math.exp(-1.0 / scale) / math.expm1(-1.0 / scale) ** 2)


class Weighting:
    """Weigh each class by its budget, sum, add integer noise, scale back with κ; nobody is left out (spec 11.1).

    Privacy. The released vector is Σ_g A_g·C[g, ·] plus integer Laplace noise of scale at least Δ·2^20/θ. Under the
    neighbouring relation one user of class g changes the sum by at most A_g·Δ in L1, so the probability of any outcome
    changes by a factor of at most exp(A_g·Δ / scale) ≤ exp(A_g·θ/2^20) ≤ exp(e_g), since A_g ≤ e_g·2^20/θ. Multiplying by
    κ is post-processing. Where every A_g is 2^20 or 0, that factor is taken out of weights and scale alike. No sampling
    variance and no waste: class g loses its own e_g, not min(e_g, θ) of a common threshold.

    Unbiased if cells, presence and classes are independent; otherwise the relative bias of a cell is its users' mean
    weight over everyone's mean weight, minus 1.
    """

    def plan(self, permit: Permit) -> Plan:
        """Return θ = max e over classes with members; the error expected is the noise, 2(Δ/ē)², ē the mean over users."""
        return plan_sum(permit.budgets, permit)

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Weigh and disturb. Charges class g at most e_g; its true loss is A_g·θ/2^20 (above)."""
        spend = permit.for_weighting()
        values, error = measure_sum(spend, permit.sizes, counts, noise)
        weights = spend.weights / spend.unit
        mean = weighted_mean(weights, permit.sizes)
        composition = max(0.0, weighted_mean(weights * weights, permit.sizes) / mean**2 - 1.0)
        return Measurement(values, error, composition, int(permit.sizes.sum()))


def plan_sum(budgets: IntArray, permit: Permit) -> Plan:
    """Return error and cost of a weighted sum with these of the permit's budgets (spec 11.1)."""
    threshold = largest_budget(budgets, permit.sizes)
    if not suffices(threshold, permit.sensitivity):
        return Plan(0, float("inf"), np.zeros_like(budgets))
    weights = integer_weights(budgets, threshold)
    mean = weighted_mean(weights / 2**WEIGHT_BITS, permit.sizes)
    error = 2.0 * (permit.sensitivity * NANO / (threshold * mean)) ** 2
    return Plan(threshold, error, weighted_losses(weights, threshold))


def measure_sum(
    spend: WeightingPermit, sizes: IntArray, counts: IntArray, noise: NoiseSource
) -> tuple[FloatArray, ErrorModel]:
    """Return Σ_g A_g·C[g, ·] plus noise, times κ/2^20, and its law (spec 11.1). Class g loses at most `spend.losses[g]`."""
    total = spend.weights @ counts
    total += noise.laplace(spend.noise, len(total))
    scale = 1.0 / (weighted_mean(spend.weights / spend.unit, sizes) * spend.unit)  # κ/2^20: post-processing
    law = laplace_error(spend.noise.scale)
    return total.astype(np.float64) * scale, ErrorModel("laplace", law.scale * scale, law.variance * scale**2)


def weighted_mean(values: npt.NDArray[np.float64], sizes: IntArray) -> float:
    """Return the mean over registered users; over classes if there are none."""
    users = int(sizes.sum())
    return float(values @ sizes) / users if users else float(values.mean())


class CalibratedSum:
    """Weigh, sum and disturb once or twice, as the permit's level says: a main sum, and an anchor in which all count alike.

    Privacy. Class g's budget e_g is split into a_g = min(level, e_g) and e_g − a_g, whole nano-epsilons. Each part is a
    weighted sum with noise of its own (see `Weighting`): the anchor costs class g at most a_g and the main sum at most
    e_g − a_g, so the slot costs e_g, by composition (spec 11.8). Which part is measured is decided before counts are read.
    All else is free.
    """

    def plan(self, permit: Permit) -> Plan:
        """Return θ and the expected error of the main sum, or of the anchor where there is none; the losses of both."""
        anchor, main = (plan_sum(budgets, permit) for budgets in split_budgets(permit.budgets, permit.level))
        return (main if main.threshold else anchor)._replace(losses=anchor.losses + main.losses)

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Charges class g at most min(level, e_g) for the anchor and the rest of e_g for the main sum (spec 11.8)."""
        spend = permit.for_split()
        users = int(permit.sizes.sum())
        anchor = None if spend.anchor is None else measure_sum(spend.anchor, permit.sizes, counts, noise)
        if spend.main is None:
            assert anchor is not None  # the plan found θ > 0
            return Measurement(*anchor, 0.0, users, anchor)
        lean = _lean(spend.main, permit.sizes)
        values, error = measure_sum(spend.main, permit.sizes, counts, noise)
        return Measurement(values, error, float(lean @ lean), users, anchor, lean)


def _lean(spend: WeightingPermit, sizes: IntArray) -> FloatArray:
    """Return how the weights differ from equal ones: its square is their CV² over users."""
    weights = spend.weights / spend.unit
    members = sizes if sizes.any() else np.ones_like(sizes)
    lean: FloatArray = (weights / weighted_mean(weights, sizes) - 1.0) * np.sqrt(members / members.sum())
    return lean + 0.0  # no −0.0: a journal has none


class RandomizedResponse:
    """Generalized randomized response over the cells plus "absent", estimated per class and summed.

    Drawn at class level here: the law of the reports is that of every registered user sending exactly one.
    """

    def plan(self, permit: Permit) -> Plan:
        """Class g loses e_g. The largest budget of a class with members stands for the threshold."""
        return Plan(largest_budget(permit.budgets, permit.sizes), math.inf, permit.budgets)

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Draw every user's report, then estimate. Charges class g e_g."""
        spend = permit.for_response(counts.shape[1])
        users = permit.sizes[:, None]
        answers = np.hstack([counts, users - counts.sum(axis=1, keepdims=True)])  # the absent answer too
        reports = noise.respond(answers, spend)
        heard = permit.budgets > 0  # without a budget an answer says nothing
        users, truths = users[heard], spend.float_truths()[heard, None]
        values = unbiased(reports[heard, :-1], users, truths, spend.cells).sum(axis=0)
        lies = (1.0 - truths) / spend.cells
        variance = float((users * lies * (1.0 - lies) / (truths - lies) ** 2).sum())
        return Measurement(np.asarray(values), ErrorModel("normal", math.sqrt(variance), variance))
