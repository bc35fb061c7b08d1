"""Free post-processing: the nearest histogram that keeps what is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from wevent.core.postprocess import PostProcessor

histograms = st.lists(st.floats(-1000, 1000), min_size=1, max_size=8).map(np.array)


def test_nothing_below_zero() -> None:
    assert PostProcessor(nonnegative=True)(np.array([-3.5, 0.0, 2.25])).tolist() == [0, 0, 2.25]


def test_whole_numbers() -> None:
    assert PostProcessor(whole=True)(np.array([-3.4, 0.6, 2.0])).tolist() == [-3, 1, 2]
    assert PostProcessor(nonnegative=True, whole=True)(np.array([-3.4, 0.6])).tolist() == [0, 1]


@given(values=histograms, total=st.integers(0, 5000))
def test_the_total_is_kept(values: np.ndarray, total: int) -> None:
    for nonnegative in (False, True):
        polished = PostProcessor(nonnegative, total)(values)
        assert polished.sum() == pytest.approx(total, abs=1e-6)
        assert not nonnegative or (polished >= 0).all()
        whole = PostProcessor(nonnegative, total, whole=True)(values)
        assert whole.sum() == total  # exactly: these are whole numbers
        assert (whole == np.rint(whole)).all()
        assert (np.abs(whole - polished) <= 1 + 1e-6).all()
        assert not nonnegative or (whole >= 0).all()


@given(values=histograms, total=st.integers(0, 5000))
def test_without_a_bound_at_zero_all_cells_move_alike(values: np.ndarray, total: int) -> None:
    moved = PostProcessor(known_total=total)(values) - values
    assert np.ptp(moved) < 1e-8


@given(values=st.lists(st.integers(-6, 6), min_size=2, max_size=3), total=st.integers(0, 7))
def test_no_whole_histogram_with_that_total_is_nearer_than_the_projection(values: list[int], total: int) -> None:
    given_values = np.array(values, dtype=float)
    distance = ((PostProcessor(True, total)(given_values) - given_values) ** 2).sum()
    others = (np.array(one) for one in itertools.product(range(total + 1), repeat=len(values)) if sum(one) == total)
    assert all(distance <= ((other - given_values) ** 2).sum() + 1e-9 for other in others)


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_the_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, total = random.normal(2, 10, size=6), 25
    best = optimize.minimize(
        lambda x: ((x - values) ** 2).sum(),
        np.full(6, total / 6),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert PostProcessor(True, total)(values) == pytest.approx(best.x, abs=1e-4)


def test_whole_numbers_with_a_total_go_to_the_largest_fractions() -> None:
    assert PostProcessor(known_total=10, whole=True)(np.array([3.4, 3.4, 3.2])).tolist() == [4, 3, 3]
    assert PostProcessor(True, 0, whole=True)(np.array([3.0, -1.0])).tolist() == [0, 0]


def test_the_input_stays_as_it_was_and_the_output_cannot_change() -> None:
    values = np.array([-1.0, 4.0])
    for polish in (
        PostProcessor(True),
        PostProcessor(True, 5),
        PostProcessor(False, 5),
        PostProcessor(whole=True),
        PostProcessor(True, 5, whole=True),
    ):
        polished = polish(values)
        assert values.tolist() == [-1, 4]
        assert values.flags.writeable
        assert not polished.flags.writeable


@given(
    values=st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=8).map(np.array),
    total=st.one_of(st.none(), st.integers(0, 2**40)),
    nonnegative=st.booleans(),
    whole=st.booleans(),
)
def test_any_finite_histogram_stays_finite(
    values: np.ndarray, total: int | None, nonnegative: bool, whole: bool
) -> None:
    with np.errstate(all="raise"):
        polished = PostProcessor(nonnegative, total, whole)(values.copy())
    assert np.isfinite(polished).all()
    if nonnegative:
        assert (polished >= 0).all()


def test_a_total_that_is_lost_beside_the_values_goes_to_the_largest() -> None:
    values = np.array([1.0, 1e25, -1e25])
    assert PostProcessor(nonnegative=True, known_total=100)(values).tolist() == [0, 100, 0]
    assert PostProcessor(nonnegative=True, known_total=100, whole=True)(values).tolist() == [0, 100, 0]
