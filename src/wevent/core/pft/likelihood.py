"""The law of a measurement: Laplace noise on a Gaussian prediction, in closed form (spec 11.4).

One Laplace draw has heavier tails than a Gaussian of the same variance: a Gaussian filter takes them for jumps. The sum of
Laplace(b) and N(0, v) has a density in terms of the scaled complementary error function, and its score and information give
the exact first two moments of the posterior (Masreliez' update): mean += P·g, variance −= P²·G.
"""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import FloatArray, any_true

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
    """Return exp(z²)·erfc(z) for z ≥ 0."""
    t = _STRETCH * z
    t += 1.0
    np.reciprocal(t, out=t)
    value = _COEFFICIENTS[-1] * t
    for coefficient in _COEFFICIENTS[-2:0:-1]:
        value += coefficient
        value *= t
    value += _COEFFICIENTS[0]
    value *= t
    return value


def corrected_variance(
    variance: FloatArray, information: FloatArray, rest: FloatArray | float, scale: float
) -> FloatArray:
    """Return P − P²·G, what is left of the variance P after an observation; positive for every P > 0.

    Where P is 10⁸ times the noise and more, the difference cancels. There the noise is as good as Gaussian, and
    (rest + 2b²)·P / (P + rest + 2b²) is left.

    Args:
        variance: P, what is to be corrected.
        information: G of the observation, from `laplace_on_gaussian` with the variance P + rest.
        rest: what is observed besides P.
        scale: b of the noise.
    """
    part = variance * information
    np.subtract(1.0, part, out=part)
    cancels = ~(part > 1e-8)
    part *= variance
    if any_true(cancels):
        prior = variance[cancels]
        noise = np.broadcast_to(rest, variance.shape)[cancels] + 2.0 * scale * scale
        part[cancels] = noise * (prior / (prior + noise))
    return part


def laplace_on_gaussian(
    residual: FloatArray, variance: FloatArray, scale: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log density, score −(log f)′ and information −(log f)″ ≥ 0 of Laplace(scale) + N(0, variance) at `residual`.

    Half of a filter's time is spent here, so what is not needed any more is overwritten.
    """
    deviation = np.sqrt(variance)
    ratio, distance = deviation / scale, np.abs(residual)
    distance /= deviation
    arguments = np.empty((2, *residual.shape))
    inner = np.subtract(ratio, distance, out=arguments[0])
    np.add(ratio, distance, out=arguments[1])
    arguments *= _ROOT_HALF
    beyond = np.minimum(inner, 0.0)  # negative in the tail
    np.abs(inner, out=inner)
    near, far = scaled_erfc(arguments)
    # both terms share the factor exp(−distance²/2) where inner ≥ 0, and exp(inner² − distance²/2) where it is negative
    shrink = beyond * beyond
    np.exp(np.negative(np.minimum(shrink, 700.0, out=shrink), out=shrink), out=shrink)
    far *= shrink
    near *= shrink
    near += 2.0 * np.sign(beyond)
    np.abs(near, out=near)  # 2 − near in the tail, near elsewhere
    total = near + far
    # the exponent: −distance²/2, and in the tail inner² − distance²/2 = ratio·(ratio/2 − distance), without cancelling
    shorter = np.minimum(ratio, distance)
    log_density = 0.5 * shorter
    log_density -= distance
    log_density *= shorter
    log_density += np.log(total / (4.0 * scale))
    near -= far
    near /= total
    balance = near
    score = np.copysign(balance, residual)
    score /= scale
    shrink *= _TWICE_ROOT_TWO_OVER_PI
    shrink /= total
    shrink /= ratio
    information = balance * balance
    information -= 1.0
    information += shrink
    information /= scale * scale
    wide = ratio > 10.0  # cancellation; there the density is Gaussian to one percent
    wide &= beyond == 0.0
    if any_true(wide):
        whole = variance + 2.0 * scale**2
        np.divide(residual, whole, out=score, where=wide)
        np.reciprocal(whole, out=information, where=wide)
    return log_density, score, np.maximum(information, 0.0, out=information)
