"""How sure a mean over repeats is: 95 % intervals of Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Two-sided 95 % quantiles of Student's t for 1, 2, 3, … degrees of freedom; from 31 on the expansion below is exact
# to four digits.
_T95 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip


class Interval(NamedTuple):
    """A mean and its 95 % interval; the ends are NaN with fewer than two repeats."""

    mean: float
    low: float
    high: float


def t_quantile(degrees: int) -> float:
    """The two-sided 95 % quantile of Student's t."""
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    normal = 1.959964
    return (
        normal
        + (normal**3 + normal) / (4.0 * degrees)
        + (5 * normal**5 + 16 * normal**3 + 3 * normal) / (96.0 * degrees**2)
    )


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of independent repeats."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if len(array) < 2:
        return Interval(mean, math.nan, math.nan)
    half = t_quantile(len(array) - 1) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return Interval(mean, mean - half, mean + half)


def ratio_interval(left: Sequence[float], right: Sequence[float]) -> Interval:
    """The typical left/right, repeat by repeat: a paired interval on the logarithms.

    Repeat r of both had the same people and requirements, so what they have in common cancels out.
    """
    tiny = np.finfo(np.float64).tiny
    logs = np.log(np.maximum(left, tiny)) - np.log(np.maximum(right, tiny))
    inner = mean_interval(logs.tolist())
    return Interval(math.exp(inner.mean), *(math.exp(min(end, 700.0)) for end in inner[1:]))
