"""Data frames are counted as the Parquet file of them would be, whatever library they are of."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.streams import DAY, MEMORY, SECOND, settings
from wevent import InvalidEvents, InvalidInput, InvalidRequirement, InvalidRoster, Levels, Requirement, Roster
from wevent.streams import FileSource, SlotClock
from wevent.streams.duckdb_tables import _label, is_frame, load_frame
from wevent.streams.requirements_file import (
    Requirements,
    read_requirements,
    requirements_of_frame,
    requirements_of_mapping,
)

pytestmark = pytest.mark.slow

CLOCK = SlotClock(DAY, 60 * SECOND)
LAST = 12
CELLS = ["north", "south", "7"]
USERS = ["ann", "bob", "7", "Ünal"]

Make = Callable[[pa.Table], Any]
LIBRARIES: dict[str, Make] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas, Arrow types": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": pl.from_arrow,
    "Polars, lazy": lambda table: pl.from_arrow(table).lazy(),
    "Arrow table": lambda table: table,
    "Arrow batch": lambda table: table.combine_chunks().to_batches()[0],
    "Arrow reader": lambda table: table.to_reader(max_chunksize=7),
    "DuckDB relation": lambda table: duckdb.connect(":memory:").from_arrow(table),
}


def events(number: int = 600, seed: int = 1) -> pa.Table:
    """Events in no order, some of strangers, in no cell, without a field, outside the clock."""
    draw = np.random.default_rng(seed)
    times = DAY + draw.integers(-2 * 60 * SECOND, (LAST + 2) * 60 * SECOND, number)
    users = draw.choice([*USERS, "stranger", None, ""], number)
    cells = draw.choice([*CELLS, "nowhere", None], number)
    moments = pa.array(times, pa.timestamp("us", "UTC"))
    moments = pa.array([None if draw.random() < 0.05 else moment.as_py() for moment in moments], moments.type)
    return pa.table({"other": pa.array(range(number)), "time": moments, "user": users.tolist(), "cell": cells.tolist()})


def roster() -> Roster:
    return Roster.from_columns(USERS, [4, 4, 8, 8], [1, 1, "0.5", "0.5"])


def counted(changes: dict[str, Any]) -> tuple[list[list[list[int]]], dict[str, int]]:
    source = FileSource(settings(cells=CELLS, **changes), CLOCK, LAST)
    matrices = [slot.counts.matrix.tolist() for slot in source.count(roster(), 1, LAST)]
    return matrices, source.totals()


def counted_frame(frame: Any, **changes: Any) -> tuple[list[list[list[int]]], dict[str, int]]:
    names = ["time", "user", "cell"]
    return counted({"inputs": (), "frame": load_frame(frame, names), **changes})


def counted_file(table: pa.Table, folder: Path, **changes: Any) -> tuple[list[list[list[int]]], dict[str, int]]:
    pq.write_table(table, folder / "events.parquet")
    return counted({"inputs": (str(folder / "events.parquet"),), **changes})


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("memory", MEMORY)
def test_every_library_counts_as_the_file_does(library: str, memory: str, tmp_path: Path) -> None:
    table = events()
    matrices, totals = counted_file(table, tmp_path)
    assert np.sum(matrices) > 40  # of 48
    assert totals["malformed"] > 0
    with MEMORY[memory]():
        assert counted_frame(LIBRARIES[library](table)) == (matrices, totals)


def with_time(column: pa.Array) -> pa.Table:
    table = events()
    return table.set_column(table.schema.get_field_index("time"), "time", column)


def moments(unit: str, zone: str | None) -> pa.Table:
    whole = [None if moment is None else moment.replace(microsecond=0) for moment in events()["time"].to_pylist()]
    return with_time(
        pa.array(whole, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))
    )


@pytest.mark.parametrize("library", ["pandas", "Polars", "Arrow table", "DuckDB relation"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
def test_times_of_every_unit_and_zone(library: str, unit: str, zone: str | None, tmp_path: Path) -> None:
    if zone is None:
        naive = moments(unit, "UTC")
        table = with_time(naive["time"].combine_chunks().cast(pa.timestamp(unit)))
        with pytest.raises(InvalidEvents, match="declare timezone"):
            counted_frame(LIBRARIES[library](table))
        changes: dict[str, Any] = {"timezone_us": 0}
    else:
        table, changes = moments(unit, zone), {}
    wanted = counted_file(moments("us", "UTC"), tmp_path)
    assert counted_frame(LIBRARIES[library](table), **changes) == wanted
    assert counted_file(table, tmp_path, **changes) == wanted


KINDS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "objects": lambda frame: frame.astype(object).where(frame.notna(), None),
    "categories": lambda frame: frame.assign(user=frame.user.astype("category"), cell=frame.cell.astype("category")),
    "strings": lambda frame: frame.assign(user=frame.user.astype("string"), cell=frame.cell.astype("string")),
    "a time as text": lambda frame: frame.assign(time=frame.time.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
    "an index in disorder": lambda frame: frame.set_index(frame.index[::-1]),
    "another name": lambda frame: frame.rename(columns={"other": 3}),
    "a column DuckDB does not know": lambda frame: frame.assign(
        other=pd.period_range("2026", periods=len(frame), freq="D")
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pandas_columns_of_many_kinds(kind: str, tmp_path: Path) -> None:
    assert counted_frame(KINDS[kind](events().to_pandas())) == counted_file(events(), tmp_path)


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(user=np.arange(len(frame)) % 5 + 1, cell=np.arange(len(frame)) % 3)


@pytest.mark.parametrize(
    "kind",
    [
        lambda frame: frame,
        lambda frame: frame.astype({"user": "Int64", "cell": "int8"}),
        lambda frame: frame.astype({"user": "float64", "cell": "float32"}),
        lambda frame: frame.astype({"user": object, "cell": "category"}),
    ],
    ids=["int", "nullable", "float", "object"],
)
def test_numbers_as_ids_and_cells(kind: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    people = Roster.from_columns([1, 2, 3, 4], [4, 4, 8, 8], [1, 1, 1, 1])
    frame = kind(numbered(events().to_pandas()))
    source = FileSource(settings([], cells=3, frame=load_frame(frame, ["time", "user", "cell"])), CLOCK, LAST)
    plain = Roster.from_columns([1, 2, 3, 4], [4, 4, 8, 8], [1, 1, 1, 1])
    wanted = FileSource(
        settings([], cells=3, frame=load_frame(numbered(events().to_pandas()), ["time", "user", "cell"])), CLOCK, LAST
    )
    for mine, its in zip(source.count(people, 1, LAST), wanted.count(plain, 1, LAST), strict=True):
        assert mine.counts.matrix.tolist() == its.counts.matrix.tolist()
        assert mine.counts.matrix.sum() > 0


def test_a_record_does_not_decide_what_the_others_are() -> None:
    """DuckDB looks at the first objects of a column to choose its type; a later one of another type would end the run."""
    frame = events().to_pandas()
    users = np.array([7] * len(frame), dtype=object)
    users[-1] = {"not": "an id"}
    counted_frame(frame.assign(user=users))


NEVER = [2**62, -(2**62), 10**17, 2**63 - 1, -(2**63) + 1]  # milliseconds that no microsecond reaches


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "DuckDB relation"])
@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
def test_a_time_beyond_the_calendar_is_one_malformed_event(library: str, unit: str, zone: str | None) -> None:
    if library.startswith("Polars") and unit == "s":
        unit = "ms"  # it knows no seconds
    scale = {"s": SECOND, "ms": SECOND // 1000}[unit]
    for never in NEVER:
        times = pa.array([DAY // scale, never], pa.int64()).cast(pa.timestamp(unit, zone))
        if library == "pandas":
            column = pd.Series(np.array([DAY // scale, never]).view(f"datetime64[{unit}]"))
            frame: Any = pd.DataFrame({"user": ["ann", "bob"], "cell": ["north", "south"]})
            frame["time"] = column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)
        else:
            frame = LIBRARIES[library](pa.table({"time": times, "user": ["ann", "bob"], "cell": ["north", "south"]}))
        matrices, totals = counted_frame(frame, timezone_us=0)
        assert np.sum(matrices) == 1
        assert totals["malformed"] == totals["no_time"] == 1


class Untold:
    """It has no text."""

    def __str__(self) -> str:
        raise ValueError("ann was here")


@pytest.mark.parametrize("value", ["\ud800", Untold(), Decimal("sNaN"), None, pd.NA, pd.NaT, float("nan"), ["north"]])
@pytest.mark.parametrize("column", ["time", "user", "cell"])
def test_an_object_that_is_no_text_touches_no_other_row(value: Any, column: str) -> None:
    row = {"time": "2026-01-01T00:00:01Z", "user": "ann", "cell": "north"}
    frame = pd.DataFrame([row, {**row, column: value, "user": value if column == "user" else "bob"}, row], dtype=object)
    matrices, totals = counted_frame(frame)
    assert np.sum(matrices) == 1
    assert totals["rejected"] + totals["malformed"] == 1


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("library", ["pandas", "Polars", "Arrow table", "Arrow reader"])
def test_columns_of_nothing_are_empty_slots(library: str, rows: int) -> None:
    frame = LIBRARIES[library](pa.table({name: pa.nulls(rows) for name in ("time", "user", "cell")}))
    matrices, totals = counted_frame(frame)
    assert np.sum(matrices) == 0
    assert len(matrices) == LAST
    assert totals["malformed"] == rows


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_events_are_empty_slots(library: str) -> None:
    nothing = events().schema.empty_table()
    matrices, totals = counted_frame(LIBRARIES["Arrow table" if library == "Arrow batch" else library](nothing))
    assert len(matrices) == LAST
    assert np.sum(matrices) == 0
    assert not any(totals.values())


def read_twice() -> Any:
    reader = events().to_reader()
    load_frame(reader, ["time", "user", "cell"])
    return reader


ONE = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a missing column": (lambda: pd.DataFrame({"time": ONE, "user": ["a"]}), "no column 'cell'"),
    "no columns": (lambda: pd.DataFrame(), "no column 'time'"),
    "a column twice": (
        lambda: pd.DataFrame([[1, 2, 3, 4]], columns=["time", "user", "cell", "cell"]),
        "column 'cell' twice",
    ),
    "an Arrow column twice": (
        lambda: pa.table([pa.array([1])] * 4, names=["time", "user", "cell", "user"]),
        "column 'user' twice",
    ),
    "columns that differ in case": (
        lambda: pa.table([pa.array([1])] * 4, names=["Time", "time", "user", "cell"]).to_reader(),
        "differ in case",
    ),
    "the index": (
        lambda: pd.DataFrame({"user": ["a"], "cell": ["b"]}, index=pd.Index(ONE, name="time")),
        "Call reset_index",
    ),
    "lists": (lambda: pa.table({"time": ONE, "user": [["a"]], "cell": ["b"]}), "ids or labels"),
    "objects that Polars keeps": (
        lambda: pl.DataFrame({"time": ONE, "user": pl.Series([object()], dtype=pl.Object), "cell": ["b"]}),
        "ids or labels",
    ),
    "a reader that was read": (read_twice, "was read before"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_read_is_a_sentence(case: str) -> None:
    make, said = WRONG[case]
    with pytest.raises(InvalidInput, match=said):
        counted_frame(make())


def test_a_reader_that_was_refused_was_not_read() -> None:
    reader = events().to_reader()
    with pytest.raises(InvalidInput, match="no column 'when'"):
        load_frame(reader, ["when", "user", "cell"])
    assert load_frame(reader, ["time", "user", "cell"]).file.path == "Arrow RecordBatchReader"


def test_what_is_a_frame() -> None:
    table = events()
    assert all(is_frame(make(table)) for make in LIBRARIES.values())
    columns = (table.to_pandas()["user"], pl.from_arrow(table)["user"], table["user"])
    assert not any(is_frame(other) for other in (*columns, None, "events.csv", [], {}, 7, pd.DataFrame, np.zeros(3)))


PEOPLE = pa.table({"epsilon": [0.5, 1.0, 0.6], "user": ["ann", " bob ", "7"], "window": [4, 40, 8]})


def plain(asked: Requirements) -> tuple[list[str], list[tuple[int, int]], list[str] | None]:
    users = asked.users.tolist() if isinstance(asked.users, np.ndarray) else list(asked.users.texts())
    return [str(user) for user in users], list(asked.keys), asked.words


@pytest.mark.parametrize("library", LIBRARIES)
def test_requirements_in_a_frame_are_those_of_the_file(library: str, tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "users.parquet")
    wanted = plain(read_requirements(tmp_path / "users.parquet"))
    assert wanted[0] == ["ann", " bob ", "7"]
    assert plain(requirements_of_frame(LIBRARIES[library](PEOPLE))) == wanted


def test_requirements_with_gaps_are_numbers_still() -> None:
    frame = pd.DataFrame({"user": [1.0, 2.0], "window": [4.0, 8.0], "epsilon": [1, 0.5]})
    assert plain(requirements_of_frame(frame)) == (["1", "2"], [(4, 10**9), (8, 5 * 10**8)], None)
    with pytest.raises(InvalidInput, match="pandas DataFrame, row 2: The row has no id"):
        requirements_of_frame(pd.DataFrame({"user": [1.0, np.nan], "window": [4, 8], "epsilon": [1, 0.5]}))


def test_requirements_in_words() -> None:
    frame = pl.DataFrame({"user": ["a", "b"], "privacy": ["High", "Low"], "window": ["Small", "Large"]})
    levels = Levels({"High": "0.1", "Low": "1"}, {"Small": 4, "Large": 8})
    wanted = (["a", "b"], [(4, 10**8), (8, 10**9)], ["High/Small", "Low/Large"])
    assert plain(requirements_of_frame(frame, levels)) == wanted


def test_requirements_in_a_mapping() -> None:
    asked = requirements_of_mapping(
        {"ann": Requirement(4, 1), 7: Requirement(8, "0.5"), np.int64(8): Requirement(8, 1)}
    )
    assert plain(asked) == (["ann", "7", "8"], [(4, 10**9), (8, 5 * 10**8), (8, 10**9)], None)


NONE: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "nobody": (lambda: requirements_of_mapping({}), InvalidInput, "has no rows"),
    "an id that is none": (
        lambda: requirements_of_mapping({None: Requirement(4, 1)}),
        InvalidInput,
        "The row has no id",
    ),
    "ids spelled alike": (
        lambda: requirements_of_mapping({1: Requirement(4, 1), "1": Requirement(4, 1)}),
        InvalidRoster,
        "the id is in row 1 too",
    ),
    "a pair": (lambda: requirements_of_mapping({"a": (4, 1)}), InvalidRequirement, "of type tuple"),  # type: ignore[dict-item]
    "a column": (
        lambda: requirements_of_frame(PEOPLE.drop_columns(["window"])),
        InvalidInput,
        "Its columns: 'epsilon', 'user'",
    ),
    "a long id": (lambda: requirements_of_mapping({"a" * 5000: Requirement(4, 1)}), InvalidInput, "without NULs"),
}


@pytest.mark.parametrize("case", NONE)
def test_requirements_that_are_none(case: str) -> None:
    call, kind, said = NONE[case]
    with pytest.raises(kind, match=said):
        call()


def texts(frame: Any) -> list[str | None]:
    """The column `user` of a frame, as text."""
    (column,) = next(load_frame(frame, ["user"]).select(['CAST("user" AS VARCHAR)']))
    return [text if there else None for text, there in zip(column.values.texts(), column.present.tolist(), strict=True)]


NO_UNICODE = b"u0\xff\xfeu2"
ARROW_TEXT = {
    "text": lambda text: text,
    "large text": lambda text: text.cast("large_string"),
    "dictionary": lambda text: text.dictionary_encode(),
    "pandas over Arrow": lambda text: text.to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("kind", ARROW_TEXT)
def test_a_text_that_is_no_unicode_is_missing_and_stops_nobody(kind: str) -> None:
    offsets, data = (pa.py_buffer(one) for one in (np.array([0, 2, 4, 6], np.int32).tobytes(), NO_UNICODE))
    column = ARROW_TEXT[kind](pa.Array.from_buffers(pa.string(), 3, [None, offsets, data]))
    frame = pd.DataFrame({"user": column}) if isinstance(column, pd.Series) else pa.table({"user": column})
    assert texts(frame) == ["u0", None, "u2"]


def test_a_far_time_in_a_dictionary_stops_nobody() -> None:
    times = pa.array([1_767_225_610, 2**62]).view(pa.timestamp("s", "UTC"))
    frame = pa.table({"user": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), times)})
    assert [one is None for one in texts(frame)] == [False, True, False]


def test_the_least_hugeint_stops_nobody() -> None:
    relation = duckdb.sql("SELECT * FROM (VALUES (1::HUGEINT), (-170141183460469231731687303715884105728)) AS t(user)")
    column = load_frame(relation, ["user"])
    (read,) = next(column.select([_label('"user"', column.types["user"])]))
    assert [read.values.texts()[0], read.present.tolist()] == ["1", [True, False]]
