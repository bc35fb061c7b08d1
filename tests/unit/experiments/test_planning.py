"""Plans: levels, moves, warnings."""

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.experiments import plan
from wevent.experiments.datasets.event_file import file_stream
from wevent.experiments.datasets.synthetic import Daily

pytestmark = pytest.mark.slow

STRICT, MIDDLE, LOOSE = Requirement(20, "0.1"), Requirement(10, "0.5"), Requirement(5, "2")


def plan_for(sizes, **options):
    stream = Daily(users=1, slots=80, cell_count=4, slots_per_day=24)
    return plan(Population(sizes), stream, mechanisms=["pbd", "uniform", "sample"], repeats=3, **options)


def test_mechanisms_are_ranked_and_the_closed_form_is_met():
    forecast = plan_for({STRICT: 100, LOOSE: 900})
    errors = [row.scores.amre.mean() for row in forecast.expected]
    assert errors == sorted(errors)
    uniform = next(row for row in forecast.expected if row.mechanism == "uniform")
    assert uniform.scores.amre.mean() == pytest.approx(2 * 200**2, rel=0.15)
    assert forecast.advice()[0].startswith(f"Use {forecast.expected[0].mechanism}: ")


def test_moving_the_strictest_class_away_lowers_the_error():
    forecast = plan_for({STRICT: 100, MIDDLE: 100, LOOSE: 800})
    assert [(move.source, move.target, move.users) for move in forecast.moves] == [
        (STRICT, MIDDLE, 100),
        (STRICT, LOOSE, 25),
        (MIDDLE, LOOSE, 25),
        (MIDDLE, STRICT, 25),
        (LOOSE, STRICT, 200),
    ]
    assert forecast.moves[0].ratio.mean < 1.0
    facts = forecast.to_dict()
    assert [row["from"]["window"] for row in facts["moves"]] == [20, 20, 10, 10, 5]
    assert all(row["amre_ratio_low"] <= row["amre_ratio"] <= row["amre_ratio_high"] for row in facts["moves"])
    assert [row["mechanism"] for row in facts["mechanisms"]] == [row.mechanism for row in forecast.expected]
    assert all(row["typical_error_low"] <= row["typical_error"] for row in facts["mechanisms"])
    assert plan_for({STRICT: 100}).moves == ()


def test_classes_of_one_user_are_warned_of():
    forecast = plan_for({STRICT: 1, MIDDLE: 3, LOOSE: 996})
    assert "has one user. Class sizes are public" in forecast.warnings[2] + forecast.warnings[0] + forecast.warnings[1]
    assert any("3 users only" in warning for warning in forecast.warnings)
    assert any("1 of 1000 users hold the most demanding level" in warning for warning in forecast.warnings)
    assert plan_for({MIDDLE: 500, LOOSE: 500}).warnings == ()


def test_a_sample_is_stretched_to_the_planned_population(tmp_path):
    path = tmp_path / "sample.csv"
    path.write_text(
        "slot,user,cell\n" + "".join(f"{slot},{user},{user % 2}\n" for user in range(10) for slot in range(30))
    )
    forecast = plan(Population({MIDDLE: 300, LOOSE: 700}), file_stream(path), mechanisms=["sample"], repeats=2)
    assert forecast.mean_count == pytest.approx(500)  # everyone is always there, in one of two cells
    assert set(forecast.to_dict()) == {"classes", "mean_count", "mechanisms", "moves", "warnings", "advice"}
    assert np.isfinite(forecast.expected[0].scores.amre).all()


def test_options_of_the_publisher_reach_the_runs_and_moves():
    plain, replaced = (
        plan_for({STRICT: 100, LOOSE: 900}, options=options) for options in ({}, {"neighbours": "replace"})
    )
    uniform, twice = (
        next(row.scores.amre.mean() for row in forecast.expected if row.mechanism == "uniform")
        for forecast in (plain, replaced)
    )
    assert twice == pytest.approx(4 * uniform, rel=0.2)  # twice the noise
    assert len(replaced.moves) == len(plain.moves)


def test_without_a_stream_one_is_invented():
    forecast = plan(Population({LOOSE: 200}), mechanisms=["uniform"], repeats=1)
    assert forecast.stream == "daily"
    assert forecast.mean_count == pytest.approx(200 * 0.5 / 10, rel=0.1)
