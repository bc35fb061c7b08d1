"""The errors a period is chosen by, against running the Kalman filter itself until it settles."""

from __future__ import annotations

import numpy as np
import pytest

from wevent.core.pft.expected_errors import period_errors
from wevent.core.pft.models import default_models


def settled_error(*, walk: float, flicker: float, trend: bool, period: int, noise: float) -> float:
    """Mean squared error over a period: the Riccati recursion, slot by slot, in plain matrices."""
    move = np.array([[1.0, 1.0], [0.0, 1.0]]) if trend else np.eye(2)
    shake = np.diag([0.0, walk]) if trend else np.diag([walk, 0.0])
    covariance = np.diag([noise, noise * 1e-2]) if trend else np.diag([noise, 0.0])
    before = np.inf
    for _ in range(20_000):
        errors = []
        for slot in range(1, period + 1):
            covariance = move @ covariance @ move.T + shake
            if slot < period:
                errors.append(covariance[0, 0] + flicker)
        level = covariance[0, 0]
        if trend:
            errors.append(level - level**2 / (level + flicker + noise) + flicker)
        else:  # a level model's flicker is part of what is measured
            errors.append((level + flicker) * noise / (level + flicker + noise))
        covariance = covariance - np.outer(covariance[:, 0], covariance[0]) / (level + flicker + noise)
        if abs(np.mean(errors) - before) < 1e-12 * before:
            break
        before = np.mean(errors)
    return float(np.mean(errors))


def expected(model: int, period: int, noise: float, scale: float, composition: float = 0.0) -> float:
    errors = period_errors(
        default_models(), np.array([period]), np.array([noise]), np.array([composition]), np.array([scale])
    )
    return float(errors[0, model, 0])


@pytest.mark.parametrize("period", [1, 2, 7, 40])
@pytest.mark.parametrize("noise", [0.5, 200.0])
def test_level_models(period: int, noise: float) -> None:
    bank = default_models()
    soon_settled = np.flatnonzero(bank.walk[: bank.levels] >= 1e-3)  # slower ones take too long to iterate
    for model in soon_settled[::3].tolist():
        walk, flicker = bank.walk[model] * 30, bank.flicker[model] * 30
        settled = settled_error(walk=walk, flicker=flicker, trend=False, period=period, noise=noise)
        assert expected(model, period, noise, 30.0) == pytest.approx(settled, rel=1e-6)


@pytest.mark.parametrize("period", [1, 2, 7, 40])
@pytest.mark.parametrize("noise", [20.0, 5000.0])
def test_trend_models(period: int, noise: float) -> None:
    """The tracking index belongs to a slope that moves once per release; ours moves in every slot.

    Up to an index of 1 that is the same to 2 %; a slope that outruns the noise within a period is made too little of, but
    never by more than about half, and never too much.
    """
    bank = default_models()
    for model in range(bank.levels, len(bank.walk), 3):
        walk, flicker = bank.walk[model] * 1000, bank.flicker[model] * 1000
        settled = settled_error(walk=walk, flicker=flicker, trend=True, period=period, noise=noise)
        index = (period**3 * walk / (noise + flicker)) ** 0.5
        ratio = expected(model, period, noise, 1000.0) / settled
        assert (0.98 if index <= 1 else 0.45) < ratio < 1.001, (model, index)


def test_composition_is_added_in_full() -> None:
    assert expected(3, 5, 10.0, 30.0, 0.2) == pytest.approx(expected(3, 5, 10.0, 30.0) + 0.2 * 30)


def test_prior_and_grid() -> None:
    bank = default_models()
    assert bank.prior.sum() == pytest.approx(1)
    assert (bank.prior > 0).all()
    assert len(bank.prior) == len(bank.walk) + 1 == len(bank.flicker) + 1
    assert 0 < bank.levels < len(bank.walk)


def test_still_cells_want_long_periods_and_fast_ones_short() -> None:
    """With noise falling with k², the best period of a model falls as its walk grows."""
    periods = np.array([1, 2, 4, 8, 16, 32, 64])
    errors = period_errors(default_models(), periods, 4e5 / periods**2.0, np.zeros(7), np.array([100.0]))[:, :, 0]
    bank = default_models()
    plain = [model for model in range(bank.levels) if bank.flicker[model] == 1]
    best = periods[errors[:, sorted(plain, key=lambda model: bank.walk[model])].argmin(axis=0)]
    assert (np.diff(best) <= 0).all()
    assert best[0] == 64
    assert best[-1] <= 2


def test_cells_of_a_trillion_users_have_finite_errors_that_grow_with_the_period() -> None:
    """Where the noise is nothing beside what a trend moves, Kalata's α is 1 to the last digit."""
    bank, periods = default_models(), np.array([1, 10, 100, 1000])
    with np.errstate(all="raise"):
        errors = period_errors(bank, periods, np.full(4, 1e-3), np.zeros(4), np.array([2.5e11]))
    assert np.isfinite(errors).all()
    assert (np.diff(errors[:, bank.levels :, 0], axis=0) > 0).all()
    for period, noise in ((10, 1e-3), (100, 1e-3)):
        walk, flicker = bank.walk[bank.levels] * 2.5e11, bank.flicker[bank.levels] * 2.5e11
        settled = settled_error(walk=walk, flicker=flicker, trend=True, period=period, noise=noise)
        assert 0.4 < expected(bank.levels, period, noise, 2.5e11) / settled < 1.001  # too little of it, as above
