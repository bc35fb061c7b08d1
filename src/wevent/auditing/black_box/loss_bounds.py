"""How large a loss is proven by counting: Clopper–Pearson bounds for two probabilities, and the logarithm of their ratio.

Exact: the binomial tail is summed, and the bisection ends on the side that claims less. No normal approximation is used where
a verdict depends on it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from wevent.core.arrays import FloatArray

_STEPS = 60  # of a bisection: 2^-60 of the interval
_STRICT, _LAX = 3.5, 1.5  # standard errors, to choose by


@lru_cache(maxsize=64)
def _log_choices(trials: int) -> FloatArray:
    """Return log C(trials, k) for every k."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, trials + 1, dtype=np.float64)))))
    choices: FloatArray = logs[-1] - logs - logs[::-1]
    return choices


def upper_tail(hits: int, trials: int, probability: float) -> float:
    """Return P(X ≥ hits) for X ~ Binomial(trials, probability)."""
    if hits <= 0:
        return 1.0
    if probability <= 0.0 or probability >= 1.0:
        return float(probability >= 1.0)
    numbers = np.arange(hits, trials + 1)
    logs = _log_choices(trials)[hits:] + numbers * math.log(probability) + (trials - numbers) * math.log1p(-probability)
    highest = float(logs.max())
    return math.exp(highest) * float(np.exp(logs - highest).sum())


def at_least(hits: int, trials: int, alpha: float) -> float:
    """Return a lower bound for a probability seen in `hits` of `trials`; too high with probability ≤ alpha."""
    if hits <= 0:
        return 0.0
    low, high = 0.0, hits / trials
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if upper_tail(hits, trials, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def at_most(hits: int, trials: int, alpha: float) -> float:
    """Return an upper bound for it; too low with probability ≤ alpha."""
    return 1.0 - at_least(trials - hits, trials, alpha)


def proven_loss(seen: tuple[int, int], neighbour: tuple[int, int], alpha: float) -> float:
    """Return the largest ε that is proven by an event's hits and trials with one stream, and with its neighbour.

    If the loss is at most ε, P(S) ≤ e^ε·P'(S). Half of alpha goes to each probability: the bound is above the true loss with
    probability ≤ alpha. Never below 0, which needs no proof.

    >>> round(proven_loss((700, 1000), (300, 1000), 0.05), 3)
    0.711
    """
    least = at_least(*seen, alpha / 2)
    if least <= 0.0:
        return 0.0
    return max(0.0, math.log(least / at_most(*neighbour, alpha / 2)))


def hope(
    seen: FloatArray, neighbour: FloatArray, trials: int, future: int, handicap: float | FloatArray = 0.0
) -> FloatArray:
    """Return the value of events to choose by: above 0 the loss that `future` runs should prove, below 0 a ranking.

    Looked at strictly enough that the luckiest of a thousand events that tell nothing is not chosen. Where nothing is left
    then, the events are compared by a laxer look: else one that always happens, and tells nothing, would seem the best.
    """
    strict = expected_loss(seen, neighbour, trials, future, _STRICT) - handicap
    lax = expected_loss(seen, neighbour, trials, future, _LAX) - handicap
    result: FloatArray = np.where(strict > 0.0, strict, -np.exp(-np.maximum(lax, -50.0)))
    return result


def expected_loss(seen: FloatArray, neighbour: FloatArray, trials: int, future: int, confident: float) -> FloatArray:
    """Estimate what `future` runs will prove for events with these frequencies in `trials` runs of each stream.

    An estimate, of many events at once: Wilson's interval, of so many standard errors.
    """
    number = float(min(trials, future))
    square = confident * confident

    def ends(part: FloatArray) -> tuple[FloatArray, FloatArray]:
        middle = part + square / (2 * number)
        half = confident * np.sqrt(part * (1 - part) / number + square / (4 * number * number))
        return (middle - half) / (1 + square / number), (middle + half) / (1 + square / number)

    low, high = ends(seen)[0], ends(neighbour)[1]
    result: FloatArray = np.log(np.maximum(low, 1e-12) / np.minimum(np.maximum(high, 1e-12), 1.0))
    return result
