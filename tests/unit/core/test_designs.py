"""Designs: what they cost is what it would be class by class."""

from __future__ import annotations

import numpy as np
import pytest

from wevent.core.ledger import Ledger
from wevent.core.pft.schedules import _main_sum, _rows, _strictest, anchors_inside
from wevent.core.requirements import Population, Requirement


def ledger() -> Ledger:
    random = np.random.default_rng(4)
    classes = {
        Requirement(window, f"0.{epsilon}"): int(random.integers(1, 900))
        for window in (7, 40, 90)
        for epsilon in random.choice(np.arange(1, 10), 5, replace=False)
    }
    return Ledger(Population({**classes, Requirement(300, "0.01"): 0}))


def test_classes_of_one_window_cost_together_what_they_cost_one_by_one() -> None:
    found = ledger()
    rows = _rows(found)
    assert rows.windows.tolist() == [7, 40, 90]  # nobody holds the fourth
    period, every = np.array([1, 5, 30]), np.array([4, 40, 60])
    level = _strictest(rows, every) // 3
    members = found.sizes > 0
    epsilons, windows, sizes = found.epsilons[members], found.windows[members], found.sizes[members]
    assert _strictest(rows, every).tolist() == [int((epsilons // -(-windows // k)).min()) for k in every]

    anchors = level[:, None] * anchors_inside(rows.windows, every[:, None])
    noise, spread = _main_sum(rows, anchors, -(-rows.windows // period[:, None]), 1)
    for place, (k, distance, taken) in enumerate(zip(period, every, level, strict=True)):
        budgets = (epsilons - taken * anchors_inside(windows, distance)) / -(-windows // k)
        mean = np.average(budgets, weights=sizes)
        assert noise[place] == pytest.approx(2.0 * (1e9 / mean) ** 2)
        assert spread[place] == pytest.approx(np.average((budgets / mean - 1.0) ** 2, weights=sizes))
