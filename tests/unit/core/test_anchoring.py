"""Anchors: which designs are chosen from what, when one comes, and that one requirement for all is the plain policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.ledger import Ledger
from wevent.core.mechanism import ErrorModel, History, Measurement, NoOffer, Split
from wevent.core.pft.calibrated_filter import CalibratedFilter
from wevent.core.pft.schedules import ALWAYS, NEVER, CalibrationPolicy

ONE = Population({Requirement(12, "0.9"): 4000})
TWO = Population({Requirement(10, 1): 3600, Requirement(60, "0.1"): 400})


def test_one_requirement_for_all_is_published_as_without_anchors() -> None:
    """To the bit: same offers, same noise, same estimates; only what is remembered has another shape."""
    random = np.random.default_rng(3)
    mine, plain = (
        Publisher(ONE, 4, noise=SeededNoise(5), **options)
        for options in ({"class_weights": "calibrated"}, {"class_weights": "equal"})
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
    publisher.update(Population({Requirement(12, "0.9"): 3000, Requirement(60, "0.1"): 1000}), turnover=0)
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


def offer_with(*, since: int, alarm: float, spent: int = 0) -> Split | NoOffer:
    """What is offered in slot 100, a period after the last release, for anchors of 0.02 every 30 slots."""
    tracker, ledger = CalibratedFilter(), Ledger(TWO)
    for slot in range(99):
        charge = np.where(ledger.windows == 60, spent, 0) if slot == 98 else np.zeros(2, dtype=np.int64)
        ledger.replay(ledger.nothing, charge)
    state = tracker.start(3)
    law = ErrorModel("laplace", 5.0, 50.0)
    values, lean = np.array([900.0, 300.0, 20.0]), np.array([0.1, -0.3])
    state, _ = tracker.advance(state, Measurement(values, law, 0.1, 4000, (values, law), lean))
    state = replace(state, since=since, alarm=alarm)
    plan = [5, 30, 20_000_000]
    history = History(100, 95, np.zeros(2, dtype=np.int64), values, state, plan)
    return CalibrationPolicy(tracker.outlook).offer(ledger, history)


@pytest.mark.parametrize(
    ("since", "alarm", "level"),
    [
        (10, 0.0, 0),  # neither due nor called for
        (28, 0.0, 0),
        (29, 0.0, 20_000_000),  # the thirtieth slot since the last one
        (10, 1240.0, 0),  # a quarter of an anchor's noise is 2·50²/4 = 1,250
        (10, 1260.0, 20_000_000),
    ],
)
def test_an_anchor_comes_when_it_is_due_or_when_a_jump_calls_for_it(since: int, alarm: float, level: int) -> None:
    offer = offer_with(since=since, alarm=alarm)
    assert isinstance(offer, Split)
    assert offer.level == level
    assert (offer.budgets > level).all()


def test_an_anchor_takes_what_the_strict_have_left_and_waits_below_half() -> None:
    """Of 0.1 they have spent 85 or 95 thousandths: 15 are enough for an anchor of 20, 5 are not."""
    less, none = (offer_with(since=29, alarm=0.0, spent=spent) for spent in (85_000_000, 95_000_000))
    assert isinstance(less, Split)
    assert less.level == 15_000_000
    assert isinstance(none, Split)
    assert none.level == 0
