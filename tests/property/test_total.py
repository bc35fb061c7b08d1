"""Post-processing is total: whatever is drawn, every mechanism publishes finite numbers and can be replayed (spec 10).

The noise is written down here, extremes first: what a real source could never draw must not fail either, because a
slot that fails after its draw would be drawn anew.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wevent
from wevent import Population, Publisher, Release, Requirement, SeededNoise
from wevent.core.limits import MAX_USERS
from wevent.core.mechanism import Measurement
from wevent.core.pft.calibrated_filter import CalibratedState
from wevent.core.pft.filter import FilterState

ENDS = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**53 + 1, 0, 1, -1)
draws = st.one_of(st.sampled_from(ENDS), st.integers(-(2**63), 2**63 - 1), st.integers(-1000, 1000))


class WrittenNoise:
    """Draws what is written, again and again; keeps everyone."""

    seeded = True

    def __init__(self, written: list[int], *, opposed: bool) -> None:
        self._written = itertools.cycle(written)
        self._opposed = opposed  # one value per draw, with alternating signs over the cells

    def laplace(self, permit: Any, size: int) -> np.ndarray:
        if not self._opposed:
            return np.array(list(itertools.islice(self._written, size)), dtype=np.int64)
        value = next(self._written)
        return np.array([value if cell % 2 else -max(value, -(2**63) + 1) for cell in range(size)], dtype=np.int64)

    def binomial(self, counts: np.ndarray, permit: Any) -> np.ndarray:
        return counts.copy()

    def respond(self, counts: np.ndarray, permit: Any) -> np.ndarray:
        return counts[:, ::-1].copy()


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    window = draw(st.sampled_from([1, 2, 3, 9, 60]))
    nano = draw(st.one_of(st.integers(2 * window, 200 * window), st.integers(10**8, 50 * 10**9)))
    return Requirement.from_nano(window, nano)


@st.composite
def options(draw: st.DrawFn, mechanism: str, users: int, cells: int) -> dict[str, Any]:
    chosen: dict[str, Any] = {"nonnegative": draw(st.booleans()), "round": draw(st.booleans())}
    chosen["neighbours"] = draw(st.sampled_from(["add_remove", "replace"]))
    if chosen["neighbours"] == "replace" and draw(st.booleans()):
        chosen["known_total"] = users
    if mechanism in ("lbu", "plbu"):
        return chosen
    chosen |= {"refund": draw(st.booleans()), "max_cells_per_user": draw(st.integers(1, min(cells, 2)))}
    if mechanism == "pft":
        cycle = draw(st.sampled_from([(), (3.0,), (7.5, 24.0)]))
        weights = draw(st.sampled_from([None, "calibrated", "equal", "budget"]))
        return chosen | {"class_weights": weights, "seasonality": cycle, "special_days": (4, 9) if cycle else ()}
    return chosen | {
        "estimator": draw(st.sampled_from(["sampling", "weighting"])),
        "smoothing": draw(st.sampled_from(["hold", "filter", "filter"])),
    }


@st.composite
def publishers(draw: st.DrawFn, mechanism: str) -> tuple[Publisher, Publisher, list[np.ndarray]]:
    """Two publishers that draw the same, and slots for them: nobody, everybody in one cell, alternating."""
    sizes = st.sampled_from([0, 1, 2, 1000, 10**9, 10**11, MAX_USERS // 3])
    held = draw(st.dictionaries(requirements(), sizes, min_size=1, max_size=3))
    cells = draw(st.sampled_from([1, 2, 3, 40, 700]))
    population = Population(held)
    chosen = draw(options(mechanism, population.users, cells))
    written, opposed = draw(st.lists(draws, min_size=1, max_size=12)), draw(st.booleans())
    pair = [
        Publisher(population, cells, mechanism, noise=WrittenNoise(written, opposed=opposed), **chosen)
        for _ in range(2)
    ]
    slots = []
    for column in draw(st.lists(st.integers(-1, min(cells, 4) - 1), min_size=1, max_size=8)):
        counts = np.zeros((len(population), cells), dtype=np.int64)
        if column >= 0:
            counts[:, column] = population.sizes
        slots += [counts] * draw(st.sampled_from([1, 1, 2, 11]))
    return pair[0], pair[1], slots


def check_no_fallback(publisher: Publisher, measurements: list[Measurement]) -> None:
    """The built-in filters need no guard: they have taken every measurement there was."""
    state = publisher._history.smoothed
    if isinstance(state, FilterState):
        assert state.releases == len(measurements)
    if isinstance(state, CalibratedState):
        assert state.main.releases == sum(one.lean is not None for one in measurements)
        assert state.direct.releases == sum(one.anchor is not None for one in measurements)


def check(release: Release) -> None:
    assert np.isfinite(release.histogram).all()
    assert release.dissimilarity is None or np.isfinite(release.dissimilarity)
    if release.std_error is not None:
        assert np.isfinite(release.std_error).all()
        assert (release.std_error >= 0).all()
        low, high = release.noise_interval(0.95)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()


@pytest.mark.parametrize("mechanism", list(wevent.mechanisms()))
@given(data=st.data())
def test_any_draw_gives_finite_numbers_and_the_same_when_replayed(mechanism: str, data: st.DataObject) -> None:
    try:
        live, replayed, slots = data.draw(publishers(mechanism))
    except wevent.InvalidRequirement:  # the strictest of all is no requirement: nothing to publish for
        return
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        measurements: list[Measurement] = []
        for counts in slots:
            release = live.step(counts)
            measurements += [] if live.measured is None else [live.measured]
            check(release)
            check_no_fallback(live, measurements)
            replayed.replay(release.probe_charges, release.publication_charges, live.measured)
    assert replayed.state() == live.state()


@pytest.mark.parametrize("mechanism", ["pft", "pbd", "pba", "pbu"])
def test_a_billion_users_with_200_seeds(mechanism: str) -> None:
    """Where the variance of a first look can cancel to less than nothing, with one seed out of ten to twenty."""
    population = Population({Requirement(10, 1): 10**9})
    smoothing = {} if mechanism == "pft" else {"smoothing": "filter"}
    for seed in range(200):
        publisher = Publisher(population, 5, mechanism, noise=SeededNoise(seed), **smoothing)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            measurements: list[Measurement] = []
            for counts in ([5 * 10**8, 10**8, 10, 0, 10**3], [5 * 10**8, 10**8 + 7, 10, 0, 0], [0, 0, 0, 10**9, 0]):
                release = publisher.step([counts])
                measurements += [] if publisher.measured is None else [publisher.measured]
                check(release)
                check_no_fallback(publisher, measurements)
