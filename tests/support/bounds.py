"""The paper's error bounds as functions: Lemma 4.1 and Theorems 4.2 and 4.3, with the squares their proofs give.

All bounds are on the mean squared error of one cell. Budgets are plain floats here: these are formulas for planning and
for tests, nothing is spent by them. The printed theorems drop squares (ε_L for ε_L²) and count a share as ε/w where the
mechanisms use ε/(2w): the functions follow the proofs (spec 12).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from wevent.core.requirements import Population


def sampling_mechanism_bound(budgets: Sequence[float], sizes: Sequence[int], *, sensitivity: float = 1.0) -> float:
    """Lemma 4.1: the error of SM with the threshold from OBS, over classes with these budgets.

    min(2I²/min ε², (n − n_M)(n − n_M + 1/4) + 2I²/max ε²), n_M the users with the largest budget: OBS can only do
    better than its smallest and its largest candidate.
    """
    return _bound(min(budgets), max(budgets), _outside_largest(budgets, sizes), sensitivity)


def pbd_bound(population: Population, *, cells: int, publications: int) -> float:
    """Theorem 4.2: the average error per slot of PBD when at most `publications` fall into a window of min w slots.

    min(8/(d·ε_L)², Z + 8/(d·ε_R)²) + min(32(4^s − 1)/(3s·ε_L²), Z + 32(4^s − 1)/(3s·ε_R²)), where ε_L and ε_R are the
    smallest and largest ε/w and Z bounds the sampling error.
    """
    rates = _rates(population)
    growth = (4.0**publications - 1.0) / (3.0 * publications)
    return _dissimilarity_bound(rates, cells) + min(
        32.0 * growth / rates.smallest**2, rates.sampling_error + 32.0 * growth / rates.largest**2
    )


def pba_bound(population: Population, *, cells: int, skipped: int, nullified_error: float) -> float:
    """Theorem 4.3: the average error per slot of PBA when `skipped` slots precede each publication.

    A publication after α skipped slots is followed by α nullified ones, whose error depends on the data and is given.
    The k-th slot could have published k shares of ε/(2w), error at most min(8/(kε_L)², Z + 8/(kε_R)²); from the
    shortest window on the shares of a class may stop growing, so the bound stays at its value there.
    """
    rates = _rates(population)
    shortest = min(requirement.window for requirement in population.classes)
    growing = min(skipped + 1, shortest)
    harmonic = sum(1.0 / k**2 for k in range(1, growing + 1))
    published = min(
        8.0 * harmonic / rates.smallest**2, growing * rates.sampling_error + 8.0 * harmonic / rates.largest**2
    )
    steady = min(8.0 / (shortest * rates.smallest) ** 2, rates.sampling_error + 8.0 / (shortest * rates.largest) ** 2)
    published += (skipped + 1 - growing) * steady
    return _dissimilarity_bound(rates, cells) + (published + skipped * nullified_error) / (2 * skipped + 1)


class _Rates(NamedTuple):
    """ε_L, ε_R: the smallest and largest ε/w over users; Z: the sampling error of going with the largest."""

    smallest: float
    largest: float
    sampling_error: float


def _rates(population: Population) -> _Rates:
    held = [(requirement.epsilon / requirement.window, size) for requirement, size in population.items() if size]
    budgets, sizes = [rate for rate, _ in held], [size for _, size in held]
    return _Rates(min(budgets), max(budgets), _outside_largest(budgets, sizes))


def _outside_largest(budgets: Sequence[float], sizes: Sequence[int]) -> float:
    """(n − n_M)(n − n_M + 1/4): bias and variance when everyone below the largest budget is sampled away."""
    largest = max(budgets)
    others = sum(size for budget, size in zip(budgets, sizes, strict=True) if not math.isclose(budget, largest))
    return others * (others + 0.25)


def _bound(smallest: float, largest: float, sampling_error: float, sensitivity: float) -> float:
    noise = 2.0 * sensitivity**2
    return min(noise / smallest**2, sampling_error + noise / largest**2)


def _dissimilarity_bound(rates: _Rates, cells: int) -> float:
    """min(8/(d·ε_L)², Z + 8/(d·ε_R)²): SM with half of ε/w and sensitivity 1/d."""
    return _bound(rates.smallest / 2.0, rates.largest / 2.0, rates.sampling_error, 1.0 / cells)
