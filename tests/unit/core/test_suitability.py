"""Options: what does not apply is refused in one clear sentence; what applies keeps every window."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.support.window_checker import violated_windows
from tests.unit.scripted import HUGE, ScriptedNoise
from wevent import Population, Publisher, Release, Requirement, SeededNoise
from wevent.errors import InvalidCells, InvalidOption

POPULATION = Population({Requirement(3, 1): 40, Requirement(8, 2): 60})
MECHANISMS = ("pbd", "pba", "uniform", "pbu", "sample")

REFUSED = [
    ("pft", {"estimator": "sampling"}, "estimator"),
    ("pft", {"smoothing": "hold"}, "smoothing"),
    ("pbd", {"estimator": "wishing"}, "estimator"),
    ("pbd", {"smoothing": "wishing"}, "smoothing"),
    ("plbu", {"estimator": "weighting"}, "estimator"),
    ("lbu", {"smoothing": "filter"}, "smoothing"),
    ("pbd", {"class_weights": "equal"}, "class_weights"),
    ("pft", {"class_weights": True}, "class_weights"),
    ("pbd", {"class_weights": "calibrated"}, "class_weights"),
    ("pft", {"class_weights": "all"}, "class_weights"),
    ("pbd", {"seasonality": (24.0,)}, "seasonality"),
    ("pft", {"seasonality": (2.5,)}, "seasonality"),
    ("pft", {"seasonality": (1e6 + 1,)}, "seasonality"),
    ("pft", {"seasonality": (4.0, 5.0, 6.0, 7.0, 8.0)}, "seasonality"),
    ("pft", {"seasonality": "1d"}, "seasonality"),
    ("pft", {"seasonality": True}, "seasonality"),
    ("pft", {"seasonality": None}, "seasonality"),
    ("pft", {"special_days": (3, 9)}, "special_days"),
    ("pft", {"seasonality": 24, "special_days": (9, 3)}, "special_days"),
    ("pft", {"seasonality": 24, "special_days": (0, 3)}, "special_days"),
    ("pft", {"seasonality": 24, "special_days": (1.5, 3)}, "special_days"),
    ("pba", {"nonnegative": 1}, "nonnegative"),
    ("pba", {"round": "up"}, "round"),
    ("pft", {"known_total": 100}, "known_total"),
    ("pft", {"known_total": -1, "neighbours": "replace"}, "known_total"),
    ("pft", {"known_total": 99.5, "neighbours": "replace"}, "known_total"),
    ("pft", {"known_total": True, "neighbours": "replace"}, "known_total"),
    ("pft", {"known_total": 2**40 + 1, "neighbours": "replace"}, "known_total"),
    ("pft", {"known_total": 10**400, "neighbours": "replace"}, "known_total"),
    ("pft", {"neighbours": "next door"}, "neighbours"),
    ("pft", {"max_cells_per_user": 0}, "max_cells_per_user"),
    ("pft", {"max_cells_per_user": 3}, "max_cells_per_user"),
    ("pbd", {"max_cells_per_user": 10**9}, "max_cells_per_user"),
    ("pft", {"max_cells_per_user": 10**18, "neighbours": "replace"}, "max_cells_per_user"),
    ("plbu", {"max_cells_per_user": 2}, "max_cells_per_user"),
    ("plbu", {"refund": True}, "refund"),
    ("pft", {"threshold": "std"}, "threshold"),
    ("bd", {"threshold": "mean"}, "threshold"),
]


@pytest.mark.parametrize(("mechanism", "options", "option"), REFUSED, ids=lambda value: str(value))
def test_refused_in_one_clear_sentence(mechanism: str, options: dict[str, object], option: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Publisher(POPULATION, 2, mechanism, **options)  # type: ignore[arg-type]
    error = caught.value
    assert error.option == option
    assert error.value == options[option]
    message = str(error)
    assert option in error.problem or mechanism in error.problem
    assert error.fix.endswith(".")
    assert "\n" not in message
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.option, copied.value, str(copied)) == (option, options[option], message)


# The least legal epsilon, 2·w nano, gives a share of one nano-epsilon: (mechanism, options, neighbours, largest k).
LARGEST_K = [
    ("pft", {}, "add_remove", 4),
    ("pft", {}, "replace", 2),
    ("pbd", {"estimator": "weighting"}, "add_remove", 4),
    ("bd", {"estimator": "weighting"}, "replace", 2),
    ("pbd", {}, "replace", 2**21),  # as many as there can be cells: sampling always can
    ("uniform", {}, "replace", 2**21),
]


@pytest.mark.parametrize(("mechanism", "options", "neighbours", "largest"), LARGEST_K)
def test_the_cells_per_user_that_the_least_epsilon_can_cover(
    mechanism: str, options: dict[str, str], neighbours: str, largest: int
) -> None:
    """More would need noise so wide that 64 bits cut it off; what is stated here is in the docs."""

    def build(k: int) -> None:
        people = Population({Requirement(1000, "2e-6"): 40})
        Publisher(people, 2**21, mechanism, max_cells_per_user=k, neighbours=neighbours, **options)  # type: ignore[arg-type]

    build(largest)
    with pytest.raises(InvalidOption, match="max_cells_per_user") as caught:
        build(largest + 1)
    assert caught.value.value == largest + 1


def test_a_larger_epsilon_covers_more_cells_per_user() -> None:
    Publisher(Population({Requirement(40, 1): 40}), 10_000, "pft", max_cells_per_user=10_000, neighbours="replace")


def test_as_many_cells_as_a_distance_can_sum() -> None:
    with pytest.raises(InvalidCells) as caught:
        Publisher(POPULATION, 2**21 + 1, "pbd")
    assert caught.value.cells == 2**21 + 1


def run(mechanism: str, slots: int = 60, seed: int = 5, **options: object) -> list[Release]:
    publisher = Publisher(POPULATION, 3, mechanism, noise=SeededNoise(seed), **options)  # type: ignore[arg-type]
    random = np.random.default_rng(9)
    return [publisher.step(random.integers(0, [[13], [20]], size=(2, 3))) for _ in range(slots)]


@pytest.mark.parametrize("refund", [False, True])
@pytest.mark.parametrize("smoothing", ["hold", "filter"])
@pytest.mark.parametrize("estimator", ["sampling", "weighting"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_windows_hold_with_every_estimator_and_smoother(
    mechanism: str, estimator: str, smoothing: str, refund: bool
) -> None:
    releases = run(mechanism, estimator=estimator, smoothing=smoothing, refund=refund)
    keys = [(one.window, one.nano) for one in POPULATION.classes]
    parts = ((release.probe_charges.tolist(), release.publication_charges.tolist()) for release in releases)
    charged = [
        {key: (probe, spent) for key, probe, spent in zip(keys, probes, publications, strict=True)}
        for probes, publications in parts
    ]
    assert violated_windows(charged) == []
    assert any(release.fresh for release in releases)
    for release in releases:
        assert np.isfinite(release.histogram).all()
        assert smoothing == "hold" or (release.histogram >= 0).all()
    assert releases[-1].noise.law == ("estimate" if smoothing == "filter" else "laplace")


@pytest.mark.parametrize("estimator", ["sampling", "weighting"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_filter_feeds_nothing_back(mechanism: str, estimator: str) -> None:
    """With the same noise, looks, decisions and charges are those of the unfiltered run, to the last bit."""
    held = run(mechanism, estimator=estimator, smoothing="hold")
    filtered = run(mechanism, estimator=estimator, smoothing="filter", nonnegative=True, round=True)
    assert [one.dissimilarity for one in filtered] == [one.dissimilarity for one in held]
    words = [one.outcome.replace("estimated", "repeated") for one in filtered]  # what is published in between differs
    assert words == [one.outcome for one in held]
    assert [one.charges.tolist() for one in filtered] == [one.charges.tolist() for one in held]
    assert any(one.histogram.tolist() != other.histogram.tolist() for one, other in zip(filtered, held, strict=True))


@pytest.mark.parametrize("mechanism", ["pbd", "pba"])
def test_a_probe_compares_with_the_measurement_in_whole_numbers(mechanism: str) -> None:
    """The weighted measurement is no whole number and the filter moves it further: neither is what the probe sees."""
    publisher = Publisher(
        POPULATION, 2, mechanism, noise=ScriptedNoise([True] * 40), estimator="weighting", smoothing="filter"
    )
    random = np.random.default_rng(2)
    compared, moved = 0, 0
    for _ in range(40):
        counts = random.integers(0, [[20], [30]], size=(2, 2))
        measurement, before = publisher._history.measurement, publisher._history.last_fresh
        assert measurement.dtype == np.int64
        release = publisher.step(counts)
        if release.dissimilarity is not None:
            distance = np.abs(counts.sum(axis=0) - measurement).sum()
            assert release.dissimilarity * 2 - HUGE == distance
            compared += before > 0
            moved += release.fresh and not np.array_equal(publisher._history.measurement, release.histogram)
    assert compared > 3
    assert moved > 3


def test_sampled_measurements_tell_the_filter_how_many_users_there_are() -> None:
    """Without n the filter takes every cell for empty, and its scale for the smallest."""
    publisher = Publisher(Population({Requirement(1, 1): 1000}), 2, "uniform", noise=SeededNoise(3), smoothing="filter")
    for _ in range(10):
        publisher.step([[300, 20]])
    state = publisher._history.smoothed
    assert state.users == 1000
    assert state.scale == pytest.approx([210, 19.6], rel=0.3)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "pft", "plbu"])
def test_polish_applies_to_every_mechanism(mechanism: str) -> None:
    releases = run(mechanism, neighbours="replace", nonnegative=True, known_total=100, round=True)
    for release in releases:
        assert (release.histogram >= 0).all()
        assert release.histogram.sum() == 100
        assert (release.histogram == np.rint(release.histogram)).all()
