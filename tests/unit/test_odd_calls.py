"""Calls that cannot be meant: each is answered with one sentence that names what was expected, never with a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wevent
from tests.support.commands import call
from wevent import Counts, Levels, Population, Publisher, Requirement, Roster, SeededNoise
from wevent.errors import (
    InvalidCells,
    InvalidCounts,
    InvalidInput,
    InvalidJournal,
    InvalidOption,
    InvalidPopulation,
    InvalidRequirement,
    InvalidRoster,
    InvalidSettings,
    InvalidState,
    UnknownMechanism,
    WeventError,
)
from wevent.experiments import Assigner, StreamRequest, compare, open_stream, plan

ONE = Requirement(4, 1)
PEOPLE = Population({ONE: 10})
Case = tuple[Callable[[], Any], type[WeventError]]


def roster() -> Roster:
    return Roster.from_columns(["a", "b"], [4, 4], [1, 1])


def publisher(**options: Any) -> Publisher:
    return Publisher(PEOPLE, 2, **{"noise": SeededNoise(1), **options})


def declared(**changes: Any) -> Any:
    given: dict[str, Any] = {"slot": "1s", "start": "2026-01-01T00:00Z", "end": "2026-01-02T00:00Z", "cells": 2}
    return wevent.publish("x.csv", **{**given, "requirements": {"a": ONE}, "journal": "none.journal", **changes})


PUBLISHERS: dict[str, Case] = {
    "a seed as noise": (lambda: publisher(noise=7), InvalidOption),
    "a word as noise": (lambda: publisher(noise="seeded"), InvalidOption),
    "a class as noise": (lambda: publisher(noise=SeededNoise), InvalidOption),
    "a seed as noise of a state": (lambda: Publisher.restore(publisher().state(), noise=7), InvalidOption),  # type: ignore[arg-type]
    "a dict of people": (lambda: Publisher({ONE: 3}, 2), InvalidPopulation),  # type: ignore[arg-type]
    "no people": (lambda: Publisher(None, 2), InvalidPopulation),  # type: ignore[arg-type]
    "no cells": (lambda: Publisher(PEOPLE, None), InvalidCells),  # type: ignore[arg-type]
    "half a cell": (lambda: Publisher(PEOPLE, 2.5), InvalidCells),  # type: ignore[arg-type]
    "cells in a dict": (lambda: Publisher(PEOPLE, {"a": 1}), InvalidCells),  # type: ignore[arg-type]
    "cells in a set": (lambda: Publisher(PEOPLE, {"a", "b"}), InvalidCells),  # type: ignore[arg-type]
    "cells of cells": (lambda: Publisher(PEOPLE, [["a"], ["b"]]), InvalidCells),
    "a cell without a name": (lambda: Publisher(PEOPLE, ["a", None]), InvalidCells),
    "no mechanism": (lambda: Publisher(PEOPLE, 2, None), UnknownMechanism),  # type: ignore[arg-type]
    "several mechanisms": (lambda: Publisher(PEOPLE, 2, ["pft"]), UnknownMechanism),  # type: ignore[arg-type]
    "a total in words": (lambda: publisher(known_total="x", neighbours="replace"), InvalidOption),
    "an update by dict": (lambda: publisher().update({ONE: 3}, turnover=3), InvalidPopulation),  # type: ignore[arg-type]
    "a state in words": (lambda: Publisher.restore("x"), InvalidState),  # type: ignore[arg-type]
    "one number for all slots": (lambda: publisher().run(7), InvalidCounts),  # type: ignore[arg-type]
    "a level in words": (lambda: publisher().step([[1, 2]]).interval("x"), InvalidOption),  # type: ignore[arg-type]
    "columns of nothing": (lambda: wevent.to_columns(None), InvalidOption),  # type: ignore[arg-type]
    "columns of numbers": (lambda: wevent.to_columns([1]), InvalidOption),  # type: ignore[list-item]
    "a seed in words": (lambda: SeededNoise("x"), InvalidOption),
    "a negative seed": (lambda: SeededNoise(-1), InvalidOption),
    "half a seed": (lambda: SeededNoise(1.5), InvalidOption),
    "no seed": (lambda: SeededNoise(None), InvalidOption),
}
COUNTS: dict[str, Any] = {
    "nothing": None,
    "a word": "x",
    "halves": [[1.5, 2]],
    "less than nobody": [[-1, 2]],
    "one row": [1, 2],
    "ragged rows": [[1], [2, 3]],
    "objects": [[object(), 1]],
    "times": np.array([["2026-01-01", "2026-01-01"]], dtype="datetime64[s]"),
    "more than 64 bits": [[2**70, 1]],
    "truths": [[True, False]],
    "no number": [[float("nan"), 1]],
    "complex": [[1j, 1]],
    "a dict": {"a": 1},
    "Counts of a word": Counts("x"),  # type: ignore[arg-type]
    "Counts of floats": Counts(np.array([[0.5, 1.0]])),  # type: ignore[arg-type]
}
REQUIREMENTS: dict[str, Case] = {
    "words": (lambda: Requirement("a", "b"), InvalidRequirement),  # type: ignore[arg-type]
    "nothing": (lambda: Requirement(None, None), InvalidRequirement),  # type: ignore[arg-type]
    "a list": (lambda: Requirement(4, [1]), InvalidRequirement),
    "no number": (lambda: Requirement(4, float("nan")), InvalidRequirement),
    "complex": (lambda: Requirement(4, 1j), InvalidRequirement),
    "beyond any number": (lambda: Requirement(4, "1e999999999"), InvalidRequirement),
    "below any number": (lambda: Requirement(4, "1e-999999999"), InvalidRequirement),
    "bytes": (lambda: Requirement(4, b"1"), InvalidRequirement),
    "arrays": (lambda: Requirement(np.array([1, 2]), np.array([1, 2])), InvalidRequirement),  # type: ignore[arg-type]
    "a list of pairs": (lambda: Population([(ONE, 3)]), InvalidPopulation),  # type: ignore[arg-type]
    "a number of people": (lambda: Population(7), InvalidPopulation),  # type: ignore[arg-type]
    "people in words": (lambda: Population("x"), InvalidPopulation),  # type: ignore[arg-type]
    "no people": (lambda: Population(None), InvalidPopulation),  # type: ignore[arg-type]
    "a list as a size": (lambda: Population({ONE: [1]}), InvalidPopulation),  # type: ignore[dict-item]
    "the row of a list": (lambda: PEOPLE.index([1]), InvalidPopulation),  # type: ignore[arg-type]
    "levels in lists": (lambda: Levels([1], [2]), InvalidRequirement),  # type: ignore[arg-type]
    "no levels": (lambda: Levels(None, None), InvalidRequirement),  # type: ignore[arg-type]
    "a number as levels": (lambda: Levels({"High": "0.1"}, 7), InvalidRequirement),  # type: ignore[arg-type]
    "a window in words": (lambda: Levels({"High": "0.1"}, {"Small": "x"}), InvalidRequirement),  # type: ignore[dict-item]
    "a level in a list": (lambda: Levels().requirement(["High"], "Small"), InvalidRequirement),  # type: ignore[arg-type]
    "no level": (lambda: Levels().requirement(None, None), InvalidRequirement),  # type: ignore[arg-type]
}
ROSTERS: dict[str, Case] = {
    "columns of other lengths": (lambda: Roster.from_columns(["a"], [4, 4], [1]), InvalidRoster),
    "nothing": (lambda: Roster.from_columns(None, None, None), InvalidRoster),
    "a user alone": (lambda: Roster.from_columns("a", 4, 1), InvalidRoster),
    "no rows": (lambda: Roster.from_columns([], [], []), InvalidRoster),
    "ragged ids": (lambda: Roster.from_columns([["a"], ["b", "c"]], [4, 4], [1, 1]), InvalidRoster),
    "ragged windows": (lambda: Roster.from_columns(["a", "b"], [[4], [4, 4]], [1, 1]), InvalidRoster),
    "a window in words": (lambda: Roster.from_columns(["a"], ["x"], [1]), InvalidRequirement),
    "half a window": (lambda: Roster.from_columns(["a"], [4.5], [1]), InvalidRequirement),
    "nobody": (lambda: Roster.from_columns([None], [4], [1]), InvalidRoster),
    "a word that is no level": (lambda: Roster.from_levels(["a"], ["High"], ["Huge"]), InvalidRequirement),
    "levels in a dict": (
        lambda: Roster.from_levels(["a"], ["High"], ["Small"], levels={"a": 1}),  # type: ignore[arg-type]
        InvalidRoster,
    ),
    "other lengths": (lambda: roster().count(["a"], ["x", "y"], ["x", "y"]), WeventError),
    "no domain": (lambda: roster().count(["a"], ["x"], None), InvalidCells),  # type: ignore[arg-type]
    "k in words": (
        lambda: roster().count(["a"], ["x"], ["x"], max_cells_per_user="2"),  # type: ignore[arg-type]
        InvalidOption,
    ),
    "no k": (lambda: roster().count(["a"], ["x"], ["x"], max_cells_per_user=0), InvalidOption),
}
EXPERIMENTS: dict[str, Case] = {
    "a stream that is none": (lambda: compare("sim"), InvalidOption),
    "no repeats": (lambda: compare("sin", ["uniform"], repeats=0), InvalidOption),
    "repeats in words": (lambda: compare("sin", ["uniform"], repeats="2"), InvalidOption),  # type: ignore[arg-type]
    "a negative seed": (lambda: compare("sin", ["uniform"], seed=-1), InvalidOption),
    "no seed": (lambda: compare("sin", ["uniform"], seed=None), InvalidOption),  # type: ignore[arg-type]
    "no processes": (lambda: compare("sin", ["uniform"], processes=0), InvalidOption),
    "fewer than no slots": (lambda: compare("sin", ["uniform"], timed_slots=-1), InvalidOption),
    "a plan for a dict": (lambda: plan({ONE: 3}), InvalidPopulation),  # type: ignore[arg-type]
    "a plan for nobody": (lambda: plan(Population({ONE: 0, Requirement(8, 1): 0})), InvalidPopulation),
    "a plan without repeats": (lambda: plan(PEOPLE, repeats=0), InvalidOption),
    "an assigner of nothing": (lambda: Assigner("equal", [], []), InvalidOption),
    "an assigner of no kind": (lambda: compare("sin", ["uniform"], assigner=Assigner("equals")), InvalidOption),
    "a request for no slots": (lambda: open_stream(StreamRequest("sin", slots=0)), InvalidOption),
}
JOURNALS: dict[str, Case] = {
    "no journal": (lambda: wevent.open_journal(None), InvalidJournal),  # type: ignore[arg-type]
    "a journal that is not there": (lambda: wevent.open_journal("nowhere.journal"), WeventError),
    "an audit of nothing": (lambda: wevent.verify_journal(None), InvalidJournal),  # type: ignore[arg-type]
    "an audit of what is not there": (lambda: wevent.verify_journal("nowhere.journal"), WeventError),
    "no settings": (lambda: wevent.publish(), InvalidSettings),
    "a number as settings": (lambda: wevent.publish(config=7), InvalidSettings),  # type: ignore[arg-type]
    "options that are none": (lambda: declared(options=7), InvalidSettings),
    "a class to declare, alone": (lambda: wevent.RunOptions(declare="40,0.5"), InvalidSettings),  # type: ignore[arg-type]
    "a number as a journal": (lambda: declared(journal=7), InvalidSettings),
    "a number as an output": (lambda: declared(out=7), InvalidSettings),
    "a number as levels": (lambda: declared(levels=7), InvalidSettings),
    "a slot without a unit": (lambda: declared(slot=60), InvalidSettings),
    "a number as a start": (lambda: declared(start=5), InvalidSettings),
    "cells in a dict": (lambda: declared(cells={"a": 1}), InvalidCells),
    "events that are not there": (lambda: declared(), InvalidInput),
}
ALL = {
    f"{name}: {case}": call
    for name, cases in {
        "publisher": PUBLISHERS,
        "counts": {case: (lambda odd=odd: publisher().step(odd), InvalidCounts) for case, odd in COUNTS.items()},
        "requirements": REQUIREMENTS,
        "roster": ROSTERS,
        "experiments": EXPERIMENTS,
        "journal": JOURNALS,
    }.items()
    for case, call in cases.items()
}


@pytest.mark.parametrize("case", ALL)
def test_an_odd_call_is_answered_with_a_sentence(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    odd, kind = ALL[case]
    with pytest.raises(kind) as caught:
        odd()
    assert isinstance(caught.value, WeventError)
    assert str(caught.value).endswith((".", "?"))


COMMANDS = {
    "a plan for nobody": (("plan", "--class", "24:1.0=0"), "has no user"),
    "a plan for none of many": (("plan", "--class", "24:1.0=0", "--class", "48:0.5=0"), "has no user"),
    "a plan for words": (("plan", "--class", "24:x=5"), "Epsilon must be greater than 0"),
    "a comparison of no repeats": (("compare", "--repeats", "0"), "--repeats"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_an_odd_command_is_answered_with_a_sentence(case: str, tmp_path: Path) -> None:
    arguments, said = COMMANDS[case]
    done = call(tmp_path, *arguments)
    assert done.code == 2
    assert said in done.err
