"""Requirements for the users of a stream."""

import numpy as np
import pytest

from wevent import Requirement
from wevent.errors import InvalidOption, InvalidRequirement, InvalidRoster
from wevent.experiments.requirement_sampling import Assigner

USERS = np.arange(1_000)


def of_users(assignment):
    return [assignment.population.classes[row] for row in assignment.rows]


def test_types_are_contiguous_tenths():
    assignment = Assigner("types").assign(USERS, seed=[1, 2])
    requirements = of_users(assignment)
    for tenth in range(10):
        assert len(set(requirements[tenth * 100 : tenth * 100 + 100])) == 1
    assert assignment.population.users == 1_000
    assert set(requirements) == set(assignment.population.classes)


def test_types_draw_epsilon_and_window_uniformly_and_independently():
    seen = np.zeros((3, 3))
    for repeat in range(300):
        for one, size in Assigner("types").assign(USERS, seed=[1, repeat]).population.items():
            seen[[40, 80, 120].index(one.window), ["0.6", "0.8", "1.0"].index(f"{one.epsilon:.1f}")] += size / 100
    assert seen.sum() == 3_000
    assert (abs(seen - 3_000 / 9) < 5 * np.sqrt(3_000 / 9)).all()


def test_equal_and_independent_use_every_combination():
    equal = Assigner("equal").assign(USERS, seed=[1])
    assert len(equal.population) == 9
    assert equal.population.sizes.max() - equal.population.sizes.min() <= 1
    independent = Assigner("independent").assign(USERS, seed=[1])
    assert len(independent.population) == 9
    assert independent.population.sizes.std() > 1
    assert (independent.rows != Assigner("independent").assign(USERS, seed=[2]).rows).any()


def test_a_ratio_makes_two_groups():
    assignment = Assigner("ratio:0.3", ["0.6", "1.0"], [120]).assign(USERS, seed=[1])
    assert dict(assignment.population.items()) == {Requirement(120, "0.6"): 700, Requirement(120, "1.0"): 300}
    assert of_users(assignment)[299:301] == [Requirement(120, "1.0"), Requirement(120, "0.6")]


def test_a_csv_registers_its_users_and_no_others(tmp_path):
    path = tmp_path / "requirements.csv"
    path.write_text("user,window,epsilon\nann,40,0.6\nbob,80,1.001\neve,40,0.6\n")
    assignment = Assigner(f"csv:{path}").assign(np.array(["ann", "bob", "zoe"]), seed=[1])
    assert assignment.rows.tolist() == [0, 1, -1]
    assert dict(assignment.population.items()) == {Requirement(40, "0.6"): 2, Requirement(80, "1.001"): 1}


def test_a_csv_may_use_the_words_of_the_levels(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text("user,privacy,window\n0,High,Large\n1,Low,Small\n")
    assert len(Assigner(f"csv:{path}").assign(np.arange(2), seed=[1]).population) == 2


def test_what_cannot_be_assigned(tmp_path):
    for kind in ("type", "ratio:2", "ratio:x", "csv:nothing.csv"):
        with pytest.raises(InvalidOption):
            Assigner(kind).assign(USERS, seed=[1])
    with pytest.raises(InvalidRequirement):
        Assigner("equal", ["0"], [40]).assign(USERS, seed=[1])
    for content in ("user,epsilon\n1,2\n", "user,window,epsilon\n1,40,1\n1,40,1\n", "user,window,epsilon\n"):
        (tmp_path / "a.csv").write_text(content)
        with pytest.raises(InvalidRoster):
            Assigner(f"csv:{tmp_path / 'a.csv'}").assign(USERS, seed=[1])
