"""Nano-epsilon arithmetic: readings, and the directed roundings checked with exact rational numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.profiles import examples
from wevent.core.budget import MAX_EPSILON, NANO, noise_scale, parse_nano, response_probability, sampling_probability

TOP = MAX_EPSILON * NANO
_BITS = 400  # fixed-point digits of the independent exponential


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rational lower and upper bounds of exp(x), 0 ≤ x ≤ 50, by Taylor series with remainder and repeated squaring.

    Nothing is shared with the code under test: fixed-point integers instead of decimals.
    """
    halvings = 8
    one = 1 << _BITS
    scaled = exponent / 2**halvings  # at most 0.2
    low = high = term_low = term_high = one
    for order in range(1, 80):
        term_low = term_low * scaled.numerator // (scaled.denominator * order)
        term_high = -(-term_high * scaled.numerator // (scaled.denominator * order))
        low, high = low + term_low, high + term_high
    high += term_high  # the remainder of the series is below its last term
    for _ in range(halvings):
        low, high = low * low >> _BITS, -(-high * high >> _BITS)
    return Fraction(low, one), Fraction(high, one)


def test_the_independent_exponential_is_tight_and_right() -> None:
    for value in (0, 1, 25, 50):
        low, high = exp_bounds(Fraction(value))
        assert low <= high
        assert high - low < low * Fraction(1, 2**300)
        assert float(low) == pytest.approx(math.exp(value), rel=1e-15)


@pytest.mark.parametrize(
    ("written", "nano"),
    [
        (0.6, 600_000_000),
        ("0.6", 600_000_000),
        (1, NANO),
        (1.001, 1_001_000_000),  # int(1.001 * 1e9) loses one
        (Decimal("0.1234567899"), 123_456_789),
        (np.float32(0.6), 600_000_000),
        (np.float64(0.1), 100_000_000),
        ("1e-9", 1),
        ("9.99e-10", 0),
        ("-1e-10", -1),
        (50, TOP),
    ],
)
def test_epsilons_are_read_as_written_and_floored(written: object, nano: int) -> None:
    assert parse_nano(written) == nano


@pytest.mark.parametrize("written", [float("nan"), float("inf"), "-inf", "abc", None, True, False, [1], ""])
def test_what_is_no_number_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"number|finite"):
        parse_nano(written)


def test_enormous_and_minute_numbers_are_read_without_enormous_work() -> None:
    assert parse_nano("1e999999") > TOP
    assert parse_nano("-1e999999") < 0
    assert parse_nano("1e-999999") == 0


@given(st.integers(0, 60 * 10**12))
def test_reading_floors_decimals_exactly(picos: int) -> None:
    assert parse_nano(Decimal(picos).scaleb(-12)) == picos // 1000


@given(st.integers(1, TOP), st.integers(1, 40))
@example(1, 1)
@example(3 * 10**8, 1)
@example(TOP, 1)
def test_the_noise_scale_is_the_smallest_float_that_is_enough(threshold: int, sensitivity: int) -> None:
    scale = noise_scale(threshold, sensitivity)
    needed = sensitivity * 10**9
    assert Fraction(scale) * threshold >= needed
    assert Fraction(math.nextafter(scale, 0.0)) * threshold < needed


@pytest.mark.parametrize(("threshold", "sensitivity"), [(0, 1), (-1, 1), (1, 0)])
def test_a_noise_scale_that_would_add_no_noise_is_refused(threshold: int, sensitivity: int) -> None:
    with pytest.raises(ValueError, match="positive"):
        noise_scale(threshold, sensitivity)


@st.composite
def budgets_below_thresholds(draw: st.DrawFn) -> tuple[int, int]:
    threshold = draw(st.one_of(st.integers(2, TOP), st.integers(2, 1000), st.integers(TOP - 1000, TOP)))
    near = st.integers(max(1, threshold - 3), threshold - 1)
    return draw(st.one_of(st.integers(1, threshold - 1), near)), threshold


@examples(300)
@given(budgets_below_thresholds(), st.integers(1, 5))
@example((1, TOP), 1)
@example((TOP - 1, TOP), 1)
@example((1, 2), 5)
def test_the_sampling_probability_never_exceeds_the_true_one(pair: tuple[int, int], cells_per_user: int) -> None:
    """In rationals: 0 ≤ (e^(e/k) − 1)/(e^(θ/k) − 1) − p ≤ 2^-64 and next to nothing more (spec 6)."""
    budget, threshold = pair
    used = Fraction(sampling_probability(budget, threshold, cells_per_user), 2**64)
    parts = NANO * cells_per_user
    low, high = exp_bounds(Fraction(budget, parts))
    bottom, top = exp_bounds(Fraction(threshold, parts))
    assert used <= (low - 1) / (top - 1)
    assert (high - 1) / (bottom - 1) - used <= Fraction(1, 2**64) + Fraction(1, 2**150)


def test_float_probabilities_would_exceed_the_true_one() -> None:
    """Why decimals: the obvious float expression is above the true probability for a good part of all budgets."""
    threshold, above = 5 * NANO, 0
    bottom, _ = exp_bounds(Fraction(5))
    for budget in range(10**7, threshold, 10**7):
        _, high = exp_bounds(Fraction(budget, NANO))
        above += Fraction(math.expm1(budget / NANO) / math.expm1(5.0)) > (high - 1) / (bottom - 1)
    assert above > 100


def test_no_budget_samples_nobody_and_a_full_one_is_a_separate_case() -> None:
    assert sampling_probability(0, 5) == 0
    for budget in (5, 6, -1):
        with pytest.raises(ValueError, match="budget < threshold"):
            sampling_probability(budget, 5)


@examples(300)
@given(st.one_of(st.integers(1, TOP), st.integers(1, 1000)), st.one_of(st.integers(1, 20), st.integers(1, 10**6)))
@example(TOP, 1)
@example(TOP, 281)
@example(TOP, 282)
@example(1, 1)
def test_randomized_response_keeps_its_promise_in_rationals(budget: int, cells: int) -> None:
    """p is floored to 64 bits, and the odds of any two answers stay within e^ε: p/q ≤ e^ε and q/p ≤ e^ε (spec 9)."""
    truth = response_probability(budget, cells)
    assert 0 < truth < 2**64
    used = Fraction(truth, 2**64)
    low, high = exp_bounds(Fraction(budget, NANO))
    assert used <= low / (low + cells)
    assert high / (high + cells) - used <= Fraction(1, 2**64) + Fraction(1, 2**150)
    lie = (1 - used) / cells
    assert used / lie <= low
    assert lie / used <= low
