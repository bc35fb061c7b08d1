"""Anchors: which designs are chosen from what, and that one requirement for all is the plain policy."""

from __future__ import annotations

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.policies.designs import ALWAYS, NEVER

ONE = Population({Requirement(12, "0.9"): 4000})
TWO = Population({Requirement(10, 1): 3600, Requirement(60, "0.1"): 400})


def test_one_requirement_for_all_is_published_as_without_anchors() -> None:
    """To the bit: same offers, same noise, same estimates; only what is remembered has another shape."""
    random = np.random.default_rng(3)
    mine, plain = (
        Publisher(ONE, 4, noise=SeededNoise(5), **options) for options in ({"anchors": True}, {"unbiased": True})
    )
    for slot in range(80):
        counts = random.poisson([[900, 300, 20, 0]]) + (slot > 40) * np.array([[0, 0, 0, 200]])
        one, other = mine.step(counts), plain.step(counts)
        assert one.histogram.tolist() == other.histogram.tolist()
        assert one.charges.tolist() == other.charges.tolist()
    assert mine._history.memory == [plain._history.memory, NEVER, 0]


def test_a_stream_goes_on_when_its_people_become_unlike() -> None:
    publisher = Publisher(ONE, 3, noise=SeededNoise(5))
    for _ in range(30):
        publisher.step([[900, 300, 20]])
    publisher.update(Population({Requirement(12, "0.9"): 3000, Requirement(60, "0.1"): 1000}))
    releases = [publisher.step([[800, 250, 15], [100, 50, 5]]) for _ in range(120)]
    measured = [release for release in releases if release.fresh]
    assert measured
    assert np.abs(releases[-1].histogram - [900, 300, 20]) == pytest.approx(0.0, abs=150.0)


def test_strict_classes_pay_for_anchors() -> None:
    """Main sums hardly need the strict class: its budget goes into anchors, as strong as it can give."""
    publisher = Publisher(TWO, 3, noise=SeededNoise(1))
    random = np.random.default_rng(1)
    anchors, mains = 0, 0
    for _ in range(200):
        publisher.step(random.poisson([[1200, 900, 300], [130, 100, 30]]))
        if publisher.measured is not None:
            anchors += publisher.measured.anchor is not None
            mains += publisher.measured.lean is not None
    period, every, level = publisher._history.memory
    assert period < 10
    assert every not in (ALWAYS, NEVER)
    assert level > 10**6
    assert 2 <= anchors < mains
