"""The exact binomial against its closed form; a probability 10 % off must be rejected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistical.goodness import ALPHA, fits_binomial, has_mean
from tests.unit.scripted import permit_for
from wevent import SecureNoise, SeededNoise
from wevent.core.budget import sampling_probability
from wevent.noise.secure import exact_binomial

SIZE = 40_000
CASES = [(1, 0.5), (1, 0.3), (20, 0.3), (63, 0.9), (64, 0.123), (65, 0.5), (200, 0.02)]


def draw(number: int, probability: float, size: int = SIZE) -> np.ndarray:
    fraction = np.uint64(int(probability * 2**64))
    return exact_binomial(np.full(size, number), np.full(size, fraction, dtype=np.uint64))


@pytest.mark.parametrize(("number", "probability"), CASES)
def test_the_exact_binomial_has_the_law(number: int, probability: float) -> None:
    assert fits_binomial(draw(number, probability), number, probability)


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize(("number", "probability"), CASES)
def test_a_probability_ten_percent_off_is_rejected(number: int, probability: float, factor: float) -> None:
    assert not fits_binomial(draw(number, probability * factor), number, probability)


def test_entries_of_different_size_do_not_disturb_each_other() -> None:
    """One call with mixed numbers and probabilities: every kind has its own law."""
    kinds = [(3, 0.2), (64, 0.7), (130, 0.05), (1, 0.9)]
    counts = np.tile([number for number, _ in kinds], SIZE // 4)
    fractions = np.tile(np.array([int(p * 2**64) for _, p in kinds], dtype=np.uint64), SIZE // 4)
    draws = exact_binomial(counts, fractions)
    for place, (number, probability) in enumerate(kinds):
        assert fits_binomial(draws[place::4], number, probability)
    assert has_mean((draws[1::4] - 64 * 0.7) * (draws[2::4] - 130 * 0.05), 0.0), "neighbours are independent"


@pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(20240611)])
def test_classes_are_sampled_with_the_probability_of_their_permit(source) -> None:
    """p_g = (e^0.2 − 1)/(e^1 − 1), (e^0.7 − 1)/(e^1 − 1) and 1."""
    budgets = [2 * 10**8, 7 * 10**8, 10**9]
    permit = permit_for(budgets, [10**7] * 3).for_sampling(10**9)
    kept = source.binomial(np.full((3, SIZE), 12), permit)
    for row, epsilon in enumerate((0.2, 0.7)):
        probability = np.expm1(epsilon) / np.expm1(1.0)
        assert fits_binomial(kept[row], 12, probability)
        assert not fits_binomial(kept[row], 12, 1.1 * probability)
        assert not fits_binomial(kept[row], 12, 0.9 * probability)
        assert sampling_probability(budgets[row], 10**9) / 2**64 == pytest.approx(probability, rel=1e-12)
    assert (kept[2] == 12).all()


def test_large_numbers() -> None:
    """Ten million fair bits at once: the tail of the sum tells a stuck or lost bit."""
    for probability in (0.5, 0.25, 0.3):
        kept = int(draw(10_000_000, probability, 1)[0])
        deviation = (kept - 1e7 * probability) / np.sqrt(1e7 * probability * (1 - probability))
        assert 2 * stats.norm.sf(abs(deviation)) > ALPHA
