"""`compare` measures the product: its figures are those of `wevent.Publisher`."""

import json
import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wevent import Publisher, Requirement, SeededNoise, mechanisms
from wevent.errors import InvalidOption, UnknownMechanism
from wevent.experiments import Assigner, StreamRequest, compare
from wevent.experiments.baselines import BASELINES
from wevent.experiments.datasets.synthetic import synthetic_stream
from wevent.experiments.mechanism_specs import BaselineSpec
from wevent.experiments.requirement_sampling import Registered
from wevent.experiments.trial import Assigned, run_spec
from wevent.publisher.catalogue import SIMULATED_ONLY

pytestmark = pytest.mark.slow

STREAM = synthetic_stream("sin", users=300, slots=30)
ASSIGNER = Assigner("types", ("0.6", "1.0"), (4, 8))
OPTIONS = [
    {},
    {"neighbours": "replace"},
    {"max_cells_per_user": 2},
    {"refund": True},
    {"threshold": "std"},
    {"estimator": "weighting"},
    {"smoothing": "filter"},
    {"class_weights": "equal"},
    {"nonnegative": True},
    {"neighbours": "replace", "known_total": 300},
    {"round": True},
]


def errors_of_publishers(mechanism, options, *, seed, repeats):
    """The mean squared error of the publisher itself, stepped by hand."""
    errors = []
    for repeat in range(repeats):
        trial = Assigned(ASSIGNER, seed).trial(STREAM, repeat)
        noise = SeededNoise([seed, zlib.crc32(mechanism.encode()), 0, repeat])
        publisher = Publisher(trial.population, 2, mechanism, noise=noise, **options)
        releases = np.array([publisher.step(counts).histogram for counts in trial.counts.astype(np.int64)])
        errors.append(((releases - trial.counts.sum(axis=1)) ** 2).mean(axis=1).mean())
    return errors


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_figures_are_those_of_the_publisher_for_every_mechanism_and_option(options):
    comparison = compare(STREAM, assigner=ASSIGNER, options=options, repeats=2, seed=3, timed_slots=0)
    everyone = {*mechanisms(), *SIMULATED_ONLY}
    assert {row.mechanism for row in comparison.ranked} | set(comparison.left_out) == everyone
    for row in (row for row in comparison.ranked if row.mechanism not in SIMULATED_ONLY):
        assert row.scores.amre.tolist() == errors_of_publishers(row.mechanism, options, seed=3, repeats=2)
        assert row.scores.worst_window_share.max() <= 1.0


def test_mechanisms_that_do_not_take_an_option_are_left_out_with_the_reason_unless_they_were_named():
    comparison = compare(STREAM, assigner=ASSIGNER, options={"class_weights": "equal"}, repeats=1, timed_slots=0)
    assert [row.mechanism for row in comparison.ranked] == ["pft"]
    assert "class_weights" in comparison.left_out["pbd"]


def test_figures_of_a_baseline_are_its_own_at_the_strictest_requirement():
    comparison = compare(STREAM, list(BASELINES), assigner=ASSIGNER, repeats=2, seed=3, timed_slots=5)
    assert {row.mechanism for row in comparison.ranked} == set(BASELINES)
    for row in comparison.ranked:
        for repeat in range(2):
            trial = Assigned(ASSIGNER, 3).trial(STREAM, repeat)
            published = run_spec(BaselineSpec.parse(row.mechanism), trial, 3, repeat)
            assert row.scores.amre[repeat] == pytest.approx(((published.releases - trial.truth) ** 2).mean())
            assert row.scores.worst_window_share[repeat] == published.worst_window_share <= 1.0
        assert np.isnan(row.ms_per_slot)
        assert np.isnan(row.scores.coverage).all()


def test_another_order_by_relative_error_is_told():
    comparison = compare(STREAM, ["ba", "uniform", "sample"], assigner=ASSIGNER, repeats=2, timed_slots=0)
    ranked = comparison.ranked
    told = [sentence for sentence in comparison.findings() if sentence.startswith("By relative error")]
    assert not told or ranked[0].scores.mre.mean() > min(row.scores.mre.mean() for row in ranked)
    scores = replace(ranked[0].scores, mre=np.array([9.0, 9.0]))
    worse = replace(comparison, ranked=(replace(ranked[0], scores=scores), *ranked[1:]))
    second = min(ranked[1:], key=lambda row: row.scores.mre.mean())
    assert worse.findings()[-1].startswith(f"By relative error {second.mechanism} comes first: ")
    assert worse.findings()[-1].endswith(f", {ranked[0].mechanism} has 9.")
    best = replace(ranked[0], scores=replace(ranked[0].scores, mre=np.array([0.0, 0.0])))
    assert len(replace(comparison, ranked=(best, *ranked[1:])).findings()) == 2


def test_figures_are_there_for_data_frames_and_programs():
    comparison = compare(STREAM, ["ba", "uniform"], assigner=ASSIGNER, repeats=3, timed_slots=0)
    facts = comparison.to_dict()
    for frame in (pd.DataFrame(facts["mechanisms"]), pl.DataFrame(facts["mechanisms"])):
        assert frame["mechanism"].to_list() == [row.mechanism for row in comparison.ranked]
        assert frame["amre"].to_list() == [row.amre.mean for row in comparison.ranked]
        assert (frame["amre_low"] < frame["amre"]).all()
    assert facts["findings"] == comparison.findings()
    assert (facts["users"], facts["slots"]) == (len(STREAM.user_labels), STREAM.slots)
    assert json.loads(json.dumps(facts)) == json.loads(json.dumps(comparison.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"mechanisms": ["pdb"]}, UnknownMechanism),
        ({"mechanisms": []}, InvalidOption),
        ({"options": {"treshold": "std"}}, InvalidOption),
        ({"options": {"neighbours": "nobody"}}, InvalidOption),
        ({"options": {"max_cells_per_user": 3}, "mechanisms": ["pbd"]}, InvalidOption),  # of two cells
        ({"stream": "cosine"}, InvalidOption),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(arguments, error):
    def no_run(*_):
        raise AssertionError("something ran")

    with pytest.raises(error):
        compare(**{"stream": STREAM, "progress": no_run, **arguments})


@pytest.mark.parametrize("assigner", [ASSIGNER, Registered([Requirement(4, 1), Requirement(8, 1)], np.arange(300) % 2)])
def test_two_processes_give_what_one_gives(assigner):
    once, twice = (
        compare(STREAM, ["pba", "sample"], assigner=assigner, repeats=2, timed_slots=0, per_slot=True, processes=number)
        for number in (1, 2)
    )
    assert [row.mechanism for row in once.ranked] == [row.mechanism for row in twice.ranked]
    for name, column in once.per_slot.items():
        np.testing.assert_array_equal(column, twice.per_slot[name])


def test_progress_counts_every_run_and_the_times():
    seen = []
    compare(
        STREAM,
        ["pba", "sample"],
        repeats=2,
        timed_slots=10,
        progress=lambda label, done, total: seen.append((label, done, total)),
    )
    assert seen == [
        ("pba", 0, 6),
        ("sample", 1, 6),
        ("pba", 2, 6),
        ("sample", 3, 6),
        ("pba, time", 4, 6),
        ("sample, time", 5, 6),
    ]


def test_coverage_is_of_the_stated_interval():
    """`pft` states an interval for the true count, cut off at 0: the truth lies in it far more often than not."""
    coverage = compare(StreamRequest("sin", slots=300), ["pft"], repeats=2, timed_slots=0).ranked[0].scores.coverage
    assert (coverage > 0.85).all()
