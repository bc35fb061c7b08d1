"""`sample`: the whole of the smallest epsilon once per longest window."""

from __future__ import annotations

from tests.unit.scripted import ScriptedNoise
from wevent import Population, Publisher, Requirement


def test_published_at_slots_1_and_1_plus_w_and_repeated_in_between() -> None:
    population = Population({Requirement(2, 3): 9, Requirement(4, 1): 9})
    publisher = Publisher(population, 2, "sample", noise=ScriptedNoise([]))
    releases = [publisher.step([[slot, 0], [0, 1]]) for slot in range(9)]
    assert [release.slot for release in releases if release.fresh] == [1, 5, 9]
    assert {release.outcome for release in releases} == {"fresh", "repeated"}
    for release in releases:
        assert release.charges.tolist() == ([1_000_000_000] * 2 if release.fresh else [0, 0])
    assert [release.histogram.tolist() for release in releases] == [[0, 1]] * 4 + [[4, 1]] * 4 + [[8, 1]]
