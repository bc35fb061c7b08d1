"""Mechanisms that never look first: their budgets are known beforehand, so all slots are drawn at once."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO, response_probability
from wevent.experiments.reproduce.replicated.draws import (
    choose_thresholds,
    laplace,
    laplace_reach,
    sampling_probabilities,
    strictest,
)
from wevent.experiments.reproduce.replicated.replicates import ReplicatedRun, Replicates


def uniform(replicates: Replicates, generator: np.random.Generator, *, shared: bool) -> ReplicatedRun:
    """ε // w in every slot: the strictest for all (`uniform`), or each class its own through SM (`pbu`)."""
    budgets = _every_slot(replicates, shared)
    thresholds = choose_thresholds(budgets, replicates.sizes.astype(np.float64)).epsilon
    run = ReplicatedRun.empty(replicates)
    run.releases[:] = sampled(replicates, sampling_probabilities(budgets, thresholds), generator)
    run.releases += laplace(generator, thresholds[:, None], run.releases.shape)
    run.fresh[:] = True
    run.charges[:] = budgets
    run.reach[:] = laplace_reach(thresholds)[:, None]
    return run


def sample(replicates: Replicates, generator: np.random.Generator) -> ReplicatedRun:
    """The whole of the smallest ε at slots 1, 1 + w, 1 + 2w, …; repeated between."""
    window, nano = strictest(replicates)
    run = ReplicatedRun.empty(replicates)
    for replicate in range(len(replicates)):
        epsilon = nano[replicate : replicate + 1] / NANO
        due = np.arange(0, replicates.slots, int(window[replicate]))
        fresh = replicates.truth[due, replicate] + laplace(generator, epsilon, (len(due), replicates.cells))
        run.releases[:, replicate] = fresh[np.arange(replicates.slots) // int(window[replicate])]
        run.fresh[due, replicate] = True
        run.charges[due, replicate] = nano[replicate]
        run.reach[:, replicate] = laplace_reach(epsilon)
    return run


def randomized(replicates: Replicates, generator: np.random.Generator, *, shared: bool) -> ReplicatedRun:
    """Randomized response with ε // w in every slot, drawn at class level (spec 9): `lbu` and `plbu`."""
    budgets = _every_slot(replicates, shared)
    cells = replicates.cells
    run = ReplicatedRun.empty(replicates)
    uniform_law = np.full(cells + 1, 1.0 / (cells + 1))
    for replicate in range(len(replicates)):
        truths = np.array([response_probability(budget, cells) for budget in budgets[replicate].tolist()]) / 2.0**64
        lies = (1.0 - truths) / cells
        users = replicates.sizes[replicate]
        for chunk in _chunks(replicates, cells):
            answers = replicates.counts[chunk, replicate].astype(np.int64)
            absent = users - answers.sum(axis=2)
            everyone = np.concatenate([answers, absent[:, :, None]], axis=2)
            kept = generator.binomial(everyone, np.maximum(truths - lies, 0.0)[:, None])
            reports = kept + generator.multinomial((everyone - kept).sum(axis=2), uniform_law)
            estimates = (reports[:, :, :-1] - (users * lies)[:, None]) / (truths - lies)[:, None]
            run.releases[chunk, replicate] = estimates.sum(axis=1)
        variance = float((users * lies * (1.0 - lies) / (truths - lies) ** 2).sum())
        run.reach[:, replicate] = NormalDist().inv_cdf(0.975) * math.sqrt(variance)
    run.fresh[:] = True
    run.charges[:] = budgets
    return run


def sampled(replicates: Replicates, probabilities: FloatArray, generator: np.random.Generator) -> FloatArray:
    """SM_s for all slots at once with constant probabilities per replicate and class: sums over classes."""
    if (probabilities >= 1.0).all():
        return replicates.truth
    total = np.zeros_like(replicates.truth)
    for group in range(probabilities.shape[1]):  # class by class: a quarter of the memory
        counts, chance = replicates.counts[:, :, group], probabilities[:, group, None]
        total += counts if (chance >= 1.0).all() else generator.binomial(counts, chance)
    return total


def _every_slot(replicates: Replicates, shared: bool) -> IntArray:
    if not shared:
        return replicates.nanos // replicates.windows
    window, nano = strictest(replicates)
    return np.broadcast_to((nano // window)[:, None], replicates.sizes.shape).copy()


def _chunks(replicates: Replicates, cells: int) -> list[slice]:
    width = max(1, 4_000_000 // (replicates.sizes.shape[1] * (cells + 1)))
    return [slice(start, start + width) for start in range(0, replicates.slots, width)]
