"""What is said of a release: words that are true, and intervals only where the truth is in them as often as stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wevent import Mechanism, Population, Publisher, Release, Requirement, SeededNoise, mechanisms
from wevent.checks.subject import available
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.publisher.confidence import OUTCOMES

pytestmark = pytest.mark.slow

MIXED = Population({Requirement(4, "0.5"): 200, Requirement(8, 1): 300, Requirement(12, 2): 100})
ALIKE = Population({Requirement(6, 1): 600})


def publish(population: Population, mechanism: str, slots: int = 60, seed: int = 3, **options: Any) -> list[Release]:
    publisher = Publisher(population, 8, mechanism, noise=SeededNoise(seed), **options)
    return [publisher.step(truth(population, slot)) for slot in range(slots)]


def truth(population: Population, slot: int) -> Any:
    shares = (1.0 + np.sin(slot / 9.0 + np.arange(8))) / 20.0
    return np.floor(population.sizes[:, None] * shares).astype(np.int64)


@pytest.mark.parametrize("options", [{}, {"smoothing": "filter"}, {"smoothing": "filter", "estimator": "weighting"}])
@pytest.mark.parametrize("mechanism", mechanisms())
def test_the_words_are_true(mechanism: str, options: dict[str, Any]) -> None:
    row = BUILT_IN[mechanism]
    if options and (row.local or (row.tracks and "estimator" not in options)):
        options = {}
    releases = publish(MIXED, mechanism, **options)
    filtered = mechanism == "pft" or bool(options)
    last, before = None, None
    for release in releases:
        assert release.outcome in OUTCOMES
        if release.outcome == "fresh":
            last = release.slot
        assert release.measured == last
        if release.outcome == "repeated" and before is not None:
            assert release.histogram.tolist() == before.histogram.tolist()
        if release.outcome == "estimated":
            assert filtered
            assert (release.histogram.tolist(), release.std_error.tolist()) != (
                before.histogram.tolist(),
                before.std_error.tolist(),
            )
        before = release
    assert not filtered or "repeated" not in [release.outcome for release in releases if release.measured]


HONEST = {
    ("pft", "fresh"): True,
    ("pft", "estimated"): True,
    ("pbd", "fresh"): False,
    ("pba", "fresh"): False,
    ("pbu", "fresh"): False,
    ("uniform", "fresh"): True,
    ("sample", "fresh"): True,
    ("sample", "repeated"): False,
    ("bd", "fresh"): True,
    ("bd", "repeated"): False,
    ("ba", "fresh"): True,
    ("ba", "nullified"): False,
    ("lbu", "fresh"): False,
    ("plbu", "fresh"): False,
}


@pytest.mark.parametrize(("mechanism", "outcome"), HONEST)
def test_which_intervals_are_honest(mechanism: str, outcome: str) -> None:
    population = Population({Requirement(4, "0.01"): 5, Requirement(8, 4): 600})  # nobody would wait for the first
    found = [one for one in publish(population, mechanism, 200) if one.outcome == outcome and one.measured]
    assert found
    assert {release.interval() is not None for release in found} == {HONEST[mechanism, outcome]}
    assert all(release.noise_interval() is not None for release in found)


@pytest.mark.parametrize("mechanism", ["pbd", "pba", "pbu"])
def test_where_all_are_counted_in_full_a_fresh_release_has_an_interval(mechanism: str) -> None:
    for release in publish(ALIKE, mechanism):
        assert (release.interval() is not None) == release.fresh


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("uniform", {"neighbours": "replace", "known_total": 600}),  # every value is moved onto the total
        ("pft", {"neighbours": "replace", "known_total": 600}),
        ("pbd", {"smoothing": "filter"}),  # it samples
        ("pbd", {"smoothing": "filter", "estimator": "weighting"}),  # it looks first
        ("pbu", {"estimator": "weighting"}),  # classes mix
    ],
)
def test_where_none_is_known(mechanism: str, options: dict[str, Any]) -> None:
    releases = publish(MIXED, mechanism, **options)
    assert any(release.fresh for release in releases)
    assert {release.interval() for release in releases} == {None}


def test_of_a_registered_mechanism_nothing_is_known() -> None:
    row = BUILT_IN["uniform"]
    with available(Mechanism("own", "own", row.policy, row.estimator, row.smoother, shared_budget=True)):
        release = publish(ALIKE, "own", 1)[0]
    assert release.fresh
    assert release.interval() is None
    assert release.noise_interval() is not None


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [("uniform", {}), ("sample", {}), ("bd", {}), ("pbd", {}), ("uniform", {"nonnegative": True})],
)
def test_the_noise_is_the_whole_error_where_an_interval_is_stated(mechanism: str, options: dict[str, Any]) -> None:
    inside = []
    for seed in range(12):
        for release in publish(ALIKE, mechanism, 150, seed, **options):
            bounds = release.interval()
            if bounds is not None:
                actual = truth(ALIKE, release.slot - 1).sum(axis=0)
                inside.append((bounds[0] <= actual) & (actual <= bounds[1]))
    covered = np.concatenate(inside)
    assert len(covered) > 500
    assert covered.mean() > 0.95 - 4 * (0.95 * 0.05 / len(covered)) ** 0.5


def test_a_filter_states_what_it_does_not_know() -> None:
    inside = []
    for seed in range(6):
        for release in publish(MIXED, "pft", 200, seed):
            low, high = release.interval()  # type: ignore[misc]
            actual = truth(MIXED, release.slot - 1).sum(axis=0)
            inside.append((low <= actual) & (actual <= high))
    assert np.concatenate(inside).mean() > 0.93
