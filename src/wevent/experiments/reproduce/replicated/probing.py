"""Mechanisms that look first (PWSM, paper, Algorithm 2): one loop over slots, all replicates in step.

The probe's budget is the same in every slot, so all its samples and noise are drawn beforehand; a publication draws its
own sample and noise when a replicate publishes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.experiments.reproduce.replicated.draws import (
    Thresholds,
    choose_thresholds,
    laplace,
    laplace_reach,
    sampling_probabilities,
    strictest,
)
from wevent.experiments.reproduce.replicated.replicates import ReplicatedRun, Replicates
from wevent.experiments.reproduce.replicated.steady import sampled


class _Rows(NamedTuple):
    """The budgets the loop runs on: one row per replicate, one column per class (one column if shared)."""

    sizes: FloatArray
    windows: IntArray
    nanos: IntArray

    @property
    def shares(self) -> IntArray:
        return self.nanos // (2 * self.windows)


_MOST = np.iinfo(np.int64).max


class _Policy(Protocol):
    """The policies of `wevent.core.policies` with a replicate axis."""

    def offer(self, slot: int) -> tuple[IntArray, BoolArray | None]:
        """e² per replicate and class, and which replicates are nullified (None: none)."""

    def publish(self, slot: int, who: IntArray, budgets: IntArray) -> None:
        """Replicates `who` published with these budgets."""

    def advance(self, slot: int) -> bool:
        """Close the slot; whether offers may have changed."""


class _Distribution:
    """`wevent.core.policies`: half of what the window has left."""

    def __init__(self, rows: _Rows, slots: int) -> None:
        self._halves = rows.nanos // 2
        self._spent = np.zeros_like(rows.nanos)
        self._charges = np.zeros((slots + 1, *rows.nanos.shape), dtype=np.int64)  # by slot; slot 0 stays empty
        self._flat = self._charges.reshape(-1)
        self._places = np.arange(rows.nanos.size).reshape(rows.nanos.shape)
        self._windows = rows.windows
        self._first = int(rows.windows.min())
        self._published = False

    def offer(self, slot: int) -> tuple[IntArray, BoolArray | None]:
        return np.maximum(self._halves - self._spent, 0) >> 1, None

    def publish(self, slot: int, who: IntArray, budgets: IntArray) -> None:
        self._charges[slot, who] = budgets
        self._spent[who] += budgets
        self._published = True

    def advance(self, slot: int) -> bool:
        changed, self._published = self._published, False
        if slot + 1 <= self._first:
            return changed
        leaving = np.maximum(slot + 1 - self._windows, 0) * self._places.size + self._places
        retired = self._flat.take(leaving)
        if not retired.any():
            return changed
        self._spent -= retired
        return True


class _Absorption:
    """`wevent.core.policies`: the shares of skipped slots, nullified afterwards."""

    def __init__(self, rows: _Rows, slots: int) -> None:
        self._shares = rows.shares
        self._windows = rows.windows
        self._last = np.zeros((len(rows.nanos), 1), dtype=np.int64)
        self._taken = np.ones_like(rows.nanos)
        self._blocked = np.zeros(len(rows.nanos), dtype=np.int64)  # nullified up to this slot

    def offer(self, slot: int) -> tuple[IntArray, BoolArray | None]:
        shares = np.minimum(slot - self._last - (self._taken - 1), self._windows)
        return self._shares * np.maximum(shares, 0), slot <= self._blocked

    def publish(self, slot: int, who: IntArray, budgets: IntArray) -> None:
        taken = np.maximum(-(-budgets // self._shares[who]), 1)
        self._taken[who] = taken
        self._last[who] = slot
        self._blocked[who] = slot + taken.max(axis=1) - 1

    def advance(self, slot: int) -> bool:
        return True


def distribution(
    replicates: Replicates, generator: np.random.Generator, *, shared: float | None = None
) -> ReplicatedRun:
    """`pbd`; or `bd` with one budget for all and a threshold of `shared` times Δ/e."""
    rows = _rows(replicates, shared is not None)
    return _run(replicates, rows, _Distribution(rows, replicates.slots), generator, shared)


def absorption(replicates: Replicates, generator: np.random.Generator, *, shared: float | None = None) -> ReplicatedRun:
    """`pba`; or `ba` with one budget for all and a threshold of `shared` times Δ/e."""
    rows = _rows(replicates, shared is not None)
    return _run(replicates, rows, _Absorption(rows, replicates.slots), generator, shared)


def _rows(replicates: Replicates, shared: bool) -> _Rows:
    if not shared:
        return _Rows(replicates.sizes.astype(np.float64), replicates.windows, replicates.nanos)
    window, nano = strictest(replicates)
    everyone = replicates.sizes.sum(axis=1, keepdims=True).astype(np.float64)
    return _Rows(everyone, window[:, None], nano[:, None])


def _run(
    replicates: Replicates, rows: _Rows, policy: _Policy, generator: np.random.Generator, shared: float | None
) -> ReplicatedRun:
    run = ReplicatedRun.empty(replicates)
    run.charges[:] = rows.shares  # the probe, in every slot
    probes = _probes(replicates, rows, generator)
    counts = replicates.truth if shared is not None else replicates.counts
    last = np.zeros((len(replicates), replicates.cells))
    reach = np.full((len(replicates), 1), np.nan)
    changed = True
    stricter = (rows.windows[:, :, None] >= rows.windows[:, None]) & (rows.nanos[:, :, None] <= rows.nanos[:, None])
    for index in range(replicates.slots):
        offers, nullified = policy.offer(index + 1)
        budgets = np.where(stricter, offers[:, None], _MOST).min(axis=2)  # rule 3 of spec 15.1: the gate orders offers
        if changed:
            thresholds = _thresholds(budgets, rows, shared)
            limits = _limits(thresholds, shared)
        distances = np.abs(probes.samples[index] - last).sum(axis=1) + probes.noise[index]
        wanted = distances > limits * replicates.cells
        if nullified is not None:
            wanted &= ~nullified
        if 1 in wanted.tobytes():
            who = np.flatnonzero(wanted)
            chosen, epsilons = budgets[who], thresholds.epsilon[who]
            last[who] = _measure(counts[index, who], chosen, epsilons, generator, shared is not None)
            reach[who] = laplace_reach(epsilons)[:, None]
            run.fresh[index] = wanted
            run.charges[index, who] += chosen
            policy.publish(index + 1, who, chosen)
        run.releases[index] = last
        run.reach[index] = reach
        changed = policy.advance(index + 1)
    return run


class _Probes(NamedTuple):
    """What the probes of all slots saw: c̃ and the noise of the distance (spec 7)."""

    samples: FloatArray
    noise: IntArray


def _probes(replicates: Replicates, rows: _Rows, generator: np.random.Generator) -> _Probes:
    budgets = rows.shares
    thresholds = choose_thresholds(budgets, rows.sizes).epsilon
    noise = laplace(generator, thresholds, (replicates.slots, len(replicates)))
    if budgets.shape[1] == 1:
        return _Probes(replicates.truth, noise)
    return _Probes(sampled(replicates, sampling_probabilities(budgets, thresholds), generator), noise)


def _thresholds(budgets: IntArray, rows: _Rows, shared: float | None) -> Thresholds:
    if shared is None:
        return choose_thresholds(budgets, rows.sizes)
    epsilons = budgets[:, 0] / NANO
    return Thresholds(epsilons, epsilons)  # one budget: nothing to choose


def _limits(thresholds: Thresholds, shared: float | None) -> FloatArray:
    """How large the dissimilarity must be; never reached without a budget."""
    if shared is None:
        return np.sqrt(thresholds.error)
    with np.errstate(divide="ignore"):
        return shared / thresholds.epsilon


def _measure(
    counts: FloatArray, budgets: IntArray, thresholds: FloatArray, generator: np.random.Generator, shared: bool
) -> FloatArray:
    """SM for the replicates that publish."""
    if shared:
        kept: FloatArray = counts
    else:
        chances = sampling_probabilities(budgets, thresholds)[:, :, None]
        drawn = counts if (chances >= 1.0).all() else generator.binomial(counts.astype(np.int64), chances)
        kept = drawn.sum(axis=1)
    return kept + laplace(generator, thresholds[:, None], kept.shape)
