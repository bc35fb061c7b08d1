"""Pictures of comparisons and plans: what is written in them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from wevent import Population, Requirement
from wevent.experiments import Forecast, compare, plan
from wevent.experiments.datasets.city import City
from wevent.experiments.datasets.synthetic import Daily
from wevent.experiments.figures import draw_comparison, draw_plan
from wevent.experiments.forecast import Move
from wevent.experiments.intervals import Interval

pytestmark = pytest.mark.slow

SMALL = Daily(users=200, slots=30, cell_count=3, slots_per_day=24)


def texts(path):
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compared():
    return compare(SMALL, ["pft", "pba", "uniform", "lbu"], repeats=2, timed_slots=0)


@pytest.fixture(scope="module")
def planned():
    population = Population({Requirement(20, "0.5"): 100, Requirement(5, "2"): 300})
    return plan(population, SMALL, mechanisms=["uniform", "pba"], repeats=2)


def test_a_comparison_names_every_mechanism_and_says_of_how_many(compared, tmp_path):
    draw_comparison(compared, tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert {row.mechanism for row in compared.ranked} <= set(found)
    facts = next(text for text in found if "seed" in text)
    assert "200 users, 3 cells, 30 slots" in facts
    assert "2 repeats" in facts


def test_a_band_is_drawn_only_where_it_is_for_the_true_count(compared, tmp_path):
    by_name = {row.mechanism: row for row in compared.ranked}
    assert by_name["pft"].example.has_valid_interval.all()
    assert not by_name["pba"].example.has_valid_interval.all()
    for name, said in (
        ("pft", "Band: the 95 % interval for the true count"),
        ("pba", "No band: pba states no interval"),
    ):
        draw_comparison(replace(compared, ranked=(by_name[name],)), tmp_path / "a.svg")
        assert any(text.startswith(said) for text in texts(tmp_path / "a.svg"))


def test_a_title_says_what_the_findings_say_of_a_first_that_most_repeats_contradict(compared, tmp_path):
    steady, often = (
        replace(row, scores=replace(row.scores, amre=np.array(errors)))
        for row, errors in zip(compared.ranked, ([2.0] * 41, [1.0, 1.01] * 20 + [90.0]), strict=False)
    )
    odd = replace(compared, ranked=(steady, often))
    assert "in a typical repeat, but fewer large ones" in odd.findings()[0]
    draw_comparison(odd, tmp_path / "a.svg")
    assert f"in a typical repeat {often.mechanism} has a smaller one" in " ".join(texts(tmp_path / "a.svg"))


def test_one_repeat_has_no_whiskers_and_says_so(compared, tmp_path):
    once = compare(SMALL, ["pba", "uniform"], repeats=1, timed_slots=0)
    draw_comparison(once, tmp_path / "a.svg")
    assert any("one repeat, so no interval" in text for text in texts(tmp_path / "a.svg"))


def test_a_city_has_days_and_districts(tmp_path):
    comparison = compare(City(200, 300), ["pft", "sample"], repeats=1, timed_slots=0)
    draw_comparison(comparison, tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert "day 2" in found
    assert any("200 users, 8 cells, 300 slots of 5 min" in text for text in found)


def test_a_plan_shows_every_move_with_its_interval(planned, tmp_path):
    strict, loose = Requirement(20, "0.5"), Requirement(5, "2")
    ratios = [Interval(1.0, 1.0, 1.0), Interval(0.9, 0.85, 0.95), Interval(210.95, 150.0, 300.0)]
    moves = tuple(Move(strict, loose, number + 1, ratio) for number, ratio in enumerate(ratios))
    draw_plan(replace(planned, moves=moves), tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    for text in ("±0%   (±0% to ±0%)", "-10%   (-15% to -5%)", "211 times   (150 to 300 times)"):
        assert text in found
    assert planned.advice()[0] in found
    assert sum("user" in text and ":" in text for text in found) >= 3


def test_a_plan_without_moves_or_intervals_is_drawn_too(planned, tmp_path):
    once = [replace(row, scores=_first(row.scores)) for row in planned.expected]
    alone: Forecast = replace(planned, expected=tuple(once), moves=())
    draw_plan(alone, tmp_path / "a.svg")
    assert any("none with one repeat" in text for text in texts(tmp_path / "a.svg"))


def _first(scores):
    return replace(scores, **{name: np.asarray(values)[:1] for name, values in vars(scores).items()})
