"""One repeat: its people, the publisher over their slots, and their figures."""

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.experiments.datasets.synthetic import synthetic_stream
from wevent.experiments.mechanism_specs import MechanismSpec
from wevent.experiments.requirement_sampling import Assigner
from wevent.experiments.scores import Scores, SlotErrors, score
from wevent.experiments.trial import Assigned, Published, Trial, milliseconds_per_slot, publish

POPULATION = Population({Requirement(3, 1): 40, Requirement(5, 2): 60})
TRIAL = Trial(POPULATION, np.tile(np.array([[[10, 20], [30, 25]]], dtype=np.int32), (30, 1, 1)))


@pytest.mark.parametrize("label", ["pft", "pbd", "ba:std", "plbu"])
def test_what_is_published_is_what_the_publisher_releases(label):
    spec = MechanismSpec.parse(label)
    published = publish(spec, TRIAL, SeededNoise([4]))
    publisher = Publisher(POPULATION, 2, spec.name, noise=SeededNoise([4]), **spec.options)
    for slot, release in enumerate(publisher.run(TRIAL.counts.astype(np.int64))):
        assert published.releases[slot].tolist() == release.histogram.tolist()
        assert published.fresh[slot] == release.fresh
        interval = release.noise_interval()
        if interval is None:
            assert np.isnan(published.low[slot]).all()
        else:
            np.testing.assert_array_equal((published.low[slot], published.high[slot]), interval)


def test_repeats_have_people_of_their_own():
    stream, draw = synthetic_stream("sin", users=100, slots=20), Assigned(Assigner(), 1)
    first, again, second = (draw.trial(stream, repeat) for repeat in (0, 0, 1))
    np.testing.assert_array_equal(first.counts, again.counts)
    assert first.truth.tolist() != second.truth.tolist()
    assert first.truth.sum(axis=1).tolist() == [100] * 20


def test_time_is_taken_over_the_slots_there_are():
    assert milliseconds_per_slot(MechanismSpec.parse("sample"), TRIAL, slots=1_000) > 0.0


def test_figures_are_means_over_slots_and_empty_slots_have_no_relative_error():
    trial = Trial(POPULATION, np.array([[[6, 2]], [[0, 0]], [[4, 4]]], dtype=np.int32))
    releases, fresh = np.array([[3.0, 3.0], [-1.0, 2.0], [4.0, 4.0]]), np.array([True, False, True])
    published = Published(releases, releases - 1, releases + 1, fresh, 0.5, fresh)
    scores = score(published, trial, SlotErrors.of(releases, trial.truth))
    assert scores.amre[0] == pytest.approx((5.0 + 2.5 + 0.0) / 3)
    assert scores.mae[0] == pytest.approx((2.0 + 1.5 + 0.0) / 3)
    assert scores.mre[0] == pytest.approx((0.5 + 0.0) / 2)
    assert (scores.fresh[0], scores.worst_window_share[0], scores.coverage[0]) == (2.0, 0.5, 4 / 6)
    assert Scores.joined([scores, scores]).mae.tolist() == [scores.mae[0]] * 2
