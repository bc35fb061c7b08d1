"""What the ledger says it will allow later, against counting by hand."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent import Population, Requirement
from wevent.core import ledger as ledgers
from wevent.core.arrays import IntArray
from wevent.core.ledger import Ledger

EPSILON = 1_000_000
DELAYS = np.arange(12)


def by_hand(charges: list[int], window: int) -> list[int]:
    """ε minus the charges that a window ending `delay` slots after the open one still holds; plain lists."""
    open_slot = len(charges) + 1
    return [
        EPSILON - sum(charges[max(0, open_slot + delay - window) :][: max(0, window - delay - 1)])
        for delay in DELAYS.tolist()
    ]


@given(
    windows=st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True).map(sorted),
    parts=st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 50_000)), max_size=30),
)
def test_forecast_is_what_a_window_then_has_left(windows: list[int], parts: list[tuple[int, int]]) -> None:
    ledger = Ledger(Population({Requirement.from_nano(window, EPSILON): 1 for window in windows}))
    for probe, publication in parts:
        budgets = [np.full(len(windows), part, dtype=np.int64) for part in (probe, publication)]
        ledger.commit(ledger.reserve(budgets[0], budgets[1]), budgets[1])
    charges = [probe + publication for probe, publication in parts]
    forecast = ledger.forecast(DELAYS)
    assert forecast.tolist() == [by_hand(charges, window) for window in windows]
    assert forecast[:, 0].tolist() == ledger.remaining().tolist()  # now is what the gate allows


def dense(ledger: Ledger, delays: IntArray) -> IntArray:
    """The same from all places of all windows: what a forecast is, without any shortcut."""
    first, kept = ledger._offsets, ledger._charges.sum(axis=0)
    remaining = np.empty((len(ledger.rows), len(delays)), dtype=np.int64)
    for row, requirement in enumerate(ledger.rows):
        for place, delay in enumerate(delays.tolist()):
            slots = range(ledger.slot - max(requirement.window - 1 - delay, 0), ledger.slot)
            spent = sum(int(kept[first[row] + slot % requirement.window]) for slot in slots)
            remaining[row, place] = requirement.nano - spent
    return remaining


WINDOWS = st.lists(st.sampled_from([1, 2, 3, 7, 12, 40]), min_size=1, max_size=4, unique=True)
LIVES = st.lists(
    st.one_of(
        st.tuples(st.just("charge"), st.tuples(st.integers(0, 60_000), st.integers(0, 50_000))),
        st.tuples(st.just("idle"), st.integers(1, 45)),
        st.tuples(st.just("update"), WINDOWS),
        st.tuples(st.just("store"), st.none()),
        st.tuples(st.just("load"), st.booleans()),
        st.tuples(st.just("look"), st.lists(st.integers(0, 60), min_size=1, max_size=6)),
    ),
    max_size=40,
)


def population(windows: list[int]) -> Population:
    return Population({Requirement.from_nano(window, EPSILON): 1 for window in windows})


@pytest.mark.hypothesis
@given(
    life=LIVES,
    windows=WINDOWS,
    start=st.sampled_from([1, 41, 10**9]),
    examined=st.sampled_from([1, 5, 1 << 16]),
    short=st.sampled_from([0, 12, 1024]),
)
def test_forecast_is_the_same_in_any_life(
    life: list[tuple[str, Any]], windows: list[int], start: int, examined: int, short: int
) -> None:
    """Slots that charge or do not, populations that change, ledgers that are stored and read, now and then a forecast."""
    held = population(windows)
    ledger = Ledger(held)
    rows = [(row.window, row.nano) for row in ledger.rows]
    stored = held, start, (rows, bytes(16 * sum(window for window, _ in rows)))
    ledger.load(*stored)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledgers, "_EXAMINED", examined)
        patch.setattr(ledgers, "_SHORT", short)
        for what, told in [*life, ("look", list(range(50)))]:
            if what == "charge":
                left = ledger.with_classes(ledger.nothing, ledger.remaining()) // 2
                probe, publication = (np.minimum(part, left) for part in told)
                ledger.commit(ledger.reserve(probe, publication), publication)
            elif what == "idle":
                for _ in range(told):
                    ledger.commit(None, None)
                    look(ledger, [3, 38])
            elif what == "update":
                held = population(told)
                ledger.update(held)
            elif what == "store":
                stored = held, ledger.slot, ledger.export()
            elif what == "load":  # into a new ledger, or instead of what this one holds
                held = stored[0]
                ledger = Ledger(held) if told else ledger
                ledger.load(*stored)
            else:
                look(ledger, told)


def look(ledger: Ledger, told: list[int]) -> None:
    """Compare a forecast, and one of the open slot alone, with the long way."""
    for delays in (np.array(told), np.zeros(2, dtype=np.int64)):
        assert ledger.forecast(delays).tolist() == dense(ledger, delays).tolist()


def test_forecast_looks_at_charges_and_not_at_places() -> None:
    """In a window of a million slots with three charges a forecast touches no array of a million."""
    window = 1_000_000
    ledger = Ledger(Population({Requirement.from_nano(window, 2 * window): 1, Requirement.from_nano(3, EPSILON): 1}))
    for _ in range(3):
        charge = np.array([5, 7])
        ledger.commit(ledger.reserve(None, charge), charge)
        ledger.commit(None, None)
    delays = np.arange(0, window, window // 50)
    ledger.forecast(delays)
    tracemalloc.start()
    try:
        ledger.forecast(delays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000
