"""What is published, and its way into frames and notebooks."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scripted import ScriptedNoise
from wevent import InvalidOption, Population, Publisher, Release, Requirement, SeededNoise, to_columns
from wevent.core.mechanism import ErrorModel
from wevent.publisher.confidence import laplace_quantile

POPULATION = Population({Requirement(4, 1): 50, Requirement(5, 2): 50})


def releases(script: str = "sPs") -> list[Release]:
    noise = ScriptedNoise(letter == "P" for letter in script)
    publisher = Publisher(POPULATION, ["north", "south"], "pbd", noise=noise)
    return list(publisher.run([[[3, 4], [5, 6]]] * len(script)))


def test_before_the_first_fresh_release_there_are_zeros_and_no_error() -> None:
    first = releases()[0]
    assert first.outcome == "repeated"
    assert first.histogram.tolist() == [0, 0]
    assert (first.std_error, first.measured, first.to_dict()["histogram"]) == (None, None, None)
    assert repr(first) == "<Release slot 1 pbd repeated nothing measured yet>"
    assert first._repr_html_().count("–") == 2
    assert first.interval(0.95) is None
    assert not first.fresh


def test_a_repeated_release_repeats_values_and_error() -> None:
    _, fresh, repeated = releases()
    assert fresh.fresh
    assert fresh.histogram.tolist() == [8, 10]
    assert repeated.histogram.tolist() == [8, 10]
    assert repeated.std_error.tolist() == fresh.std_error.tolist()
    assert repeated.publication_charges.tolist() == [0, 0]
    assert (fresh.measured, repeated.measured) == (2, 2)
    assert repeated.interval(0.95) is None  # how far the truth has moved since is not known
    low, high = repeated.noise_interval(0.95)
    assert (low < repeated.histogram).all()
    assert (high - repeated.histogram).tolist() == (repeated.histogram - low).tolist()


def test_arrays_are_read_only() -> None:
    for release in releases():
        assert release.histogram.dtype == np.float64
        for array in (release.histogram, release.probe_charges, release.publication_charges):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        assert release.charges.dtype == np.int64
        assert release.charges.tolist() == (release.probe_charges + release.publication_charges).tolist()


def test_a_release_is_plain_json() -> None:
    for release in releases():
        assert json.loads(json.dumps(release.to_dict())) == release.to_dict()
    assert set(release.to_dict()) >= {"slot", "histogram", "low", "high", "cells", "mechanism", "outcome", "charges"}


def test_columns_feed_both_frame_libraries() -> None:
    columns = to_columns(releases())
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert list(frame["cell"]) == ["north", "south"] * 3
        assert list(frame["slot"]) == [1, 1, 2, 2, 3, 3]
        assert list(frame["value"])[2:] == [8, 10, 8, 10]
        assert list(frame["outcome"]) == ["repeated"] * 2 + ["fresh"] * 2 + ["repeated"] * 2
        assert list(frame["measured"])[2:] == [2, 2, 2, 2]
    assert columns["value"][:2] == columns["measured"][:2] == [None, None]
    assert columns["low"][:2] == columns["low"][4:] == [None, None]
    assert columns["low"][2] < 8 < columns["high"][2]  # everybody was counted in full
    assert len(pd.DataFrame(to_columns([]))) == 0
    assert len(pl.DataFrame(to_columns(iter(releases("s"))))) == 2


def test_the_reprs() -> None:
    noise = ScriptedNoise([])
    publisher = Publisher(Population({Requirement(4, 1): 50}), ["<b>&", "b", "c", "d"], "uniform", noise=noise)
    release = publisher.step([[1, 2, 3, 4]])
    assert repr(release) == "<Release slot 1 uniform fresh {<b>&: 1, b: 2, c: 3, …}>"
    page = release._repr_html_()
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    assert page.count("<tr>") == 5
    assert "±" in page


def tail(scale: float, reach: int) -> float:
    """P(|X| > m) by summing the closed form of the integer Laplace law."""
    q = math.exp(-1 / scale)
    return 2 * (1 - q) / (1 + q) * sum(q**x for x in range(reach + 1, reach + 1 + int(60 * scale) + 60))


@given(st.floats(0.1, 40), st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.999]))
def test_the_interval_is_the_smallest_that_holds_the_noise(scale: float, level: float) -> None:
    reach = laplace_quantile(scale, level)
    assert tail(scale, reach) <= 1 - level + 1e-12
    if reach > 0:
        assert tail(scale, reach - 1) > 1 - level - 1e-12


def test_the_interval_of_the_local_model_is_normal() -> None:
    publisher = Publisher(POPULATION, 2, "plbu", noise=SeededNoise(1))
    release = publisher.step([[3, 4], [5, 6]])
    assert release.interval() is None  # the part of the error that depends on the counts is not stated
    low, high = release.noise_interval(0.95)
    assert (high - low).tolist() == pytest.approx((2 * 1.959964 * release.std_error).tolist(), rel=1e-6)


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, float("nan")])
def test_levels_outside_zero_and_one(level: float) -> None:
    with pytest.raises(InvalidOption):
        releases()[1].interval(level)
    with pytest.raises(InvalidOption):
        releases()[0].interval(level)


def test_a_release_can_be_built_by_hand() -> None:
    release = Release(
        1,
        np.array([1.0]),
        ["a"],
        "own",
        "fresh",
        np.array([0]),
        np.array([5]),
        np.array([2.0]),
        noise=ErrorModel("laplace", 1.0, 4.0),
    )
    assert release.fresh
    assert release.charges.tolist() == [5]
