"""Releases as a picture needs them."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from wevent.errors import InvalidOption, InvalidSettings
from wevent.plotting.release_data import data_from_table, describe_band, describe_data

HOUR, START = timedelta(hours=1), datetime(2026, 3, 2, tzinfo=UTC)


def columns(slots=(1, 2, 3, 4), cells=("a", "b"), *, timed=True, bands=True):
    """Slot 1 came before the first measurement; every other slot is fresh."""
    table = {name: [] for name in ("slot", "start", "end", "cell", "value", "low", "high", "outcome", "mechanism")}
    for slot in slots:
        for place, cell in enumerate(cells):
            value = None if slot == 1 else 10.0 * slot + place
            band = bands and value is not None
            row = (
                slot,
                START + (slot - 1) * HOUR if timed else None,
                START + slot * HOUR if timed else None,
                cell,
                value,
                value - 5 if band else None,
                value + 5 if band else None,
                "fresh" if slot % 2 == 0 else "repeated",
                "pft",
            )
            for name, entry in zip(table, row, strict=True):
                table[name].append(entry)
    return table


def released(*arguments, **options):
    return data_from_table("run.csv", columns(*arguments, **options))


def test_rows_become_slots_and_cells():
    found = released()
    assert list(found.slots) == [1, 2, 3, 4]
    assert found.cells == ["a", "b"]
    assert np.isnan(found.values[0]).all()
    assert found.values[1].tolist() == [20.0, 21.0]
    assert found.high[3, 1] == 46.0
    assert found.fresh == [1, 3]
    assert found.edges[2:4] == [START + 2 * HOUR, START + 3 * HOUR]


def test_a_slot_that_was_released_elsewhere_is_a_gap():
    found = released((2, 5))
    assert list(found.slots) == [2, 3, 4, 5]
    assert found.outcomes == ["fresh", "not here", "not here", "repeated"]
    assert np.isnan(found.values[1:3]).all()
    assert found.edges[3] == START + 4 * HOUR


def test_slots_are_chosen_by_number_or_time():
    found = released()
    assert list(found.between("2", "3").slots) == [2, 3]
    assert list(found.between("2026-03-02T01:00:00Z", "2026-03-02T03:00:00Z").slots) == [2, 3]
    assert list(found.between("2026-03-02T03:00:00+02:00", None).slots) == [2, 3, 4]
    assert list(found.between(None, None).slots) == [1, 2, 3, 4]
    assert list(found.between("2026-03-02T00:00:00.000001Z", "2026-03-02T03:00:00.000001Z").slots) == [2, 3, 4]


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        (("9", None), InvalidOption, "has slots 1 to 4"),
        ((None, "0"), InvalidOption, "has slots 1 to 4"),
        (("2026-03-03T00:00:00Z", None), InvalidOption, "has slots 1 to 4"),
        (("soon", None), InvalidSettings, "--from must be a time"),
    ],
)
def test_slots_that_are_not_there(limits, error, message):
    with pytest.raises(error, match=message):
        released().between(*limits)


def test_times_of_a_stream_without_any():
    with pytest.raises(InvalidOption, match="have no times"):
        released(timed=False).between("2026-03-02", None)


def test_cells_are_chosen_by_label():
    assert released().only(["b"]).values[1].tolist() == [21.0]
    assert released().only(["b", "a", "b"]).cells == ["b", "a"]
    with pytest.raises(InvalidOption, match=r"has no cell 'c'\. It has a, b"):
        released().only(["c"])


def test_nothing_to_draw():
    with pytest.raises(InvalidOption, match="Publish a slot first"):
        released(())


def test_the_facts():
    assert describe_data(released()) == (
        "run.csv: slots 1 to 4 (2026-03-02 00:00 to 2026-03-02 04:00 UTC), 2 cells, pft: 2 fresh, 2 repeated."
    )
    assert describe_data(released(timed=False)) == "run.csv: slots 1 to 4, 2 cells, pft: 2 fresh, 2 repeated."


def test_what_the_band_is():
    assert describe_band(released()) == "Band: 95 % interval for the true count."
    assert describe_band(released(bands=False)).startswith("No band")
    some = released()
    some.low[2] = some.high[2] = math.nan
    assert describe_band(some).endswith("No band where none is valid.")


def test_slots_that_lie_far_apart_take_no_memory():
    with pytest.raises(InvalidOption, match="more than 100,000,000 values"):
        released(slots=(1, 900_000_000_000), timed=False)
