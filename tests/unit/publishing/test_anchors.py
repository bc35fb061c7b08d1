"""Anchors through a journal: what is stored rebuilds the publisher to the bit, and the audit agrees with what was spent."""

from __future__ import annotations

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.arrays import IntArray
from wevent.journal.record import Shown, decode_shown, encode_shown

pytestmark = pytest.mark.slow

PEOPLE = Population({Requirement(10, 1): 900, Requirement(40, "0.5"): 400, Requirement(20, "0.1"): 300})
OTHERS = Population({Requirement(10, 1): 900, Requirement(20, "0.1"): 310, Requirement(30, "0.3"): 50})


def counts(population: Population, slot: int) -> IntArray:
    """Strict users gather in the last cell."""
    lenient = np.array([requirement.nano > 2 * 10**8 for requirement in population.classes])
    parts = np.where(lenient[:, None], [0.5, 0.3, 0.05], [0.1, 0.1, 0.6]) * (0.8 + 0.2 * np.sin(slot / 9.0))
    found: IntArray = np.floor(population.sizes[:, None] * parts).astype(np.int64)
    return found


@pytest.mark.parametrize("refund", [False, True])
def test_what_a_journal_stores_rebuilds_the_publisher(refund: bool) -> None:
    """Every measurement goes through the bytes of a record; classes come and go in between."""
    live, again = (
        Publisher(PEOPLE, 3, "pft", noise=SeededNoise(4), class_weights="calibrated", refund=refund) for _ in range(2)
    )
    anchors = mains = 0
    for slot in range(150):
        if slot in (60, 100):
            for one in (live, again):
                one.update(OTHERS if slot == 60 else PEOPLE, turnover=100)
        release = live.step(counts(live.population, slot))
        measured = live.measured
        if measured is not None:
            anchors, mains = anchors + (measured.anchor is not None), mains + (measured.lean is not None)
            shown = Shown(release.slot, release.histogram + 0.0, release.std_error, measured)
            measured = decode_shown(release.slot, encode_shown(shown)).measured
        again.replay(release.probe_charges, release.publication_charges, measured)
        assert (release.charges <= [requirement.nano for requirement in live.population.classes]).all()
    assert 0 < anchors < mains
    copied = Publisher.restore(again.state(), SeededNoise(9))
    original = Publisher.restore(live.state(), SeededNoise(9))
    for slot in range(150, 200):
        mine, its = (one.step(counts(PEOPLE, slot)) for one in (original, copied))
        assert mine.histogram.tobytes() == its.histogram.tobytes()
        assert mine.charges.tolist() == its.charges.tolist()


def test_strict_users_who_gather_are_not_missed() -> None:
    """Weighed by budgets alone the last cell has a fraction of its people, and no error bar says so."""
    errors = {}
    for name, options in {"anchors": {"class_weights": "calibrated"}, "weighted": {"class_weights": "budget"}}.items():
        publisher = Publisher(PEOPLE, 3, "pft", noise=SeededNoise(4), **options)  # type: ignore[arg-type]
        releases = [publisher.step(counts(PEOPLE, slot)) for slot in range(200)]
        truth = np.array([counts(PEOPLE, slot).sum(axis=0) for slot in range(200)])
        off = np.array([release.histogram for release in releases]) - truth
        errors[name] = float((off[100:, 2] ** 2).mean())
    assert errors["anchors"] < errors["weighted"] / 4.0
