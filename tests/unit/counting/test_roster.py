"""From users and events to classes and counts, against a plain dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.profiles import examples
from wevent import Cells, Levels, Population, Requirement, Roster

USERS, WINDOWS, EPSILONS = ["ann", "bob", "cat", "dan"], [40, 120, 40, 40], [1.0, 0.6, 1.0, 0.5]
CLASSES = (Requirement(40, 0.5), Requirement(40, 1), Requirement(120, 0.6))

COLUMNS = {
    "lists": lambda values: values,
    "numpy": np.array,
    "objects": lambda values: np.array(values, dtype=object),
    "pandas": pd.Series,
    "polars": pl.Series,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_roster_from_any_kind_of_column(kind: str) -> None:
    column = COLUMNS[kind]
    roster = Roster.from_columns(column(USERS), column(WINDOWS), column(EPSILONS))
    assert roster.population.classes == CLASSES
    assert roster.population.sizes.tolist() == [1, 2, 1]
    assert len(roster) == 4
    counts = roster.count(column(["ann", "dan", "ann", "eve"]), column(["s", "n", "n", "n"]), ["n", "s"])
    assert counts.matrix.tolist() == [[1, 0], [1, 0], [0, 0]]
    assert counts.matrix.dtype == np.int64
    assert counts.rejected == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_epsilons_are_read_as_written_in_any_precision(dtype: type) -> None:
    roster = Roster.from_columns([1, 2, 3], [40, 40, 40], np.array([0.6, 0.1, 0.5], dtype=dtype))
    assert [one.nano for one in roster.population.classes] == [100_000_000, 500_000_000, 600_000_000]


def test_float32_frames_too() -> None:
    for column in (pd.Series([0.6, 0.7], dtype="float32"), pl.Series([0.6, 0.7], dtype=pl.Float32)):
        roster = Roster.from_columns([1, 2], [4, 4], column)
        assert [one.nano for one in roster.population.classes] == [600_000_000, 700_000_000]


def test_decimal_strings_are_exact() -> None:
    roster = Roster.from_columns([1], [4], ["0.123456789"])
    assert roster.population.classes[0].nano == 123_456_789


def test_epsilons_that_floor_to_the_same_are_one_class() -> None:
    roster = Roster.from_columns([1, 2], [4, 4], ["0.1234567891", "0.1234567899"])
    assert roster.population.sizes.tolist() == [2]


@pytest.mark.parametrize("column", [list, np.array, pd.Series, pl.Series])
def test_levels(column: Any) -> None:
    roster = Roster.from_levels(
        column(["a", "b", "c"]), column(["High", "Low", "High"]), column(["Small", "Large", "Small"])
    )
    assert roster.population.classes == (Requirement(40, 0.1), Requirement(120, 0.9))
    assert roster.population.sizes.tolist() == [2, 1]
    own = Roster.from_levels(["a"], ["x"], ["y"], levels=Levels({"x": 2}, {"y": 7}))
    assert own.population.classes == (Requirement(7, 2),)


@pytest.mark.parametrize("ids", [[0, 1, 2], [10**15, 3, -7], ["0", "1", "2"], [2**63 + 1, 5, 6]])
def test_the_last_event_wins_and_the_unknown_are_rejected(ids: list[Any]) -> None:
    roster = Roster.from_columns(ids, [1, 2, 2], [1, 1, 1])
    stranger = "9" if isinstance(ids[0], str) else 999
    counts = roster.count([ids[1], ids[0], ids[1], stranger, ids[2]], [0, 1, 2, 0, 3], 3)
    assert counts.matrix.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert counts.rejected == 2


def test_an_unknown_cell_does_not_overrule_an_earlier_event() -> None:
    roster = Roster.from_columns(["a"], [1], [1])
    counts = roster.count(["a", "a"], [1, 5], 3)
    assert counts.matrix.tolist() == [[0, 1, 0]]
    assert counts.rejected == 1


def test_a_slot_without_events() -> None:
    counts = Roster.from_columns(["a"], [1], [1]).count([], [], 3)
    assert counts.matrix.tolist() == [[0, 0, 0]]
    assert counts.rejected == 0


def test_whole_floats_are_integers_because_columns_with_gaps_are_floats() -> None:
    roster = Roster.from_columns([4, 7], [1, 1], [1, 1])
    counts = roster.count(np.array([4.0, np.nan, 7.0, 7.5]), np.array([0.0, 1.0, np.nan, 1.0]), 2)
    assert counts.matrix.tolist() == [[1, 0]]
    assert counts.rejected == 3


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([4, 9, None], dtype="Int64"),
        pd.Series([4, 9, None], dtype=object),
        pl.Series([4, 9, None]),
        pd.Series([4, 9, 11], dtype="category"),
        np.array([4, 9, 2**62], dtype=np.uint64),
    ],
)
def test_columns_with_gaps(column: Any) -> None:
    counts = Roster.from_columns([4, 7], [1, 1], [1, 1]).count(column, [1, 1, 1], 2)
    assert counts.matrix.tolist() == [[0, 1]]
    assert counts.rejected == 2


@pytest.mark.parametrize("column", [pd.Series(["a", "z", None]), pl.Series(["a", "z", None])])
def test_text_columns_with_gaps(column: Any) -> None:
    counts = Roster.from_columns(["a", "b"], [1, 1], [1, 1]).count(column, [1, 1, 1], 2)
    assert counts.matrix.tolist() == [[0, 1]]
    assert counts.rejected == 2


@pytest.mark.parametrize(
    ("limit", "row"), [(1, [0, 1, 0, 0]), (2, [1, 1, 0, 0]), (3, [1, 1, 0, 1]), (4, [1, 1, 1, 1]), (9, [1, 1, 1, 1])]
)
def test_the_last_k_distinct_cells(limit: int, row: list[int]) -> None:
    """In the order 2, 3, 0, 1 of their last events; a repeated cell counts once."""
    roster = Roster.from_columns(["a"], [1], [1])
    counts = roster.count(["a"] * 7, [1, 1, 2, 3, 0, 0, 1], 4, max_cells_per_user=limit)
    assert counts.matrix.tolist() == [row]


def plain_count(
    requirements: list[Requirement], events: list[tuple[int, int]], cells: int, limit: int
) -> tuple[list[list[int]], int]:
    """The definition, one event at a time; user i is called 3·i + 5."""
    last: dict[int, list[int]] = {}
    rejected = 0
    for user, cell in events:
        number, rest = divmod(user - 5, 3)
        if rest or not 0 <= number < len(requirements) or not 0 <= cell < cells:
            rejected += 1
            continue
        seen = last.setdefault(number, [])
        if cell in seen:
            seen.remove(cell)
        seen.append(cell)
    classes = sorted(set(requirements))
    matrix = [[0] * cells for _ in classes]
    for number, seen in last.items():
        for cell in seen[-limit:]:
            matrix[classes.index(requirements[number])][cell] += 1
    return matrix, rejected


@examples(150)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from([5, 5, 5, 8, 8, 11, 20, 6, 3]), st.integers(-1, 5)), max_size=40),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from(["int", "text", "far"]),
)
def test_counting_is_that_of_a_plain_dictionary(pairs, events, cells, limit, kind) -> None:
    requirements = [Requirement(window, epsilon) for window, epsilon in pairs]
    name = {"int": lambda user: user, "text": lambda user: f"user {user}", "far": lambda user: user * 10**12}[kind]
    domain: Any = [f"cell {cell}" for cell in range(cells)] if kind == "text" else cells
    roster = Roster.from_columns(
        [name(3 * number + 5) for number in range(len(pairs))],
        [window for window, _ in pairs],
        [epsilon for _, epsilon in pairs],
    )
    counts = roster.count(
        [name(user) for user, _ in events],
        [f"cell {cell}" if kind == "text" else cell for _, cell in events],
        Cells.of(domain),
        max_cells_per_user=limit,
    )
    matrix, rejected = plain_count(requirements, events, cells, limit)
    assert counts.matrix.tolist() == matrix
    assert counts.rejected == rejected
    assert (counts.matrix.sum(axis=1) <= limit * roster.population.sizes).all()


@pytest.mark.parametrize("limit", [0, -1])
def test_a_user_is_in_at_least_one_cell(limit: int) -> None:
    with pytest.raises(ValueError, match="max_cells_per_user"):
        Roster.from_columns(["a"], [1], [1]).count(["a"], [0], 2, max_cells_per_user=limit)


def test_unregistered_users_count_up_to_the_declared_number_smallest_ids_first() -> None:
    population = Population({Requirement(4, 1): 5, Requirement(8, "0.5"): 2})
    roster = Roster(np.array([1, 2]), np.array([0, 1]), population, unknown_row=1, unknown_limit=2)
    users, cells = [9, 1, 7, 8, 9, 7, 2, 3], [0, 0, 1, 2, 2, 0, 1, 99]
    for order in (np.arange(8), np.array([0, 2, 3, 4, 5, 1, 6, 7])):
        counts = roster.count(np.array(users)[order], np.array(cells)[order], 3)
        assert counts.matrix.tolist() == [[1, 0, 0], [1, 1, 1]]  # 7 in cell 0, 8 in cell 2; 9 is one too many
        assert counts.rejected == 3
    assert roster.count([1], [0], 3).matrix.tolist() == [[1, 0, 0], [0, 0, 0]]
