"""The null: the model of cells that hold no more than the noise hides (spec 11.5)."""

from __future__ import annotations

import numpy as np

from wevent.core.mechanism import Measurement
from wevent.core.smoothers.filter_state import SMALLEST, FilterState


def learn_null(state: FilterState, measurement: Measurement, pace: float) -> None:
    """What the cells of the null share although none of them shows it: pooled mean and variance, kept small.

    Args:
        state: changed in place.
        measurement: of all cells.
        pace: how quickly what was pooled is renewed, per release.
    """
    noise, empty = measurement.error.variance, state.weights[-1]
    precision = 1.0 / noise
    residual = measurement.values - state.null_mean
    held = float(empty.sum())
    sums = [
        precision * float((empty * measurement.values).sum()),
        precision * held,
        precision**2 * float((empty * (residual * residual - noise)).sum()),
        precision**2 * held,
    ]
    state.null_sums = state.null_sums * (1.0 - pace) + np.array(sums)
    total, weight, squares, square_weight = state.null_sums.tolist()
    mean = max(0.0, (total - weight**0.5) / max(weight, 1e-300))  # shrunk by one standard error
    state.null_mean = min(mean, 0.25 * noise**0.5)  # never more than the noise hides
    spread = max(SMALLEST, mean, squares / max(square_weight, 1e-300))
    state.null_variance = max(SMALLEST, min(spread, 25.0 * max(state.null_mean, SMALLEST), 0.25 * noise))
