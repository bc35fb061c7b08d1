"""The paper's three streams, as printed and as its authors draw them."""

import numpy as np
import pytest

from wevent.errors import InvalidOption
from wevent.experiments.datasets import StreamRequest, open_stream
from wevent.experiments.datasets.synthetic import SYNTHETIC, Daily, synthetic_stream


def test_sin_and_log_follow_their_formulas():
    times = np.arange(1, 501)
    sin = synthetic_stream("sin", users=10, slots=500).probabilities(seed=[1])
    log = synthetic_stream("log", users=10, slots=500).probabilities(seed=[1])
    np.testing.assert_allclose(sin, 0.05 * np.sin(0.01 * times) + 0.075)
    np.testing.assert_allclose(log, 0.25 / (1 + np.exp(-0.01 * times)))


def test_tlns_is_a_clipped_random_walk_from_5_percent():
    walk = synthetic_stream("tlns", users=10, slots=20_000).probabilities(seed=[3])
    assert walk.min() >= 0
    assert walk.max() <= 1
    assert abs(walk[0] - 0.05) < 0.0125
    steps = np.diff(walk)[(walk[1:] > 0) & (walk[:-1] > 0)]
    assert np.std(steps) == pytest.approx(0.0025, rel=0.05)


@pytest.mark.parametrize(("name", "first"), [("tlns", 0.5), ("log", 0.25), ("sin", 0.07)])
def test_the_authors_variant_rounds_and_starts_differently(name, first):
    path = synthetic_stream(name, users=10, slots=300, variant="authors").probabilities(seed=[1])
    assert path[0] == pytest.approx(first, abs=0.0101)  # 0.075 rounds to an even digit
    np.testing.assert_allclose(path, path.round(2))
    assert len(np.unique(path)) < 60


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_registered_user_is_somewhere_in_every_slot(name):
    stream = synthetic_stream(name, users=90, slots=50)
    rows = np.arange(90) % 3
    rows[:6] = -1
    counts = stream.count(rows, 3, seed=[1, 2])
    assert counts.shape == (50, 3, 2)
    assert (counts.sum(axis=2) == 28).all()
    assert (counts == stream.count(rows, 3, seed=[1, 2])).all()
    assert (counts != stream.count(rows, 3, seed=[1, 3])).any()


def test_values_have_the_binomial_law():
    stream = synthetic_stream("sin", users=10_000, slots=2_000)
    ones = stream.count(np.zeros(10_000, dtype=np.int64), 1, seed=[5])[:, 0, 1]
    chances = stream.probabilities(seed=[5])
    scores = (ones - 10_000 * chances) / np.sqrt(10_000 * chances * (1 - chances))
    assert abs(scores.mean()) < 4 / np.sqrt(2_000)
    assert scores.std() == pytest.approx(1.0, abs=0.07)


def test_daily_has_the_cells_and_the_presence_asked_for():
    stream = Daily(users=1_000, slots=288, cell_count=12, slots_per_day=288, present=0.4)
    counts = stream.count(np.arange(1_000) % 2, 2, seed=[1])
    assert counts.shape == (288, 2, 12)
    assert counts.sum(axis=(1, 2)).mean() == pytest.approx(400, rel=0.05)
    assert (counts.sum(axis=2) <= 500).all()


def test_an_unknown_stream_is_refused_with_the_known_ones():
    with pytest.raises(InvalidOption, match="tlns, sin, log, city, taxi, foursquare, or write file:"):
        open_stream(StreamRequest("cosine"))
