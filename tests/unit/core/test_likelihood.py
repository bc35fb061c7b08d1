"""The law of a measurement, against scipy, quadrature and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from wevent.core.pft.likelihood import laplace_on_gaussian, scaled_erfc

RESIDUALS = np.array([-40.0, -7.0, -1.3, -0.2, 0.0, 0.4, 2.0, 5.0, 23.0, 300.0])


def test_scaled_erfc() -> None:
    z = np.concatenate([np.linspace(0, 10, 20_001), np.logspace(1, 8, 1000)])
    exact = special.erfcx(z)
    assert (np.abs(scaled_erfc(z) - exact) / exact).max() < 1e-8


def convolved(residual: float, variance: float, scale: float, power: int = 0) -> float:
    """∫ x^power · N(x; 0, variance) · Laplace(residual − x; scale) dx by quadrature."""
    deviation = variance**0.5

    def integrand(x: float) -> float:
        return float(x**power * stats.norm.pdf(x, 0, deviation) * stats.laplace.pdf(residual - x, 0, scale))

    reach = 12 * deviation
    value, _ = integrate.quad(integrand, -reach, reach, points=[np.clip(residual, -reach, reach)], limit=200)
    return float(value)


@pytest.mark.slow
@pytest.mark.parametrize(("variance", "scale"), [(1.0, 1.0), (0.01, 2.0), (30.0, 1.0), (4.0, 0.5)])
def test_density_and_posterior_moments_are_those_of_the_convolution(variance: float, scale: float) -> None:
    residuals = np.array([-6.0, -0.7, 0.0, 1.5, 9.0])
    log_density, score, information = laplace_on_gaussian(residuals, np.full(5, variance), scale)
    for index, residual in enumerate(residuals.tolist()):
        mass = convolved(residual, variance, scale)
        mean = convolved(residual, variance, scale, 1) / mass
        spread = convolved(residual, variance, scale, 2) / mass - mean**2
        assert np.exp(log_density[index]) == pytest.approx(mass, rel=1e-6)
        assert variance * score[index] == pytest.approx(mean, rel=1e-5, abs=1e-7)
        assert variance - variance**2 * information[index] == pytest.approx(spread, rel=1e-4)


@pytest.mark.parametrize(("variance", "scale"), [(1.0, 1.0), (0.04, 3.0), (60.0, 1.0)])
def test_score_and_information_are_derivatives_of_the_density(variance: float, scale: float) -> None:
    step = 1e-3 * variance**0.5

    def log_density(residuals: np.ndarray) -> np.ndarray:
        return laplace_on_gaussian(residuals, np.full(len(residuals), variance), scale)[0]

    below, here, above = log_density(RESIDUALS - step), log_density(RESIDUALS), log_density(RESIDUALS + step)
    _, score, information = laplace_on_gaussian(RESIDUALS, np.full(len(RESIDUALS), variance), scale)
    assert score == pytest.approx(-(above - below) / (2 * step), rel=1e-4, abs=1e-6)
    assert information == pytest.approx(-(above - 2 * here + below) / step**2, rel=2e-2, abs=0.05 / variance)


def test_where_the_prediction_is_much_wider_than_the_noise_it_is_a_kalman_update() -> None:
    residuals, variance = np.array([-100.0, 0.0, 40.0]), 2500.0
    _, score, information = laplace_on_gaussian(residuals, np.full(3, variance), 1.0)
    assert score == pytest.approx(residuals / (variance + 2))
    assert information == pytest.approx(1 / (variance + 2))


def test_the_switch_to_the_gaussian_is_hardly_seen() -> None:
    residuals = np.linspace(-30, 30, 61)
    exact = laplace_on_gaussian(residuals, np.full(61, 9.999**2), 1.0)
    gaussian = laplace_on_gaussian(residuals, np.full(61, 10.001**2), 1.0)
    assert gaussian[1] == pytest.approx(exact[1], rel=0.03)
    assert gaussian[2] == pytest.approx(exact[2], rel=0.08)


def test_a_gaussian_of_no_width_leaves_the_laplace_density() -> None:
    """Also very far out, where squares of the distance would cancel each other."""
    residuals = np.array([0.5, 20.0, 1e6])
    log_density, score, information = laplace_on_gaussian(residuals, np.full(3, 1e-20), 1e-3)
    assert log_density == pytest.approx(-residuals / 1e-3 - np.log(2e-3), rel=1e-9)
    assert score == pytest.approx(1e3)
    assert (information >= 0).all()


def test_always_finite_and_the_information_never_negative() -> None:
    for variance in 10.0 ** np.arange(-12, 13, 2.0):
        for scale in 10.0 ** np.arange(-6, 7, 2.0):
            residuals = np.concatenate([-np.logspace(-6, 9, 31), [0.0], np.logspace(-6, 9, 31)])
            log_density, score, information = laplace_on_gaussian(residuals, np.full(63, variance), scale)
            assert np.isfinite(log_density).all()
            assert (np.abs(score) <= 1 / scale * (1 + 1e-9)).all()  # the heavy tail: no outlier pulls harder than this
            assert (information >= 0).all()
            assert (variance * information <= 1 + 1e-6).all()
            assert (np.sign(score) * np.sign(residuals) >= 0).all()
