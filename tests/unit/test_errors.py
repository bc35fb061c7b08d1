"""Bad input: the right class, facts as attributes, three-part message, a pickle round trip (issue 2)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wevent
from wevent import (
    Cells,
    InsufficientBudget,
    InvalidCells,
    InvalidCounts,
    InvalidEvents,
    InvalidInput,
    InvalidOption,
    InvalidPopulation,
    InvalidReports,
    InvalidRequirement,
    InvalidRoster,
    InvalidSettings,
    InvalidState,
    Levels,
    Population,
    Publisher,
    Requirement,
    Roster,
    SeededNoise,
    UnknownMechanism,
    WeventError,
)
from wevent.core.ledger import Ledger
from wevent.settings.values import parse_length
from wevent.streams.inputs import find_files

ONE = Requirement(4, 1)
POPULATION = Population({ONE: 100, Requirement(8, 2): 50})


def publisher(**options: Any) -> Publisher:
    settings = {"cells": 3, "mechanism": "pbd", "noise": SeededNoise(1), **options}
    return Publisher(POPULATION, settings.pop("cells"), settings.pop("mechanism"), **settings)


def step(counts: Any, **options: Any) -> None:
    publisher(**options).step(counts)


def local_estimate(reports: Any) -> None:
    wevent.local.estimate(reports, cells=3, epsilon=1)


CASES: dict[str, tuple[Callable[[], Any], type[WeventError], dict[str, Any]]] = {
    "negative counts": (lambda: step([[1, 2, 3], [4, -1, 0]]), InvalidCounts, {"class_index": 1, "cell_index": 1}),
    "fractional counts": (lambda: step([[1, 2, 3], [4, 1, 0.5]]), InvalidCounts, {"class_index": 1, "cell_index": 2}),
    "nan counts": (lambda: step([[1, np.nan, 3], [4, 1, 0]]), InvalidCounts, {"class_index": 0, "cell_index": 1}),
    "infinite counts": (lambda: step([[1, np.inf, 3], [4, 1, 0]]), InvalidCounts, {"class_index": 0, "cell_index": 1}),
    "too few rows": (lambda: step([[1, 2, 3]]), InvalidCounts, {"shape": (1, 3), "class_index": None}),
    "too many columns": (lambda: step([[1, 2, 3, 4]] * 2), InvalidCounts, {"shape": (2, 4), "cell_index": None}),
    "a flat array": (lambda: step([1, 2, 3, 4, 5, 6]), InvalidCounts, {"shape": (6,)}),
    "no array at all": (lambda: step(None), InvalidCounts, {"shape": ()}),
    "ragged counts": (lambda: step([[1, 2, 3], [4, 5]]), InvalidCounts, {}),
    "text counts": (lambda: step([["1", "2", "3"]] * 2), InvalidCounts, {"shape": (2, 3)}),
    "boolean counts": (lambda: step(np.ones((2, 3), dtype=bool)), InvalidCounts, {"dtype": "bool"}),
    "a cell above n_g": (lambda: step([[1, 0, 0], [0, 51, 0]]), InvalidCounts, {"class_index": 1, "cell_index": 1}),
    "a row above n_g": (lambda: step([[50, 50, 1], [0, 0, 0]]), InvalidCounts, {"class_index": 0, "cell_index": None}),
    "a cell above n_g, k = 2": (
        lambda: step([[101, 0, 0], [0, 0, 0]], max_cells_per_user=2),
        InvalidCounts,
        {"class_index": 0, "cell_index": 0},
    ),
    "a row above k·n_g": (
        lambda: step([[0, 0, 0], [50, 50, 1]], max_cells_per_user=2),
        InvalidCounts,
        {"class_index": 1, "cell_index": None},
    ),
    "cells so large that their sum overflows": (
        lambda: step(np.array([[2**62, 2**62, 0], [0, 0, 0]])),
        InvalidCounts,
        {"class_index": 0, "cell_index": 0},
    ),
    "window 0": (lambda: Requirement(0, 1), InvalidRequirement, {"window": 0}),
    "negative window": (lambda: Requirement(-4, 1), InvalidRequirement, {"window": -4}),
    "fractional window": (lambda: Requirement(2.5, 1), InvalidRequirement, {"window": 2.5}),  # type: ignore[arg-type]
    "float window": (lambda: Requirement(2.0, 1), InvalidRequirement, {"window": 2.0}),  # type: ignore[arg-type]
    "boolean window": (lambda: Requirement(True, 1), InvalidRequirement, {"window": True}),
    "text window": (lambda: Requirement("4", 1), InvalidRequirement, {"window": "4"}),  # type: ignore[arg-type]
    "epsilon 0": (lambda: Requirement(4, 0), InvalidRequirement, {"window": 4, "epsilon": 0}),
    "negative epsilon": (lambda: Requirement(4, -0.5), InvalidRequirement, {"epsilon": -0.5}),
    "epsilon above 50": (lambda: Requirement(4, 50.5), InvalidRequirement, {"epsilon": 50.5}),
    "nan epsilon": (lambda: Requirement(4, "nan"), InvalidRequirement, {"epsilon": "nan"}),
    "infinite epsilon": (lambda: Requirement(4, float("inf")), InvalidRequirement, {"epsilon": float("inf")}),
    "text epsilon": (lambda: Requirement(4, "a lot"), InvalidRequirement, {"epsilon": "a lot"}),
    "epsilon too small to split": (lambda: Requirement(4, "7e-9"), InvalidRequirement, {"epsilon": "7e-9"}),
    "unknown level": (lambda: Levels.default().requirement("high", "Small"), InvalidRequirement, {"level": "high"}),
    "requirement in a roster": (
        lambda: Roster.from_columns(["a", "b"], [4, 0], [1.0, 1.0]),
        InvalidRequirement,
        {"window": 0},
    ),
    "nan epsilon in a roster": (
        lambda: Roster.from_columns(["a", "b"], [4, 4], [1.0, np.nan]),
        InvalidRequirement,
        {"window": 4},
    ),
    "missing window in a roster": (
        lambda: Roster.from_columns(["a", "b"], [4, None], [1.0, 1.0]),
        InvalidRequirement,
        {},
    ),
    "missing epsilon in a roster": (
        lambda: Roster.from_columns(["a", "b"], [4, 4], [1.0, None]),
        InvalidRequirement,
        {},
    ),
    "duplicate users": (
        lambda: Roster.from_columns(["a", "b", "a", "a"], [4] * 4, [1] * 4),
        InvalidRoster,
        {"duplicates": 2},
    ),
    "duplicate numbers": (lambda: Roster.from_columns([7, 7], [4] * 2, [1] * 2), InvalidRoster, {"duplicates": 1}),
    "duplicate far numbers": (
        lambda: Roster.from_columns([10**15, 7, 10**15], [4] * 3, [1] * 3),
        InvalidRoster,
        {"duplicates": 1},
    ),
    "columns that differ in length": (
        lambda: Roster.from_columns(["a", "b"], [4], [1, 1]),
        InvalidRoster,
        {"lengths": ((2,), (1,), (2,))},
    ),
    "no users": (lambda: Roster.from_columns([], [], []), InvalidRoster, {"lengths": ((0,), (0,), (0,))}),
    "zero classes": (lambda: Population({}), InvalidPopulation, {}),
    "a class that is no requirement": (lambda: Population({(4, 1): 5}), InvalidPopulation, {"requirement": (4, 1)}),  # type: ignore[dict-item]
    "a negative class": (lambda: Population({ONE: -1}), InvalidPopulation, {"requirement": ONE}),
    "a fractional class": (lambda: Population({ONE: 1.5}), InvalidPopulation, {"requirement": ONE}),  # type: ignore[dict-item]
    "zero cells": (lambda: Cells.of(0), InvalidCells, {"cells": 0}),
    "negative cells": (lambda: publisher(cells=-3), InvalidCells, {"cells": -3}),
    "an empty list of cells": (lambda: publisher(cells=[]), InvalidCells, {}),
    "duplicate cells": (lambda: publisher(cells=["a", "b", "a"]), InvalidCells, {"duplicate": "a"}),
    "cells that read the same": (lambda: publisher(cells=[1, "1"]), InvalidCells, {"duplicate": "1"}),
    "a word as cells": (lambda: publisher(cells="north"), InvalidCells, {}),
    "a cell without a label": (lambda: publisher(cells=["a", None]), InvalidCells, {}),
    "unknown mechanism": (
        lambda: publisher(mechanism="pbdd"),
        UnknownMechanism,
        {"name": "pbdd", "suggestion": "pbd"},
    ),
    "mechanism in capitals": (lambda: publisher(mechanism="PBA"), UnknownMechanism, {"suggestion": "pba"}),
    "a level of 1": (
        lambda: publisher(mechanism="uniform").step([[1, 1, 1]] * 2).interval(1),
        InvalidOption,
        {"option": "level", "value": 1},
    ),
    "a mechanism that is none": (lambda: wevent.register("pbd"), InvalidOption, {"option": "mechanism"}),  # type: ignore[arg-type]
    "events of different lengths": (
        lambda: Roster.from_columns(["a"], [4], [1]).count(["a", "a"], [0], 2),
        InvalidEvents,
        {"lengths": ((2,), (1,))},
    ),
    "a report outside the answers": (lambda: local_estimate([0, 3, 4]), InvalidReports, {"index": 2}),
    "a negative report": (lambda: local_estimate([-1, 3]), InvalidReports, {"index": 0}),
    "fractional reports": (lambda: local_estimate([0.5]), InvalidReports, {"index": None}),
    "an unknown cell to report": (
        lambda: wevent.local.randomize("west", cells=["north", "south"], epsilon=1),
        InvalidReports,
        {"index": 0},
    ),
    "a slot of no length": (lambda: parse_length("0s"), InvalidSettings, {"key": "slot"}),
    "an input that is not there": (lambda: find_files(["missing.csv"]), InvalidInput, {"path": "missing.csv"}),
    "foreign bytes": (lambda: Publisher.restore(b"not a state"), InvalidState, {}),
    "an overspent window": (lambda: overspend(), InsufficientBudget, {"requirement": ONE, "requested": 10**9 + 1}),
}


def overspend() -> None:
    ledger = Ledger(Population({ONE: 1}))
    ledger.reserve(None, np.array([ONE.nano + 1]))


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_named_with_its_facts(case: str) -> None:
    call, kind, facts = CASES[case]
    with pytest.raises(WeventError) as caught:
        call()
    error = caught.value
    assert type(error) is kind
    assert isinstance(error, ValueError)
    for name, value in facts.items():
        assert getattr(error, name) == value, name
    assert error.problem.endswith(".")
    assert str(error) == f"{error.problem} {error.fix}".rstrip()


@pytest.mark.parametrize("case", CASES)
def test_errors_survive_pickling(case: str) -> None:
    with pytest.raises(WeventError) as caught:
        CASES[case][0]()
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert repr(again.facts) == repr(error.facts)  # repr: a NaN is not equal to itself
    for name in error.facts:
        assert repr(getattr(again, name)) == repr(getattr(error, name))


CASES_ELSEWHERE = {  # tests/unit/journal, tests/fault, tests/unit/streams, tests/unit/client
    wevent.InvalidInput,
    wevent.InvalidSettings,
    wevent.InvalidJournal,
    wevent.InvalidMembership,
    wevent.InvalidOutput,
    wevent.JournalLocked,
    wevent.ServiceRefused,
    wevent.ServiceUnreachable,
    wevent.SettingsDiffer,
    wevent.StaleJournal,
    wevent.StorageFailed,
    wevent.BatchConflict,
    wevent.ServiceStopping,
}


def test_every_error_has_a_case() -> None:
    children = {
        kind for kind in WeventError.__subclasses__() if kind.__module__ == "wevent.errors"
    }  # not of the service
    assert children == {kind for _, kind, _ in CASES.values()} | CASES_ELSEWHERE
    assert {kind.__name__ for kind in children} <= set(wevent.__all__)


def test_the_remaining_budget_is_a_fact() -> None:
    error = InsufficientBudget(ONE, 7, 5)
    assert (error.requirement, error.requested, error.remaining) == (ONE, 7, 5)
    assert "5" in str(error)
    assert "7" in str(error)
