"""PBA: the worked example to the nano-epsilon (paper, Algorithm 5; spec 8)."""

from __future__ import annotations

from tests.unit.scripted import ScriptedNoise, publish
from wevent import Population, Publisher, Requirement

EPSILON = 2_400_000_000


def test_the_worked_example() -> None:
    """w = 4, 2, 3: one share at slot 1, skip, two shares at slot 3, slot 4 nullified, slot 5 offers one share.

    Classes are in ascending order, so the columns are w = 2, 3, 4: shares ε/4, ε/6, ε/8.
    """
    releases = publish("pba", {4: EPSILON, 2: EPSILON, 3: EPSILON}, "PsP-P")
    assert [release.outcome for release in releases] == ["fresh", "repeated", "fresh", "nullified", "fresh"]
    one, two = [EPSILON // 4, EPSILON // 6, EPSILON // 8], [EPSILON // 2, EPSILON // 3, EPSILON // 4]
    assert [release.probe_charges.tolist() for release in releases] == [one] * 5
    assert [release.publication_charges.tolist() for release in releases] == [one, [0] * 3, two, [0] * 3, one]


def test_a_refunded_publication_still_owns_its_whole_block() -> None:
    """▲ k = max(1, ceil(charge / share)): a charge of 1.25 shares nullifies one slot."""
    strict, lax = Requirement(4, 1), Requirement(4, 2)  # shares 125 and 250 million
    population = Population({strict: 100_000, lax: 1})
    publisher = Publisher(population, 2, "pba", noise=ScriptedNoise([False, False, True, True]), refund=True)
    counts = [[30_000, 40_000], [0, 1]]
    releases = [publisher.step(counts) for _ in range(3)]
    assert releases[2].outcome == "fresh"
    assert releases[2].threshold == 375_000_000  # three shares of the strict class
    assert releases[2].publication_charges.tolist() == [375_000_000, 375_000_000]  # the lax one pays 1.5 of its shares
    assert [publisher.step(counts).outcome for _ in range(2)] == ["nullified", "nullified"]  # three strict shares
    last = publisher.step(counts)
    assert last.outcome == "fresh"
    # slot 6: strict 6 − 3 − 2 = 1 share; lax k = ceil(1.5) = 2, so 6 − 3 − 1 = 2 shares; θ refunds the lax class again
    assert last.threshold == 125_000_000
    assert last.publication_charges.tolist() == [125_000_000, 125_000_000]


def test_a_class_that_joins_counts_from_slot_zero() -> None:
    population = Population({Requirement(4, "2.4"): 10})
    publisher = Publisher(population, 2, "pba", noise=ScriptedNoise([True, True]))
    publisher.step([[3, 3]])
    publisher.update(Population({Requirement(4, "2.4"): 10, Requirement(9, "1.8"): 10}), turnover=0)
    release = publisher.step([[3, 3], [3, 3]])
    assert release.publication_charges.tolist() == [300_000_000, 200_000_000]  # one share; min(2 − 0, 9) shares
