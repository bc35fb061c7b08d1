"""Thresholds and noise for many replicates at once; floats throughout, for simulation only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.budget import NANO
from wevent.experiments.reproduce.replicated.replicates import Replicates

_LEVEL = 0.95


class Thresholds(NamedTuple):
    """Per replicate: θ in epsilons (0: nobody has a budget) and the expected squared error."""

    epsilon: FloatArray
    error: FloatArray


def choose_thresholds(budgets: IntArray, sizes: FloatArray) -> Thresholds:
    """OBS for each row of budgets (spec 5): the prefix sums of `wevent.core.threshold` with one more axis."""
    rows = np.arange(len(budgets))[:, None]
    order = budgets.argsort(axis=1)
    epsilons = budgets[rows, order] / NANO
    users = sizes[rows, order]
    growth = np.exp(epsilons - epsilons[:, -1:]) * -np.expm1(-epsilons)
    weighted = users * growth
    squared = weighted * growth
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = (weighted.cumsum(axis=1) - weighted) / growth
        variance = kept - (squared.cumsum(axis=1) - squared) / (growth * growth)
        bias = users.cumsum(axis=1) - users - kept
        errors = np.maximum(variance, 0.0) + bias * bias + 2.0 / (epsilons * epsilons)
    errors[epsilons == 0.0] = np.inf
    best = errors.argmin(axis=1)
    return Thresholds(epsilons[rows[:, 0], best], errors[rows[:, 0], best])


def sampling_probabilities(budgets: IntArray, thresholds: FloatArray) -> FloatArray:
    """p_g = expm1(e_g)/expm1(θ) below θ, 1 from it on (spec 6)."""
    epsilons = np.minimum(budgets / NANO, thresholds[:, None])
    top = thresholds[:, None]
    probabilities: FloatArray = np.exp(epsilons - top) * np.expm1(-epsilons) / np.expm1(-top)
    return np.minimum(probabilities, 1.0)


def laplace(generator: np.random.Generator, epsilon: FloatArray, shape: tuple[int, ...]) -> IntArray:
    """Integer Laplace noise of scale 1/ε (Δ = 1); ε is broadcast to the shape."""
    success = -np.expm1(-epsilon)
    noise: IntArray = generator.geometric(success, shape) - generator.geometric(success, shape)
    return noise


def laplace_reach(epsilon: FloatArray) -> FloatArray:
    """Half the width of the 95 % interval of the noise, as `Release.interval` states it."""
    q = np.exp(-epsilon)
    return np.maximum(np.ceil(-np.log((1.0 - _LEVEL) * (1.0 + q) / 2.0) / epsilon) - 1.0, 0.0)


def strictest(replicates: Replicates) -> tuple[IntArray, IntArray]:
    """The largest window and the smallest epsilon (nano) of each replicate: what shared-budget mechanisms run on."""
    return replicates.windows.max(axis=1), replicates.nanos.min(axis=1)
