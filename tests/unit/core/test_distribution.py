"""PBD: the worked example to the nano-epsilon (paper, Algorithm 4; spec 8)."""

from __future__ import annotations

from tests.unit.scripted import ScriptedNoise, publish
from wevent import Population, Publisher, Requirement


def test_the_worked_example() -> None:
    """w = 4: slot 1 publishes with ε/4, slot 2 skips, slot 3 offers ε/8; dissimilarity ε/8 each slot."""
    epsilon = 1_600_000_000
    releases = publish("pbd", {4: epsilon}, "PsP")
    assert [release.outcome for release in releases] == ["fresh", "repeated", "fresh"]
    assert [release.probe_charges.tolist() for release in releases] == [[epsilon // 8]] * 3
    assert [release.publication_charges.tolist() for release in releases] == [[epsilon // 4], [0], [epsilon // 8]]


def test_a_lower_threshold_is_refunded_to_the_richer_class() -> None:
    """Many strict users pull θ down to their budget: the lax class pays that only."""
    population = Population({Requirement(1, 4): 1, Requirement(2, 1): 1000})
    charges = []
    for refund in (False, True):
        publisher = Publisher(population, 2, "pbd", noise=ScriptedNoise([True]), refund=refund)
        charges.append(publisher.step([[1, 0], [400, 500]]).publication_charges.tolist())
    assert charges == [[1_000_000_000, 250_000_000], [250_000_000, 250_000_000]]
