"""A publisher that is told of a cycle: it learns, its state says so, and a calendar is about slots of the stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wevent import Options, Population, Publisher, Requirement, SeededNoise
from wevent.core.mechanism import ErrorModel, History, Measurement
from wevent.core.pft.filter import Filter
from wevent.core.pft.models import models_with_seasons
from wevent.core.step import smooth
from wevent.errors import InvalidState
from wevent.publisher import state as state_format

pytestmark = pytest.mark.slow

PEOPLE = Population({Requirement(24, 1): 3000, Requirement(48, "0.5"): 2000})
DAY = 24


def counts(slot: int) -> Any:
    part = 0.4 + 0.3 * np.sin(2 * np.pi * slot / DAY)
    inside = np.floor(PEOPLE.sizes * part).astype(np.int64)
    return np.stack([inside, PEOPLE.sizes - inside], axis=1)


def error(days: int, **options: Any) -> float:
    publisher = Publisher(PEOPLE, 2, "pft", noise=SeededNoise(5), **options)
    squares = []
    for slot in range(days * DAY):
        release = publisher.step(counts(slot))
        squares.append(((release.histogram - counts(slot).sum(axis=0)) ** 2).mean())
    return float(np.mean(squares[len(squares) // 2 :]))


@pytest.mark.parametrize("form", [{}, {"class_weights": "budget"}, {"class_weights": "calibrated"}])
def test_days_that_come_back_are_learnt(form: dict[str, Any]) -> None:
    assert error(10, seasonality=DAY, **form) < 0.5 * error(10, **form)


def test_one_number_a_list_and_a_tuple_are_the_same() -> None:
    states = {
        Publisher(PEOPLE, 2, noise=SeededNoise(1), seasonality=way).state() for way in (24, 24.0, [24], (24.0, 24))
    }
    assert len(states) == 1
    assert Options.checked({"seasonality": [24, 12]}).seasonality == (24.0, 12.0)


def test_a_state_goes_on_and_fits_its_options_only() -> None:
    live = Publisher(PEOPLE, 2, noise=SeededNoise(1), seasonality=DAY, special_days=[25, 49])
    for slot in range(40):
        live.step(counts(slot))
    again = Publisher.restore(live.state())
    assert again.state() == live.state()
    for slot in range(40, 60):
        assert live.step(counts(slot)).histogram.tobytes() == again.step(counts(slot)).histogram.tobytes()
    saved = state_format.load(live.state())
    for other in ({"seasonality": (), "special_days": ()}, {"smoothed": Filter().dump(Filter().start(2))}):
        values = {name: getattr(saved, name) for name in saved.__dataclass_fields__} | other
        with pytest.raises(InvalidState):
            Publisher.restore(state_format.dump(state_format.State(**values)))


def test_an_epoch_begins_in_its_own_slot() -> None:
    earlier = Publisher(PEOPLE, 2, noise=SeededNoise(1))
    for slot in range(7):
        earlier.step(counts(slot))
    later = Publisher(PEOPLE, 2, noise=SeededNoise(1), seasonality=DAY, special_days=[5, 29])
    later.inherit(earlier)
    for tracker in (later._history.smoothed.main, later._history.smoothed.direct):
        assert tracker.season.released == 7


def test_a_filter_that_starts_anew_knows_its_slot() -> None:
    """If a draw broke the state, the next one begins from that measurement: in the slot it is of."""
    tracker = Filter(models_with_seasons([DAY], [5, 29]))
    measurement = Measurement(np.array([4.0, 9.0]), ErrorModel("laplace", 1.0, 2.0), 0.0, 100)
    broken, _ = tracker.advance(tracker.start(2), measurement)
    broken.level[:] = np.nan
    history = History(33, 30, np.zeros(2, dtype=np.int64), np.zeros(2), broken)
    state, estimate = smooth(tracker, history, measurement)
    assert state.season.released == 33
    assert np.isfinite(estimate.values).all()
