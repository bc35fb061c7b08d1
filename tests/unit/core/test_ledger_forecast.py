"""What the ledger says it will allow later, against counting by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wevent import Population, Requirement
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


def test_forecast_comes_true() -> None:
    """Idle slots pass: what was forecast is then what the gate allows, and not a nano-epsilon more."""
    random = np.random.default_rng(3)
    ledger = Ledger(Population({Requirement.from_nano(window, EPSILON): 1 for window in (1, 4, 7)}))
    for _ in range(20):
        charge = ledger.remaining() // random.integers(2, 5, size=3)
        ledger.commit(ledger.reserve(None, charge), charge)
    forecast = ledger.forecast(DELAYS)
    for delay in DELAYS.tolist():
        assert forecast[:, delay].tolist() == ledger.remaining().tolist()
        ledger.commit(None, None)


def test_rows_that_outlive_their_class_are_forecast_too() -> None:
    """The gate reserves nothing for them, but their charges have not left the window."""
    stays, leaves = Requirement.from_nano(4, EPSILON), Requirement.from_nano(6, EPSILON)
    ledger = Ledger(Population({stays: 1, leaves: 1}))
    charge = np.array([5, 7])
    ledger.commit(ledger.reserve(None, charge), charge)
    ledger.update(Population({stays: 1}))
    assert ledger.rows == (stays, leaves)
    assert ledger.forecast(np.array([0, 2, 3, 4, 5])).tolist() == [
        [EPSILON - 5, EPSILON - 5, EPSILON, EPSILON, EPSILON],
        [EPSILON - 7, EPSILON - 7, EPSILON - 7, EPSILON - 7, EPSILON],
    ]
