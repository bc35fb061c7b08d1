"""The first release: nothing is known yet, so cells tell each other what levels are likely (empirical Bayes, spec 11.3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.core.mechanism import Measurement
from wevent.core.smoothers.likelihood import corrected_variance, laplace_on_gaussian

_ROUNDS = 30


class FirstLook(NamedTuple):
    """Level, its variance, and the probability that the cell is empty, per cell."""

    level: FloatArray
    variance: FloatArray
    null: FloatArray


def first_look(measurement: Measurement) -> FirstLook:
    """Levels from a mixture of zero and half-normals of doubling widths, whose weights are fitted to all cells by EM."""
    values, noise = measurement.values, measurement.error.variance
    deviation, scale = noise**0.5, (noise / 2.0) ** 0.5
    top = max(2.0, float(np.abs(values).max()))
    doublings = np.arange(-2, max(1, math.ceil(math.log2(top / deviation))) + 2)
    widths = np.concatenate([[0.0], deviation * 2.0**doublings])
    prior_variance = np.repeat(widths[:, None] ** 2 + 1e-6 * noise, len(values), axis=1)
    log_density, score, information = laplace_on_gaussian(np.tile(values, (len(widths), 1)), prior_variance, scale)
    log_density[1:] += np.where(values > 0.0, 0.5, -0.5)  # levels are not negative: the mass is on the right side
    density = np.exp(log_density - log_density.max(axis=0))

    start = np.ones(len(widths))
    start[0] = 2.0
    start /= start.sum()
    weights = start
    for _ in range(_ROUNDS):
        membership = weights[:, None] * density
        membership /= membership.sum(axis=0)
        weights = (membership.sum(axis=1) + start) / (len(values) + 1)

    present = membership[1:] / np.maximum(membership[1:].sum(axis=0), 1e-300)
    mean = (prior_variance * score)[1:]
    spread = corrected_variance(prior_variance, information, 0.0, scale)[1:]
    level = (present * mean).sum(axis=0)
    variance = (present * (spread + (mean - level) ** 2)).sum(axis=0)  # around the level: nothing cancels
    return FirstLook(np.maximum(level, 0.0), variance, np.clip(membership[0], 1e-6, 1.0 - 1e-6))
