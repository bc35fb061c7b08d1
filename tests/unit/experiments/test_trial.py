"""One repeat: its people, and the publisher over their slots."""

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice
from wevent.experiments.datasets.synthetic import synthetic_stream
from wevent.experiments.trial import Assigned, Trial, milliseconds_per_slot, noise_seed, publish

POPULATION = Population({Requirement(3, 1): 40, Requirement(5, 2): 60})
TRIAL = Trial(POPULATION, np.tile(np.array([[[10, 20], [30, 25]]], dtype=np.int32), (30, 1, 1)))


@pytest.mark.parametrize("label", ["pft", "pbd", "ba:std", "plbu"])
def test_what_is_published_is_what_the_publisher_releases(label):
    choice = Choice.parse(label)
    published = publish(choice, TRIAL, SeededNoise([4]))
    publisher = Publisher(POPULATION, 2, choice.name, noise=SeededNoise([4]), **choice.options)
    for slot, release in enumerate(publisher.run(TRIAL.counts.astype(np.int64))):
        assert published.releases[slot].tolist() == release.histogram.tolist()
        assert published.charges[slot].tolist() == release.charges.tolist()
        assert published.fresh[slot] == release.fresh
        interval = release.noise_interval()
        if interval is None:
            assert np.isnan(published.low[slot]).all()
        else:
            assert (published.low[slot].tolist(), published.high[slot].tolist()) == tuple(
                map(np.ndarray.tolist, interval)
            )


def test_repeats_have_people_and_noise_of_their_own():
    stream, draw = synthetic_stream("sin", users=100, slots=20), Assigned(Assigner(), 1)
    first, again, second = (draw.trial(stream, repeat) for repeat in (0, 0, 1))
    np.testing.assert_array_equal(first.counts, again.counts)
    assert first.truth.tolist() != second.truth.tolist()
    assert first.truth.sum(axis=1).tolist() == [100] * 20
    pbd, pba = Choice.parse("pbd"), Choice.parse("pba")
    assert len({tuple(noise_seed(choice, 1, 0, repeat)) for choice in (pbd, pba) for repeat in (0, 1)}) == 4


def test_time_is_taken_over_the_slots_there_are():
    assert milliseconds_per_slot(Choice.parse("sample"), TRIAL, slots=1_000) > 0.0
