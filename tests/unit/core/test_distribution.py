"""PBD: the worked example to the nano-epsilon (paper, Algorithm 4; spec 8)."""

from __future__ import annotations

import pytest

from tests.unit.scripted import ScriptedNoise, publish
from wevent import Population, Publisher, Requirement


def test_the_worked_example() -> None:
    """w = 4: slot 1 publishes with ε/4, slot 2 skips, slot 3 offers ε/8; dissimilarity ε/8 each slot."""
    epsilon = 1_600_000_000
    releases = publish("pbd", {4: epsilon}, "PsP")
    assert [release.outcome for release in releases] == ["fresh", "repeated", "fresh"]
    assert [release.probe_charges.tolist() for release in releases] == [[epsilon // 8]] * 3
    assert [release.publication_charges.tolist() for release in releases] == [[epsilon // 4], [0], [epsilon // 8]]


def test_the_example_goes_on_as_old_charges_leave_the_window() -> None:
    epsilon = 1_600_000_000
    releases = publish("pbd", {4: epsilon}, "PsPPP")
    spent = [release.publication_charges.tolist()[0] for release in releases]
    assert spent == [400_000_000, 0, 200_000_000, 100_000_000, 250_000_000]  # slot 5: (800 − 200 − 100) / 2


def test_every_rounding_goes_down() -> None:
    """ε = 1.000000007, w = 4: share = ε // 8, half = ε // 2, offers are halves of what is left, floored."""
    releases = publish("pbd", {4: 1_000_000_007}, "PPPP")
    assert [release.probe_charges.tolist() for release in releases] == [[125_000_000]] * 4
    spent = [release.publication_charges.tolist()[0] for release in releases]
    assert spent == [250_000_001, 125_000_001, 62_500_000, 31_250_000]


def test_each_class_has_its_own_window() -> None:
    releases = publish("pbd", {1: 800_000_000, 2: 800_000_000, 3: 800_000_000}, "PPP")
    assert [release.publication_charges.tolist() for release in releases] == [
        [200_000_000, 200_000_000, 200_000_000],
        [200_000_000, 100_000_000, 100_000_000],
        [200_000_000, 150_000_000, 50_000_000],
    ]
    assert releases[0].probe_charges.tolist() == [400_000_000, 200_000_000, 133_333_333]


def test_a_publication_that_has_no_budget_left_to_offer_repeats() -> None:
    """The smallest legal epsilon: one nano per half and slot, halves round to nothing."""
    releases = publish("pbd", {1: 2}, "--")
    assert [release.outcome for release in releases] == ["repeated", "repeated"]
    assert releases[0].charges.tolist() == [1]


def test_the_refund_charges_what_was_really_lost() -> None:
    """With θ below a class's budget the class loses θ only; the full offer is charged without refund."""
    epsilons = {1: 2_000_000_000, 2: 200_000_000}
    full = publish("pbd", epsilons, "P")[0]
    assert full.publication_charges.tolist() == [500_000_000, 50_000_000]
    refunded = publish("pbd", epsilons, "P", refund=True)[0]
    theta = refunded.threshold
    assert theta == full.threshold
    assert refunded.publication_charges.tolist() == [min(500_000_000, theta), min(50_000_000, theta)]


def test_a_lower_threshold_is_refunded_to_the_richer_class() -> None:
    """Many strict users pull θ down to their budget: the lax class pays that only."""
    population = Population({Requirement(1, 4): 1, Requirement(2, 1): 1000})
    charges = []
    for refund in (False, True):
        publisher = Publisher(population, 2, "pbd", noise=ScriptedNoise([True]), refund=refund)
        charges.append(publisher.step([[1, 0], [400, 500]]).publication_charges.tolist())
    assert charges == [[1_000_000_000, 250_000_000], [250_000_000, 250_000_000]]


@pytest.mark.parametrize("script", ["PPPPPPPP", "ssssssss", "PsPsPsPs"])
def test_bd_is_pbd_with_the_strictest_requirement_for_all(script: str) -> None:
    mixed = publish("bd", {2: 3_000_000_000, 4: 1_000_000_000}, script)
    strict = publish("pbd", {4: 1_000_000_000}, script)
    for ours, reference in zip(mixed, strict, strict=True):
        assert ours.charges.tolist() == reference.charges.tolist() * 2
