"""The publisher: one call is one slot, and an error is no call."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wevent
from tests.unit.counting.test_counts import BAD
from tests.unit.scripted import ScriptedNoise
from wevent import (
    InvalidCounts,
    InvalidPopulation,
    Population,
    Publisher,
    Requirement,
    Roster,
    SecureNoise,
    SeededNoise,
    mechanisms,
)
from wevent.core.mechanism import Policy
from wevent.publisher.catalogue import find_mechanism

POPULATION = Population({Requirement(2, 1): 400, Requirement(5, 2): 300})
COUNTS = [[100, 200], [30, 40]]


def publisher(mechanism: str = "pbd", seed: int = 3, **options: Any) -> Publisher:
    return Publisher(POPULATION, 2, mechanism, noise=SeededNoise(seed), **options)


@pytest.mark.parametrize("case", BAD)
def test_bad_counts_change_nothing_and_the_slot_can_be_stepped_again(case: str) -> None:
    """They are refused before any mechanism is reached: one mechanism stands for all."""
    disturbed, quiet = publisher(), publisher()
    for slot in range(1, 4):
        before = disturbed.state()
        with pytest.raises(InvalidCounts):
            disturbed.step(BAD[case])
        assert disturbed.state() == before
        assert disturbed.slot == slot
        assert disturbed.step(COUNTS).to_dict() == quiet.step(COUNTS).to_dict()
    assert disturbed.state() == quiet.state()


def test_the_names_of_the_issue() -> None:
    roster = Roster.from_columns(["a", "b", "c"], [40, 120, 40], [1.0, "0.6", 1.0])
    made = Publisher(roster.population, cells=["north", "south"], mechanism="pba", noise=SeededNoise(7))
    counts = roster.count(users=["a", "b", "x"], cells=["north", "south", "south"], domain=made.cells)
    assert counts.rejected == 1
    release = made.step(counts)
    assert release.slot == 1
    assert release.mechanism == made.mechanism == "pba"
    assert release.outcome in ("fresh", "repeated", "nullified")
    assert list(release.cells) == ["north", "south"]
    assert made.ledger.remaining().tolist() == [
        one.nano - spent for one, spent in zip(roster.population.classes, made.ledger.spent().tolist(), strict=True)
    ]
    assert made.slot == 2
    assert "pba" in repr(made)


def test_the_default_mechanism_is_pft_with_anchors_and_secure_noise() -> None:
    made = Publisher(POPULATION, cells=100)
    assert made.mechanism == "pft"
    assert made._options.class_weights == "calibrated"
    assert not made.seeded
    assert publisher().seeded
    assert isinstance(made._noise, SecureNoise)


def test_a_run_is_lazy() -> None:
    made = publisher("uniform")
    releases = made.run(itertools.repeat(COUNTS))
    assert made.slot == 1
    assert [release.slot for release in itertools.islice(releases, 5)] == [1, 2, 3, 4, 5]
    assert made.slot == 6


@pytest.mark.parametrize("mechanism", ["pbd", "pba", "pbu"])
def test_replace_doubles_the_noise(mechanism: str) -> None:
    one = Population({Requirement(2, 1): 400})
    errors = []
    for neighbours in ("add_remove", "replace"):
        noise = ScriptedNoise(itertools.repeat(True))
        release = Publisher(one, 2, mechanism, noise=noise, neighbours=neighbours).step([[1, 2]])
        errors.append(release.noise.scale)
    assert errors[1] == pytest.approx(2 * errors[0])


def test_more_cells_per_user_cost_more_noise() -> None:
    one = Population({Requirement(2, 1): 400})
    scales = [
        Publisher(one, 3, "pbu", noise=ScriptedNoise([]), max_cells_per_user=k).step([[400, 0, 0]]).noise.scale
        for k in (1, 2, 3)
    ]
    assert scales == pytest.approx([2, 4, 6])


def test_with_several_cells_per_user_records_are_thinned_by_a_part_of_the_budget() -> None:
    """▲ p_g = expm1(e_g/k)/expm1(θ/k)."""
    seen = []

    class Watching(ScriptedNoise):
        def binomial(self, counts, permit):
            seen.append(permit.exact_probabilities() / 2.0**64)
            return super().binomial(counts, permit)

    population = Population({Requirement(1, "0.5"): 2, Requirement(1, 2): 3000})
    release = Publisher(population, 3, "pbu", noise=Watching([]), max_cells_per_user=2).step([[1, 1, 0], [5, 5, 5]])
    assert release.threshold == 2 * 10**9
    assert seen[0][0] == pytest.approx(np.expm1(0.25) / np.expm1(1.0), rel=1e-12)


def test_local_mechanisms_ignore_the_neighbouring_relation() -> None:
    releases = [
        Publisher(POPULATION, 2, "plbu", noise=SeededNoise(5), neighbours=neighbours).step(COUNTS).to_dict()
        for neighbours in ("add_remove", "replace")
    ]
    assert releases[0] == releases[1]


def test_an_update_takes_effect_in_the_next_slot() -> None:
    made = publisher("pbu")
    made.step(COUNTS)
    grown = Population({Requirement(2, 1): 4000, Requirement(5, 2): 300, Requirement(7, 1): 50})
    with pytest.raises(InvalidCounts):
        made.step([[1000, 200], [30, 40]])
    made.update(grown, turnover=0)
    assert made.population == grown
    release = made.step([[1000, 200], [30, 40], [1, 1]])
    assert release.slot == 2
    assert len(release.charges) == 3
    with pytest.raises(InvalidCounts):
        made.step(COUNTS)


@pytest.mark.parametrize("mechanism", ["pbd", "uniform"])
@pytest.mark.parametrize("wrong", [None, {}, "everyone"])
def test_an_update_that_is_refused_changes_nothing(mechanism: str, wrong: Any) -> None:
    made = publisher(mechanism)
    made.step(COUNTS)
    before = made.state()
    with pytest.raises(InvalidPopulation):
        made.update(wrong, turnover=0)
    assert made.state() == before


LARGEST = np.iinfo(np.int64).max


def greedy_publisher(probe: int | None, offer: int, **options: Any) -> Publisher:
    """A publisher whose policy asks for these numbers in every slot, with secure noise."""

    class Greedy:
        def probe(self, ledger: Any) -> Any:
            return None if probe is None else np.full(len(ledger.windows), probe)

        def offer(self, ledger: Any, history: Any) -> Any:
            return np.full(len(ledger.windows), offer)

    policy: Policy = Greedy()
    wevent.register(replace(find_mechanism("pbd"), name="greedy", policy=lambda declared, options: policy))
    return Publisher(POPULATION, 2, "greedy", **options)


@pytest.mark.parametrize(
    ("probe", "offer"),
    [
        (None, LARGEST),
        (1, LARGEST),
        (10**8, LARGEST),
        (LARGEST, 1),
        (LARGEST, LARGEST),
        (2**62, 2**62),
        (2**63 - 10, 20),
    ],
)
@pytest.mark.parametrize("estimator", ["sampling", "weighting"])
def test_a_policy_that_asks_for_the_largest_number_gets_nothing(probe: int | None, offer: int, estimator: str) -> None:
    """▲ The two parts must not wrap into something that fits: noise for 10^18 nano-epsilons is none."""
    made = greedy_publisher(probe, offer, estimator=estimator)
    before = made.ledger.remaining().tolist()
    for slot in range(1, 4):
        release = made.step(COUNTS)
        assert (release.slot, release.outcome) == (slot, "repeated")
        assert release.histogram.tolist() == [0, 0]
        assert release.dissimilarity is None
        assert not release.charges.any()
    assert made.ledger.remaining().tolist() == before


def test_a_budget_too_small_for_whole_noise_repeats_in_the_middle_of_a_stream() -> None:
    """pbd halves what is left: 8 cells per user under `replace` need 4 nano-epsilons, what is less is not spent."""
    people = Population({Requirement(1000, "8000e-9"): 50})
    noise = ScriptedNoise(itertools.repeat(True))
    options: dict[str, Any] = {"neighbours": "replace", "max_cells_per_user": 8, "estimator": "weighting"}
    made = Publisher(people, 8, "pbd", noise=noise, **options)
    releases = list(made.run([[[5] * 8]] * 14))
    assert [release.threshold for release in releases if release.fresh] == [2000, 1000, 500, 250, 125, 62, 31, 16, 8, 4]
    assert [release.outcome for release in releases[10:]] == ["repeated"] * 4
    assert all(release.threshold == 0 and not release.publication_charges.any() for release in releases[10:])
    assert all(release.noise.scale <= 2.0**52 for release in releases)


@pytest.mark.parametrize("mechanism", [name for name in mechanisms() if not name.endswith("lbu")])
def test_noise_of_the_least_epsilon_is_drawn_whole(mechanism: str) -> None:
    """The smallest shares there are, with real noise: no value is at an end of 64 bits."""
    people = Population({Requirement(50, "100e-9"): 50})
    made = Publisher(people, 4, mechanism, neighbours="replace", max_cells_per_user=2)
    for release in made.run([[[5] * 4]] * 12):
        assert np.abs(release.histogram).max() < 2.0**58
