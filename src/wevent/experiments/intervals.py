"""Means over repeats with their 95 % intervals of Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wevent.errors import InvalidOption


class Interval(NamedTuple):
    """A mean and its 95 % interval; the ends are NaN with fewer than two repeats."""

    mean: float
    low: float
    high: float


def known(value: float) -> float | None:
    """Return the value; None for NaN."""
    return None if math.isnan(value) else value


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent repeats.

    Raises:
        InvalidOption: for several repeats without scipy.
    """
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if len(array) < 2:
        return Interval(mean, math.nan, math.nan)
    half = _quantile(len(array) - 1) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return Interval(mean, mean - half, mean + half)


def ratio_interval(left: Sequence[float], right: Sequence[float]) -> Interval:
    """Return the typical left/right, repeat by repeat: a paired interval on the logarithms.

    Repeat r of both had the same people and requirements, so what they have in common cancels out.
    """
    tiny = np.finfo(np.float64).tiny
    logs = np.log(np.maximum(left, tiny)) - np.log(np.maximum(right, tiny))
    inner = mean_interval(logs.tolist())
    return Interval(math.exp(inner.mean), *(math.exp(min(end, 700.0)) for end in inner[1:]))


def _quantile(degrees: int) -> float:
    """Return the two-sided 95 % quantile of Student's t."""
    try:
        from scipy.special import stdtrit
    except ImportError:
        raise InvalidOption(
            "scipy is not installed; intervals over repeats need it.", "Run pip install 'wevent[experiments]'."
        ) from None
    return float(stdtrit(degrees, 0.975))
