"""Nano-epsilon arithmetic: every budget is an integer number of 1e-9 epsilons (spec 3).

Spends round down, noise scales round up, sums are exact; there is no tolerance anywhere.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from functools import lru_cache

from wevent.core.limits import MAX_SCALE

NANO = 1_000_000_000
MAX_EPSILON = 50

_DIGITS = 60  # spec 6: enough that the error of a rounded exp is far below 2^-64
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING)
_ONE = Decimal(1)
_TWO_TO_64 = Decimal(2**64)


def parse_nano(epsilon: object) -> int:
    """Read an epsilon as a decimal and floor it to nano-epsilons (spec 3): ``0.6`` is ``600_000_000``.

    The decimal that the user sees is what counts: ``int(1.001 * 1e9)`` would lose a nano to binary floats.

    Raises:
        ValueError: if it is not a finite number.
    """
    if isinstance(epsilon, bool):
        raise ValueError("a bool is not a number")
    try:
        value = Decimal(str(epsilon))
    except InvalidOperation:
        raise ValueError("not a number") from None
    if not value.is_finite():
        raise ValueError("not finite")
    if value and value.adjusted() > 12:  # far beyond any legal epsilon; keeps the exact shift below small
        return NANO * 10**12 if value > 0 else -NANO * 10**12
    return int(_DOWN.multiply(value, NANO).to_integral_value(rounding=ROUND_FLOOR))


@lru_cache(maxsize=4096)
def decimal_text(nano: int) -> str:
    """Return nano-epsilons as the decimal that they are, exactly.

    >>> decimal_text(600_000_000), decimal_text(1), decimal_text(2_000_000_000)
    ('0.6', '0.000000001', '2')
    """
    whole, part = divmod(nano, NANO)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".") if part else f"{whole}"


@lru_cache(maxsize=256)
def noise_scale(threshold: int, sensitivity: int) -> float:
    """Return the smallest float s with s·θ ≥ Δ, checked in exact integers: the noise never falls short (spec 6).

    Args:
        threshold: θ in nano-epsilons, positive: what the noise of this scale costs.
        sensitivity: Δ, the most one user can change the measured vector in L1 norm.
    """
    if threshold <= 0 or sensitivity <= 0:
        raise ValueError("a noise scale needs a positive threshold and sensitivity")
    needed = sensitivity * NANO

    def enough(scale: float) -> bool:
        numerator, denominator = scale.as_integer_ratio()
        return numerator * threshold >= needed * denominator

    scale = needed / threshold
    while not enough(scale):
        scale = math.nextafter(scale, math.inf)
    while enough(lower := math.nextafter(scale, 0.0)):
        scale = lower
    return scale


def least_threshold(sensitivity: int) -> int:
    """Return the smallest θ in nano-epsilons whose noise is drawn whole: s = Δ/θ stays within `MAX_SCALE`.

    What has less to spend cannot be measured; a slot for which nobody has more repeats the last release.
    """
    return max(1, -(-sensitivity * NANO // int(MAX_SCALE)))


@lru_cache(maxsize=16384)
def sampling_probability(budget: int, threshold: int, cells_per_user: int = 1) -> int:
    """Return the sampling probability p = expm1(e/k)/expm1(θ/k) as a 64-bit fraction, never above the true value (spec 6).

    Computed in decimal with 60 digits: the numerator is rounded down, the denominator up, the quotient times 2^64
    floored. float64 exceeds the true value half of the time. A class with e ≥ θ is not sampled at all (p = 1 does not
    fit 64 bits): callers treat it apart.

    Args:
        budget: e in nano-epsilons, below the threshold.
        threshold: θ in nano-epsilons.
        cells_per_user: k; each of a user's k records is thinned on its own with a k-th of the budget.
    """
    if not 0 <= budget < threshold:
        raise ValueError("a sampling probability needs 0 <= budget < threshold")
    if budget == 0:
        return 0
    parts = NANO * cells_per_user
    below = _DOWN.next_minus(_DOWN.exp(_DOWN.divide(Decimal(budget), parts)))  # exp is correctly rounded: ± one step
    above = _UP.next_plus(_UP.exp(_UP.divide(Decimal(threshold), parts)))
    return _floor64(_DOWN.divide(_DOWN.subtract(below, _ONE), _UP.subtract(above, _ONE)))


@lru_cache(maxsize=8192)
def response_probability(budget: int, cells: int) -> int:
    """Return the probability of the truth in randomized response, e^ε/(e^ε + d), as a floored 64-bit fraction (spec 9).

    Rounding the probability of the truth down only lowers the ratio between the probabilities of any two answers. A negative
    budget would make the truth the rarest answer.
    """
    if budget < 0:
        raise ValueError("a budget is 0 or more nano-epsilons")
    truth = _DOWN.next_minus(_DOWN.exp(_DOWN.divide(Decimal(budget), NANO)))
    return min(_floor64(_DOWN.divide(truth, _UP.add(truth, Decimal(cells)))), 2**64 - 1)


def _floor64(fraction: Decimal) -> int:
    return int(_DOWN.multiply(fraction, _TWO_TO_64).to_integral_value(rounding=ROUND_FLOOR))
