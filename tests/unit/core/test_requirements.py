"""Requirements, levels and populations: the public promise in numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from wevent import InvalidPopulation, InvalidRequirement, Levels, Population, Requirement


def test_a_requirement_is_exact_and_counts_its_budget_in_shares() -> None:
    requirement = Requirement(window=3, epsilon="1.000000001")
    assert (requirement.window, requirement.nano, requirement.share) == (3, 1_000_000_001, 166_666_666)
    assert requirement.epsilon == pytest.approx(1.0)
    assert Requirement(np.int64(3), 1) == Requirement(3, 1.0)


def test_the_smallest_and_largest_legal_epsilons() -> None:
    assert Requirement(40, "80e-9").share == 1
    assert Requirement(1, 50).nano == 50_000_000_000
    with pytest.raises(InvalidRequirement, match="80e-9"):
        Requirement(40, "79e-9")
    with pytest.raises(InvalidRequirement):
        Requirement(1, "50.000000001")


def test_a_stored_requirement_may_have_no_share() -> None:
    """The corner of the classes is a requirement that no user can choose (spec 15.1)."""
    corner = Requirement.from_nano(40, 1)
    assert (corner.window, corner.nano, corner.share) == (40, 1, 0)
    assert pickle.loads(pickle.dumps(corner)) == corner
    for window, nano in ((40, 0), (40, -1), (1, 50 * 10**9 + 1), (0, 1), (10**7 + 1, 1), (True, 1)):
        with pytest.raises(InvalidRequirement):
            Requirement.from_nano(window, nano)


def test_requirements_are_ordered_by_window_then_epsilon() -> None:
    wanted = [Requirement(2, 0.1), Requirement(2, 0.2), Requirement(10, 0.05)]
    assert sorted([wanted[2], wanted[0], wanted[1]]) == wanted
    assert Requirement(2, 0.1) != (2, 0.1)
    assert len({Requirement(2, 0.1), Requirement(2, "0.1")}) == 1


def test_a_requirement_does_not_change_and_survives_pickling_exactly() -> None:
    requirement = Requirement(7, "0.123456789")
    with pytest.raises(AttributeError, match="make a new one"):
        requirement.window = 1  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(requirement))
    assert again == requirement
    assert again.nano == 123_456_789
    assert Requirement.from_nano(7, 123_456_789) == requirement


@pytest.mark.parametrize("privacy", [("High", 0.1), ("Medium", 0.5), ("Low", 0.9)])
@pytest.mark.parametrize("window", [("Small", 40), ("Medium", 80), ("Large", 120)])
def test_the_default_levels(privacy: tuple[str, float], window: tuple[str, int]) -> None:
    assert Levels.default().requirement(privacy[0], window[0]) == Requirement(window[1], privacy[1])


def test_own_levels_are_checked_when_they_are_declared() -> None:
    assert Levels({"x": 1}, {"y": 2}).requirement("x", "y") == Requirement(2, 1)
    with pytest.raises(InvalidRequirement):
        Levels({"x": 1, "none": 0}, {"y": 2})
    assert pickle.loads(pickle.dumps(Levels.default())).requirement("Low", "Small") == Requirement(40, 0.9)


def test_classes_are_ascending_whatever_order_they_were_declared_in() -> None:
    population = Population({Requirement(120, 0.6): 7, Requirement(40, 1.0): 3, Requirement(40, 0.5): 0})
    assert population.classes == (Requirement(40, 0.5), Requirement(40, 1.0), Requirement(120, 0.6))
    assert population.sizes.tolist() == [0, 3, 7]
    assert population.sizes.dtype == np.int64
    assert not population.sizes.flags.writeable
    assert [population.index(one) for one in population.classes] == [0, 1, 2]
    assert population.users == 10
    assert len(population) == 3
    assert Requirement(40, 1) in population
    assert "10 users" in repr(population)


def test_populations_are_equal_by_value() -> None:
    sizes = {Requirement(40, 1.0): 3, Requirement(120, 0.6): 7}
    assert Population(sizes) == Population(dict(reversed(sizes.items())))
    assert hash(Population(sizes)) == hash(Population(dict(reversed(sizes.items()))))
    assert Population(sizes) != Population({**sizes, Requirement(40, 1.0): 4})
    assert Population(sizes) != "a population"


def test_own_users_are_a_part_of_each_class() -> None:
    one, other = Requirement(40, 1.0), Requirement(120, 0.6)
    sizes = {one: 3, other: 7}
    population = Population(sizes, {other: 5})
    assert population.own.tolist() == [0, 5]
    assert not population.own.flags.writeable
    assert Population(sizes).own.tolist() == [3, 7]
    assert Population(sizes) == Population(sizes, sizes) != population
    assert hash(Population(sizes)) == hash(Population(sizes, sizes)) != hash(population)
    assert pickle.loads(pickle.dumps(population)) == population
    for wrong in ({other: 8}, {other: -1}, {other: True}, {Requirement(1, 1): 1}, {"other": 1}, 5):
        with pytest.raises(InvalidPopulation):
            Population(sizes, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("own", "chosen"), [((1, 4), (1, 4)), ((0, 5), (0, 5)), ((0, 4), (3, 7)), ((0, 0), (3, 7))])
def test_a_threshold_is_for_own_users_unless_they_are_under_half(own: tuple[int, int], chosen: tuple[int, int]) -> None:
    classes = Requirement(40, 1.0), Requirement(120, 0.6)
    population = Population(dict(zip(classes, (3, 7), strict=True)), dict(zip(classes, own, strict=True)))
    assert population.threshold_sizes.tolist() == list(chosen)


def test_an_undeclared_requirement_has_no_row() -> None:
    with pytest.raises(InvalidPopulation) as caught:
        Population({Requirement(40, 1.0): 3}).index(Requirement(41, 1.0))
    assert caught.value.requirement == Requirement(41, 1.0)


def test_as_many_users_as_sums_of_64_bits_can_take() -> None:
    """2^40 in all classes together: times a weight of 2^20, plus noise below 2^62, no measurement wraps."""
    one, other = Requirement(40, 1.0), Requirement(120, 0.6)
    assert Population({one: 2**40}).users == 2**40
    assert Population({one: 2**39, other: np.int64(2**39)}).users == 2**40
    for sizes in ({one: 2**40 + 1}, {one: 2**63}, {one: 2**39, other: 2**39 + 1}, {one: 2**40, other: 1}):
        with pytest.raises(InvalidPopulation, match=str(2**40)):
            Population(sizes)
    many = {Requirement(1, f"{1 + row}e-3"): np.int64(2**40) for row in range(40)}
    with pytest.raises(InvalidPopulation, match="64 bits"):
        Population(many)


def test_a_level_is_a_pair_of_words_or_a_name_of_its_own() -> None:
    levels = Levels({"High": "0.1", "Low": 1}, {"day": 24}, {"strict": "High/day"})
    assert levels.choose("strict") == levels.choose("High/day") == Requirement(24, "0.1")
    assert list(levels.offered()) == ["High/day", "Low/day", "strict"]
    assert pickle.loads(pickle.dumps(levels)) == levels
    for wrong in ("High", "high/day", "day/High", "", "/", "Strict"):
        with pytest.raises(InvalidRequirement, match=r"Unknown level .*(Did you mean|High/day, Low/day, strict)"):
            levels.choose(wrong)


@pytest.mark.parametrize("combined", [{"x": "High"}, {"x": "High/Tiny"}, {"x/y": "High/Small"}, {"x": 3}])
def test_a_combined_name_stands_for_a_pair(combined: dict[str, str]) -> None:
    with pytest.raises(InvalidRequirement):
        Levels(combined=combined)
