"""Plans: levels, moves, warnings."""

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.errors import InvalidOption, InvalidRequirement
from wevent.experiments.choices import parse_choices
from wevent.experiments.plan import make_plan, parse_class, population_of, to_dict
from wevent.experiments.streams.file import file_stream
from wevent.experiments.streams.synthetic import Daily

STRICT, MIDDLE, LOOSE = Requirement(20, "0.1"), Requirement(10, "0.5"), Requirement(5, "2")


def plan_for(sizes, **options):
    stream = Daily(users=1, slots=80, cell_count=4, slots_per_day=24)
    return make_plan(
        stream, Population(sizes), parse_choices(["pbd", "uniform", "sample"]), repeats=3, seed=1, **options
    )


def test_classes_are_read_as_numbers_or_words():
    assert parse_class("120:0.6=7000") == (Requirement(120, "0.6"), 7000)
    assert parse_class("High/Large=5") == (Requirement(120, "0.1"), 5)
    assert population_of([parse_class("5:1=2"), parse_class("5:1.0=3")]) == Population({Requirement(5, 1): 5})
    for text in ("120:0.6", "=5", "a:b=5", "120=5", "120:0.6=many"):
        with pytest.raises(InvalidOption):
            parse_class(text)
    with pytest.raises(InvalidRequirement):
        parse_class("Highest/Large=5")


def test_mechanisms_are_ranked_and_the_closed_form_is_met():
    plan = plan_for({STRICT: 100, LOOSE: 900})
    errors = [one.scores.amre.mean() for one in plan.expected]
    assert errors == sorted(errors)
    uniform = next(one for one in plan.expected if one.mechanism == "uniform")
    assert uniform.scores.amre.mean() == pytest.approx(2 * 200**2, rel=0.15)
    assert plan.advice()[0].startswith(f"Use {plan.expected[0].mechanism}: ")


def test_moving_the_strictest_class_away_lowers_the_error():
    plan = plan_for({STRICT: 100, MIDDLE: 100, LOOSE: 800})
    assert [(move.source, move.target, move.users) for move in plan.moves] == [
        (STRICT, MIDDLE, 100),
        (STRICT, LOOSE, 25),
        (MIDDLE, LOOSE, 25),
        (MIDDLE, STRICT, 25),
        (LOOSE, STRICT, 200),
    ]
    assert plan.moves[0].ratio.mean < 1.0
    assert plan_for({STRICT: 100}).moves == ()


def test_classes_of_one_user_are_warned_of():
    plan = plan_for({STRICT: 1, MIDDLE: 3, LOOSE: 996})
    assert "has one user. Class sizes are public" in plan.warnings[2] + plan.warnings[0] + plan.warnings[1]
    assert any("3 users only" in warning for warning in plan.warnings)
    assert any("1 of 1000 users hold the most demanding level" in warning for warning in plan.warnings)
    assert plan_for({MIDDLE: 500, LOOSE: 500}).warnings == ()


def test_a_sample_is_stretched_to_the_planned_population(tmp_path):
    path = tmp_path / "sample.csv"
    path.write_text(
        "slot,user,cell\n" + "".join(f"{slot},{user},{user % 2}\n" for user in range(10) for slot in range(30))
    )
    plan = make_plan(
        file_stream(path), Population({MIDDLE: 300, LOOSE: 700}), parse_choices(["sample"]), repeats=2, seed=1
    )
    assert plan.mean_count == pytest.approx(500)  # everyone is always there, in one of two cells
    assert set(to_dict(plan)) == {"classes", "mean_count", "mechanisms", "moves", "warnings", "advice"}
    assert np.isfinite(plan.expected[0].scores.amre).all()
