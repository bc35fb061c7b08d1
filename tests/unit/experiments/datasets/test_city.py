"""The invented city: one for `demo`, `init`, `compare` and `plan`."""

import duckdb
import numpy as np

from wevent.experiments.datasets.city import DISTRICTS, SLOTS_PER_DAY, City
from wevent.experiments.example import USERS, write_example


def test_everyone_is_in_at_most_one_district():
    city = City(200, 30)
    for present, district in city.walk(np.random.default_rng(1)):
        assert len(np.unique(present)) == len(present)
        assert ((district >= 0) & (district < len(DISTRICTS))).all()


def test_counts_are_of_registered_users_by_class():
    city = City(300, 20)
    rows = np.arange(300) % 3 - 1  # a third is not registered
    counts = city.count(rows, 2, seed=[1])
    assert counts.shape == (20, 2, len(DISTRICTS))
    everyone = city.count(np.zeros(300, dtype=np.int64), 1, seed=[1])
    assert 0.5 < counts.sum() / everyone.sum() < 0.8
    assert (counts.sum(axis=(1, 2)) <= 200).all()


def test_people_work_by_day_and_are_at_home_by_night():
    shares = City(5_000, SLOTS_PER_DAY).count(np.zeros(5_000, dtype=np.int64), 1, seed=[2])[:, 0].astype(float)
    shares /= shares.sum(axis=1, keepdims=True)
    noon, night = shares[SLOTS_PER_DAY // 2], shares[SLOTS_PER_DAY // 8]
    assert noon[1] > 1.5 * night[1]  # the Old Town is where people work
    assert night[6] > 1.5 * noon[6]  # the Park is where they live


def test_the_example_is_a_day_of_the_same_city(tmp_path):
    events = write_example(tmp_path)[-1]
    found = duckdb.sql(f"SELECT cell, count(*) FROM '{events}' GROUP BY 1").fetchall()
    expected = City(USERS, SLOTS_PER_DAY).count(np.zeros(USERS, dtype=np.int64), 1, seed=[5]).sum(axis=(0, 1))
    counted = dict(found)
    assert set(counted) == set(DISTRICTS)
    np.testing.assert_allclose([counted[name] for name in DISTRICTS], expected, rtol=0.15)
