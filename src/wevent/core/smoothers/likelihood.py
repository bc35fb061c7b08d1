"""The law of a measurement: Laplace noise on a Gaussian prediction, in closed form.

One Laplace draw has heavier tails than a Gaussian of the same variance: a Gaussian filter takes them for jumps. The sum of
Laplace(b) and N(0, v) has a density in terms of the scaled complementary error function, and its score and information give
the exact first two moments of the posterior (Masreliez' update): mean += P·g, variance −= P²·G.
"""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import FloatArray

# erfcx(z)/t as a polynomial of t = 1/(1 + 0.4·z), fitted by Chebyshev interpolation on z ≥ 0: relative error below 1e-8.
# Only + − · / are used, so results are the same on every machine.
_STRETCH = 0.4
_COEFFICIENTS = (
    0.2256758337378,
    0.2256758617407,
    0.2076156657474,
    0.17170045764,
    0.1193226975059,
    0.08256804701516,
    -0.04351287354724,
    0.13243173587,
    -0.2308967257154,
    0.1381568844645,
    -0.02873758893049,
)
_ROOT_HALF = 0.7071067811865476
_TWICE_ROOT_TWO_OVER_PI = 1.5957691216057308


def scaled_erfc(z: FloatArray) -> FloatArray:
    """exp(z²)·erfc(z) for z ≥ 0."""
    t = 1.0 / (1.0 + _STRETCH * z)
    value = np.full_like(t, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        value *= t
        value += coefficient
    value *= t
    return value


def corrected_variance(
    variance: FloatArray, information: FloatArray, rest: FloatArray | float, scale: float
) -> FloatArray:
    """P − P²·G, what is left of the variance P after an observation; positive for every P > 0.

    Where P is 10⁸ times the noise and more, the difference cancels. There the noise is as good as Gaussian, and
    (rest + 2b²)·P / (P + rest + 2b²) is left.

    Args:
        variance: P, what is to be corrected.
        information: G of the observation, from `laplace_on_gaussian` with the variance P + rest.
        rest: what is observed besides P.
        scale: b of the noise.
    """
    noise = rest + 2.0 * scale * scale
    part = 1.0 - variance * information
    return np.where(part > 1e-8, variance * part, noise * (variance / (variance + noise)))


def laplace_on_gaussian(
    residual: FloatArray, variance: FloatArray, scale: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log density, score −(log f)′ and information −(log f)″ ≥ 0 of Laplace(scale) + N(0, variance) at `residual`."""
    deviation = np.sqrt(variance)
    ratio, distance = deviation / scale, np.abs(residual) / deviation
    inner = (ratio - distance) * _ROOT_HALF
    far = scaled_erfc((ratio + distance) * _ROOT_HALF)
    near = scaled_erfc(np.abs(inner))
    # both terms share the factor exp(−distance²/2) where inner ≥ 0, and exp(inner² − distance²/2) where it is negative
    tail = inner < 0
    shrink = np.exp(-np.minimum(inner * inner, 700.0))
    near = np.where(tail, 2.0 - near * shrink, near)
    far = np.where(tail, far * shrink, far)
    total = near + far
    # in the tail inner² − distance²/2 = ratio·(ratio/2 − distance), without cancelling
    exponent = np.where(tail, ratio * (0.5 * ratio - distance), -0.5 * distance * distance)
    log_density = exponent + np.log(total / (4.0 * scale))
    balance = (near - far) / total
    score = np.copysign(balance / scale, residual)
    curvature = _TWICE_ROOT_TWO_OVER_PI / (deviation * scale) * np.where(tail, shrink, 1.0) / total
    information = (balance * balance - 1.0) / scale**2 + curvature
    wide = (ratio > 10.0) & ~tail  # cancellation; there the density is Gaussian to one percent
    if wide.any():
        whole = variance + 2.0 * scale**2
        score = np.where(wide, residual / whole, score)
        information = np.where(wide, 1.0 / whole, information)
    return log_density, score, np.maximum(information, 0.0)
