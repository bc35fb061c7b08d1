"""A cycle as a length of time, in experiments: in slots of the stream."""

from __future__ import annotations

import pytest

from wevent.errors import InvalidSettings
from wevent.experiments import compare
from wevent.experiments.arguments import in_slots
from wevent.experiments.datasets.city import City
from wevent.experiments.datasets.synthetic import Daily


def test_lengths_are_slots_of_the_stream() -> None:
    city = City(100, 20)
    assert in_slots({"seasonality": "1d"}, city) == {"seasonality": (288.0,)}
    assert in_slots({"seasonality": 100, "round": True}, city) == {"seasonality": (100.0,), "round": True}
    assert in_slots({"round": True}, city) == {"round": True}
    assert in_slots(None, city) is None
    with pytest.raises(InvalidSettings, match="number of slots"):
        in_slots({"seasonality": "1d"}, Daily(10, 10, 2, 24.0))


def test_who_does_not_learn_is_left_out() -> None:
    found = compare(City(200, 30), options={"seasonality": "1d"}, repeats=1, timed_slots=0)
    assert [row.mechanism for row in found.ranked] == ["pft"]
    assert "use pft" in found.left_out["pba"]
