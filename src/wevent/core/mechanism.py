"""The seams of the core, and the mechanism: a row of a policy, an estimator and a smoother, with a probe or without.

A new mechanism is one row in the registry plus the piece that is new; the contract suite tests it unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy.typing as npt

from wevent.core.arrays import BoolArray, FloatArray, IntArray
from wevent.core.options import Options, ThresholdRule
from wevent.core.permit import NoisePermit, Permit, ResponsePermit, SamplingPermit
from wevent.core.requirements import Requirement


class NoOffer(Enum):
    """Why a policy offers no publication in a slot."""

    NULLIFIED = "nullified"
    NOT_DUE = "not due"


class PolicyInput(NamedTuple):
    """What a policy may read of the ledger in one slot: read-only numbers per row, and nothing that spends.

    Attributes:
        windows, epsilons: w_g, and ε_g in nano-epsilons.
        halves, shares: ε_g // 2, and ε_g // (2·w_g).
        sizes: registered users; 0 for a row without a class in the population.
        typical_sizes: the same, and 0 for requirements at the edges, which under 1 % of the users have.
        charged: whether the row can be charged now: it has a class in the population, or was pinned at the start.
        publication_spent: publication charges of the last w_g − 1 slots.
        forecast: what each row may charge so many slots from now if nothing is charged until then; rows × delays.
    """

    windows: IntArray
    epsilons: IntArray
    halves: IntArray
    shares: IntArray
    sizes: IntArray
    typical_sizes: IntArray
    charged: BoolArray
    publication_spent: IntArray
    forecast: Callable[[IntArray], IntArray]


@dataclass(slots=True)
class History:
    """Past outputs, all that survives a slot beside the ledger: public numbers only (spec 1).

    Attributes:
        slot: the open slot.
        last_fresh: the slot of the last publication, 0 before the first.
        last_charges: what each ledger row was charged for that publication; -1 if the row did not exist then.
        measurement: the raw values of the last publication, zeros before the first; what a probe compares with.
        smoothed: the smoother's state.
        memory: what a planning policy remembers, in plain types.
        turnover: users who joined plus users who left since the last publication; the measurement covers none of them.
    """

    slot: int
    last_fresh: int
    last_charges: IntArray
    measurement: npt.NDArray[Any]
    smoothed: Any
    memory: Any = None
    turnover: int = 0


def is_mostly_new(sizes: IntArray, history: History) -> bool:
    """Return whether the turnover since the last publication exceeds half of the registered users.

    The state of the filter then describes other users.
    """
    return 2 * history.turnover > max(int(sizes.sum()), 1)


class Split(NamedTuple):
    """An offer for two sums of one slot: budgets per row, and how much of each the anchor takes, nano-epsilons."""

    budgets: IntArray
    level: int


class Policy(Protocol):
    """When and how much: the budgets of a slot. Pure; sees the ledger and past outputs, never the counts."""

    def probe(self, ledger: PolicyInput) -> IntArray | None:
        """Return e¹ per row, or None: this mechanism never looks first."""

    def offer(self, ledger: PolicyInput, history: History) -> IntArray | Split | NoOffer:
        """Return e² per row, or why nothing is offered in this slot."""


@runtime_checkable
class Planner(Protocol):
    """A policy that plans ahead: asked after every publication what to remember. Pure, sees public numbers only."""

    def replan(self, ledger: PolicyInput, history: History) -> Any:
        """Return the new memory, in plain types; the history is that after the slot."""


class ErrorModel(NamedTuple):
    """The error of what is published: its law, its scale and its variance per cell.

    "laplace" and "normal" are the noise of one measurement; "estimate" is a filter's, over all there is to know.
    """

    law: Literal["laplace", "normal", "estimate"]
    scale: float
    variance: float


class Measurement(NamedTuple):
    """One slot, measured with noise.

    Attributes:
        values: a value per cell, on the scale of counts.
        error: the law of their noise.
        composition: CV² of the weights over users: a cell's classes may be another mix than everyone's (spec 11.1).
        users: registered users at the time; a count is at most that.
        anchor: a second measurement of the same slot in which all classes count alike, and the law of its noise.
        lean: per class the weight over the mean weight, minus 1, times the root of the class's part of the users: two
            measurements' weights err alike as far as these point the same way. None if it was not weighed, or not said.
    """

    values: npt.NDArray[Any]
    error: ErrorModel
    composition: float = 0.0
    users: int = 0
    anchor: tuple[FloatArray, ErrorModel] | None = None
    lean: FloatArray | None = None


class Plan(NamedTuple):
    """How a publication would be measured, known before any count is read.

    Attributes:
        threshold: θ in nano-epsilons; 0: nobody has enough budget, nothing can be measured.
        error: the squared error expected per cell.
        losses: what each class really loses; never above its budget.
    """

    threshold: int
    error: float
    losses: IntArray


class Estimator(Protocol):
    """How a slot is measured: permit + counts + noise → measurement."""

    def plan(self, permit: Permit) -> Plan:
        """Decide the threshold, without reading counts."""

    def measure(self, permit: Permit, plan: Plan, counts: IntArray, noise: NoiseSource) -> Measurement:
        """Measure the slot; uses up the permit."""


class Estimate(NamedTuple):
    """What is published for a slot: values per cell, their standard error (None before a measurement) and law."""

    values: FloatArray
    std_error: FloatArray | None
    error: ErrorModel | None


class Smoother(Protocol):
    """What is published from measurements. Pure post-processing: it costs nothing."""

    def start(self, cells: int, slot: int = 1) -> Any:
        """Return the state before the first slot that it sees, which has this number."""

    def advance(self, state: Any, measurement: Measurement | None) -> tuple[Any, Estimate]:
        """Take one slot's measurement, or None, and say what is published."""

    def dump(self, state: Any) -> Any:
        """Return the state in plain types (numbers, bytes, lists, dicts)."""

    def load(self, dumped: Any) -> Any:
        """Restore a state from `dump`."""


class NoiseSource(Protocol):
    """Where randomness comes from; accepts permits only, each for one draw: it calls `permit.redeem` before it draws."""

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Return integer Laplace noise: P(x) ∝ exp(−|x|/scale)."""

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        """Keep each of counts[g, j] records with probability p_g."""

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Return randomized responses of the users of each class: counts over cells plus "absent" in, reports out."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way to publish: one row of the registry.

    Attributes:
        name: how it is called everywhere.
        summary: one line for people who choose.
        policy: makes the policy from the requirements declared at the start and the options.
        estimator: makes the estimator from the options.
        smoother: makes the smoother from the options.
        threshold: how far the dissimilarity must exceed the expected error to publish: "error" is its root (the
            paper), "scale" the noise scale Δ/θ (Kellaris), "std" √2 times that. None: no probe, always publish.
        shared_budget: one budget for all declared classes, fixed at the start; every one of them is charged.
        local: users randomize their own reports; takes one cell per user.
        tracks: plans its releases from what the filter learnt; takes weighting and filter only.
    """

    name: str
    summary: str
    policy: Callable[[tuple[Requirement, ...], Options], Policy]
    estimator: Callable[[Options], Estimator]
    smoother: Callable[[Options], Smoother]
    threshold: ThresholdRule | None = None
    shared_budget: bool = False
    local: bool = False
    tracks: bool = False

    @property
    def probes(self) -> bool:
        """Whether it measures the dissimilarity before it decides to publish."""
        return self.threshold is not None
