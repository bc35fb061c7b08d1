"""Measures by hand."""

import math

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.experiments import metrics

TRUTH = np.array([[6.0, 2.0], [0.0, 0.0]])
RELEASES = np.array([[3.0, 3.0], [-1.0, 2.0]])


def test_squared_and_absolute_errors_are_means_over_cells():
    assert metrics.squared_errors(RELEASES, TRUTH).tolist() == [5.0, 2.5]
    assert metrics.absolute_errors(RELEASES, TRUTH).tolist() == [2.0, 1.5]


def test_relative_errors_have_a_sanity_bound_and_skip_empty_slots():
    errors = metrics.relative_errors(RELEASES, TRUTH)
    assert errors[0] == pytest.approx((3 / 6 + 1 / 2) / 2)
    assert math.isnan(errors[1])
    rare = metrics.relative_errors(np.array([[1000.0, 7.0]]), np.array([[1000.0, 0.0]]))
    assert rare[0] == pytest.approx(7 / 1 / 2)  # 0.1 % of 1,000 is 1


def test_raw_divergence_by_hand():
    middle = np.array([4.5, 2.5])
    expected = 0.5 * (3 * math.log(3 / 4.5) + 3 * math.log(3 / 2.5))
    expected += 0.5 * float((TRUTH[0] * np.log(TRUTH[0] / middle)).sum())
    divergence = metrics.jensen_shannon(RELEASES, TRUTH)
    assert divergence[0] == pytest.approx(expected)
    assert divergence[1] == pytest.approx(0.5 * 2 * math.log(2))  # −1 counts as 0, zero terms are skipped


def test_normalised_divergence_lies_between_0_and_ln_2():
    same = metrics.jensen_shannon(3 * TRUTH[:1], TRUTH[:1], normalised=True)
    apart = metrics.jensen_shannon(np.array([[5.0, 0.0]]), np.array([[0.0, 1.0]]), normalised=True)
    nothing = metrics.jensen_shannon(
        np.array([[-5.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]]), normalised=True
    )
    assert same[0] == pytest.approx(0.0, abs=1e-12)
    assert apart[0] == pytest.approx(math.log(2))
    assert nothing.tolist() == pytest.approx([math.log(2), 0.0])


def test_coverage_counts_only_what_is_stated():
    low, high = np.array([[0.5, 0.5], [np.nan, np.nan]]), np.array([[5.5, 5.5], [np.nan, np.nan]])
    assert metrics.coverage(TRUTH, low, high) == 0.5  # 6 is outside, 2 inside
    assert metrics.coverage(TRUTH, low, np.array([[6.0, 2.0], [np.nan, np.nan]])) == 1.0  # ends belong to it
    assert math.isnan(metrics.coverage(TRUTH, np.full((2, 2), np.nan), np.full((2, 2), np.nan)))


def test_the_worst_window_is_found():
    population = Population({Requirement(2, 1): 5, Requirement(3, 2): 5})
    charges = np.array([[1, 1], [5, 1], [4, 3], [0, 9]]) * 100_000_000
    assert metrics.worst_window_share(charges, population) == pytest.approx(0.9)
    assert metrics.worst_window_share(charges[:1], population) == pytest.approx(0.1)
