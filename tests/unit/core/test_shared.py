"""One budget for all: strictest requirement over the declared classes, fixed at the start."""

from __future__ import annotations

import pytest

from tests.unit.scripted import ScriptedNoise
from wevent import InvalidPopulation, Population, Publisher, Requirement

WIDE, STRICT, EASY = Requirement(4, 2), Requirement(2, 1), Requirement(2, 3)
SHARED = ["bd", "ba", "uniform", "sample", "lbu"]


@pytest.mark.parametrize("mechanism", SHARED)
def test_smallest_epsilon_and_largest_window_even_of_different_classes(mechanism: str) -> None:
    both = Publisher(Population({WIDE: 5, STRICT: 5}), 2, mechanism, noise=ScriptedNoise([True] * 9))
    one = Publisher(Population({Requirement(4, 1): 5}), 2, mechanism, noise=ScriptedNoise([True] * 9))
    for _ in range(9):
        ours, reference = both.step([[1, 1], [1, 1]]), one.step([[1, 1]])
        assert ours.outcome == reference.outcome
        assert ours.charges.tolist() == reference.charges.tolist() * 2


@pytest.mark.parametrize("mechanism", SHARED)
def test_declared_classes_count_without_members_and_after_they_left(mechanism: str) -> None:
    declared = Population({WIDE: 0, STRICT: 0, EASY: 5})
    publisher = Publisher(declared, 2, mechanism, noise=ScriptedNoise([True] * 9))
    twin = Publisher(declared, 2, mechanism, noise=ScriptedNoise([True] * 9))
    twin.update(Population({EASY: 5}), turnover=0)
    for _ in range(9):
        full, alone = publisher.step([[0, 0], [1, 1], [0, 0]]), twin.step([[1, 1]])
        assert full.charges.tolist() == alone.charges.tolist() * 3
    twin.update(declared, turnover=0)
    assert twin.ledger.spent().tolist() == publisher.ledger.spent().tolist(), "every declared class is charged"


@pytest.mark.parametrize("mechanism", SHARED)
@pytest.mark.parametrize("stricter", [Requirement(5, 2), Requirement(2, "0.9")])
def test_a_stricter_class_cannot_join_later(mechanism: str, stricter: Requirement) -> None:
    publisher = Publisher(Population({WIDE: 5, STRICT: 5}), 2, mechanism, noise=ScriptedNoise([]))
    before = publisher.state()
    with pytest.raises(InvalidPopulation, match="Declare the class at the start") as caught:
        publisher.update(Population({WIDE: 5, stricter: 1}), turnover=1)
    assert caught.value.requirement == stricter
    assert publisher.state() == before


@pytest.mark.parametrize("mechanism", SHARED)
def test_a_milder_class_may_join_and_pays_the_same(mechanism: str) -> None:
    publisher = Publisher(Population({WIDE: 5, STRICT: 5}), 2, mechanism, noise=ScriptedNoise([True] * 9))
    publisher.step([[1, 1], [1, 1]])
    publisher.update(Population({WIDE: 5, STRICT: 5, EASY: 5}), turnover=0)
    for _ in range(8):
        release = publisher.step([[1, 1]] * 3)
        assert len(set(release.charges.tolist())) == 1
