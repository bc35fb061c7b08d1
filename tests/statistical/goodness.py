"""Chi-square tests with a stated false-alarm rate.

Every check here rejects a correct sampler with probability ALPHA. About seventy of them use operating-system entropy,
so a run of the whole folder raises a false alarm with probability below 1e-4; those with a fixed seed cannot change
between runs. The sizes are chosen so that noise 10 % off is accepted with a probability below 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from tests.unit.scripted import permit_for
from wevent.core.budget import NANO
from wevent.core.mechanism import NoiseSource

ALPHA = 1e-6
Z_LIMIT = float(stats.norm.isf(ALPHA / 2))


def p_value(draws: np.ndarray, law: Callable[[np.ndarray], np.ndarray], low: int, high: int) -> float:
    """Chi-square of integer draws against a probability law; cells with fewer than 25 expected are pooled.

    Args:
        draws: independent integers.
        law: probabilities of an array of integers.
        low, high: where the law has all but a negligible part of its mass; what is outside is pooled too.
    """
    support = np.arange(low, high + 1)
    expected = law(support) * len(draws)
    observed = np.bincount(np.clip(draws, low - 1, high + 1) - (low - 1), minlength=len(support) + 2).astype(float)
    outside = observed[0] + observed[-1]
    observed = observed[1:-1]
    rare = expected < 25
    observed_cells = np.append(observed[~rare], observed[rare].sum() + outside)
    expected_cells = np.append(expected[~rare], max(len(draws) - expected[~rare].sum(), 0.0))
    if expected_cells[-1] < 5:  # too small a rest for the approximation: put it to the most likely cell
        place = int(expected_cells[:-1].argmax())
        observed_cells[place] += observed_cells[-1]
        expected_cells[place] += expected_cells[-1]
        observed_cells, expected_cells = observed_cells[:-1], expected_cells[:-1]
    statistic = float(((observed_cells - expected_cells) ** 2 / expected_cells).sum())
    return float(stats.chi2.sf(statistic, len(expected_cells) - 1))


def laplace_law(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """P(x) = (1 − q)/(1 + q)·q^|x|, q = exp(−1/scale)."""
    q = math.exp(-1.0 / scale)
    return lambda values: (1 - q) / (1 + q) * q ** np.abs(values)


def fits_laplace(draws: np.ndarray, scale: float) -> bool:
    """Whether draws pass as integer Laplace noise of this scale at level ALPHA."""
    reach = math.ceil(30 * scale) + 1
    return p_value(draws, laplace_law(scale), -reach, reach) > ALPHA


def fits_binomial(draws: np.ndarray, number: int, probability: float) -> bool:
    """Whether draws pass as Binomial(number, probability) at level ALPHA."""
    return p_value(draws, stats.binom(number, probability).pmf, 0, number) > ALPHA


def has_mean(draws: np.ndarray, mean: float) -> bool:
    """z-test of the mean at level ALPHA."""
    error = draws.std(ddof=1) / math.sqrt(len(draws))
    return abs(draws.mean() - mean) <= Z_LIMIT * error


def has_variance(draws: np.ndarray, variance: float) -> bool:
    """z-test of the variance at level ALPHA, with the fourth moment of the draws themselves."""
    centred = (draws - draws.mean()) ** 2
    error = centred.std(ddof=1) / math.sqrt(len(draws))
    return abs(centred.mean() - variance) <= Z_LIMIT * error


CELLS = 4096  # of a vector that is looked at for repetitions
WIDEST = 4_503_599  # sensitivity at θ = 1e-9: noise of scale 2^52, the largest there is
LAG_ALPHA = 5e-11  # for all lags together


def repetition(source: NoiseSource) -> str | None:
    """Return how the cells of one vector of the widest noise depend on each other, or None if nothing shows.

    No size |z| may occur twice, which finds blocks that repeat at any distance, with or without a change of sign. And the
    signs of cells that are L apart agree as often as not, for every L with at least 128 such pairs. An honest source fails
    with a probability below `repetition_alarm()`.
    """
    draws = source.laplace(permit_for([1], [1], sensitivity=WIDEST).for_sampling(1).noise, CELLS)
    sizes, counts = np.unique(np.abs(draws), return_counts=True)
    if len(sizes) < CELLS:
        return f"{CELLS - len(sizes)} of {CELLS} cells have noise of another cell, one size {counts.max()} times"
    signs = np.sign(draws)
    for lag in range(1, CELLS - 127):
        agreed = abs(int(signs[lag:] @ signs[:-lag]))
        if agreed > math.sqrt(2 * (CELLS - lag) * math.log(2 * CELLS / LAG_ALPHA)):
            return f"signs of cells {lag} apart agree or differ {agreed} times too often"
    return None


def repetition_alarm() -> float:
    """Bound the probability that `repetition` calls independent noise dependent.

    Sizes: the expected number of pairs with the same size, Σ P(|z| = k)² for each pair (Markov). Signs: products of signs
    at one lag are bounded martingale differences, so the threshold bounds each lag by LAG_ALPHA / CELLS (Azuma).
    """
    scale = float(WIDEST * NANO)
    q = math.exp(-1.0 / scale)
    same = math.tanh(0.5 / scale) ** 2 * (1.0 - 4.0 * q * q / math.expm1(-2.0 / scale))
    return math.comb(CELLS, 2) * same + LAG_ALPHA


def draw_laplace(source: NoiseSource, scale: float, size: int) -> np.ndarray:
    """Draws with a permit for this scale."""
    threshold = round(NANO / scale)
    return source.laplace(permit_for([threshold], [1]).for_sampling(threshold).noise, size)
