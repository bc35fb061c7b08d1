"""Parquet files and frames as DuckDB expressions: a time in microseconds, a user and a cell, whatever the types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from wevent.core.limits import MAX_LABEL_BYTES
from wevent.errors import InvalidInput
from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import FRAME, InputFile, require_columns
from wevent.streams.files.parquet_times import (
    FLOATS,
    INTEGERS,
    LARGE,
    TIME_TYPES,
    refuse_naive,
    slot_expressions,
    time_expressions,
)
from wevent.streams.files.sql import file_list, quoted
from wevent.streams.files.survey import Survey
from wevent.streams.files.text_times import text_unzoned
from wevent.streams.records.decoding import NO_CELL, NO_OFFSET, NO_TIME, NO_USER, PROBLEMS
from wevent.streams.stream_settings import StreamSettings

_BEFORE, _AFTER, _MALFORMED = -1, -2, -10  # what stands for a slot; less its problem, if it is malformed


@dataclass(frozen=True)
class ParquetReader:
    """Files whose columns have the same types, and how to read an event from a row of them.

    Attributes:
        connection: where queries run.
        files: in input order.
        time: µs since 1970 as BIGINT, NULL if malformed (with a slot column: its number less one).
        unzoned: whether a malformed time would be one if an offset were declared.
        near: a condition on the raw time column for [{low}, {high}), for skipping parts of a file; may be generous.
        user: the id; text unless `integer_users`.
        cell: the label; text unless `integer_cells`.
    """

    connection: duckdb.DuckDBPyConnection
    files: tuple[InputFile, ...]
    time: str
    unzoned: str
    near: str
    user: str
    integer_users: bool
    cell: str
    integer_cells: bool
    text = False

    @property
    def scan(self) -> str:
        """The table function."""
        return _scan(self.files)

    @property
    def rows(self) -> str:
        """Select t, u, c and `unzoned` of all rows, in input order; NULL for what is none."""
        columns = f"{self.time} AS t, {self.unzoned} AS unzoned, {self.user} AS u, {self.cell} AS c"
        return f"SELECT {columns} FROM {self.scan}"

    def events(self, low_us: int, high_us: int, text_users: bool, text_cells: bool) -> str:
        """Select t, u, c of the well-formed events in [low, high), in input order."""
        user = f"CAST({self.user} AS VARCHAR)" if text_users and self.integer_users else self.user
        cell = f"CAST({self.cell} AS VARCHAR)" if text_cells and self.integer_cells else self.cell
        near = self.near.format(low=low_us, high=high_us)
        return (
            f"SELECT * FROM (SELECT {self.time} AS t, {user} AS u, {cell} AS c FROM {self.scan} WHERE {near}) "
            f"WHERE t IS NOT NULL AND t >= {low_us} AND t < {high_us} AND u IS NOT NULL AND c IS NOT NULL"
        )

    def survey(self, clock: SlotClock, last: int) -> Survey:
        """What is in the files, slot by slot."""
        low, high = clock.origin_us, clock.start_of(last + 1)
        slot = (
            f"CASE WHEN u IS NULL THEN {_MALFORMED - NO_USER} WHEN c IS NULL THEN {_MALFORMED - NO_CELL} "
            f"WHEN t IS NULL THEN CASE WHEN unzoned THEN {_MALFORMED - NO_OFFSET} ELSE {_MALFORMED - NO_TIME} END "
            f"WHEN t < {low} THEN {_BEFORE} WHEN t >= {high} THEN {_AFTER} "
            f"ELSE (t - {low}) // {clock.length_us} + 1 END"
        )
        query = f"SELECT {slot} AS slot, count(*) FROM ({self.rows}) GROUP BY 1"
        sizes = dict(self.fetch(query))
        problems = [sizes.pop(_MALFORMED - problem, 0) for problem in PROBLEMS]
        found = Survey(before=sizes.pop(_BEFORE, 0), after=sizes.pop(_AFTER, 0), problems=problems, sizes=sizes)
        if found.malformed:
            found.note(f"{self.files[0].path} (a row without time, user or cell)")
        return found

    def span(self) -> tuple[int, int] | None:
        """The first and last time in the files; None without events."""
        low, high = self.fetch(f"SELECT min(t), max(t) FROM (SELECT {self.time} AS t FROM {self.scan})")[0]
        return None if low is None else (low, high)

    def columns_of(self, file: InputFile) -> list[str]:
        """The names of all columns."""
        return [row[0] for row in self.fetch(f"DESCRIBE SELECT * FROM {_scan([file])}")]

    def fetch(self, query: str) -> list[Any]:
        """The rows of a query.

        Raises:
            InvalidInput: if a file cannot be read.
        """
        try:
            return self.connection.execute(query).fetchall()
        except duckdb.Error as error:
            raise unreadable(self.files, error) from None


def open_parquet(
    connection: duckdb.DuckDBPyConnection, files: Sequence[InputFile], settings: StreamSettings
) -> list[ParquetReader]:
    """A reader for each run of files whose columns have the same types.

    Raises:
        InvalidInput: for damaged files, missing columns, types that are no time, id or label.
        InvalidEvents: for times without an offset when none is declared.
    """
    readers: list[ParquetReader] = []
    for file in files:
        reader = _reader(connection, file, settings)
        if readers and _expressions(readers[-1]) == _expressions(reader):
            reader = replace(reader, files=(*readers.pop().files, file))
        readers.append(reader)
    return readers


def unreadable(files: Sequence[InputFile], error: duckdb.Error) -> InvalidInput:
    """What to say when DuckDB cannot go on."""
    names = ", ".join(repr(file.path) for file in files[:3])
    return InvalidInput(
        "readable input files",
        f"an error while reading {names} ({type(error).__name__})",
        "Check that none is cut off or still being written.",
        path=files[0].path,
    )


def _scan(files: Sequence[InputFile]) -> str:
    if files[0].format == FRAME:
        return FRAME
    return f"read_parquet({file_list(file.path for file in files)}, hive_partitioning = false)"


def _expressions(reader: ParquetReader) -> tuple[Any, ...]:
    expressions = reader.time, reader.unzoned, reader.near, reader.user, reader.cell
    return *expressions, reader.integer_users, reader.integer_cells


def _reader(connection: duckdb.DuckDBPyConnection, file: InputFile, settings: StreamSettings) -> ParquetReader:
    time_name = settings.slot_column or settings.columns["time"]
    wanted = (time_name, settings.columns["user"], settings.columns["cell"])
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {_scan([file])}").fetchall()
    except duckdb.Error as error:
        raise unreadable([file], error) from None
    types = {row[0]: row[1] for row in described}
    require_columns(file.path, list(types), wanted)
    for name in wanted:
        _require_scalar(file.path, name, types[name], as_time=name == time_name)
    unzoned = "false"
    if settings.slot_column:
        time, near = slot_expressions(quoted(time_name), types[time_name])
    else:
        refuse_naive(file.path, time_name, types[time_name], settings)
        time, near = time_expressions(quoted(time_name), types[time_name], settings)
        if settings.timezone_us is None and types[time_name] == "VARCHAR":
            unzoned = text_unzoned(quoted(time_name))
    user, integer_users = _label(quoted(wanted[1]), types[wanted[1]])
    cell, integer_cells = _label(quoted(wanted[2]), types[wanted[2]])
    return ParquetReader(connection, (file,), time, unzoned, near, user, integer_users, cell, integer_cells)


def _require_scalar(path: str, name: str, kind: str, *, as_time: bool) -> None:
    known = INTEGERS | LARGE | FLOATS | {"VARCHAR", "BOOLEAN", "UUID"}
    if as_time:
        known = (known | TIME_TYPES) - {"BOOLEAN", "UUID"}
    if kind not in known and not kind.startswith(("DECIMAL", "ENUM")):
        raise InvalidInput(
            f"a column {name!r} of " + ("times" if as_time else "ids or labels: numbers or text"),
            f"{path!r}, where it has the type {kind[:40]}",
            "Convert the column, or name another one.",
            path=path,
            column=name,
        )


def _label(column: str, kind: str) -> tuple[str, bool]:
    """An id or label, and whether it is an integer; NULL for what can be none, as in text files."""
    if kind.startswith("ENUM"):
        column, kind = f"CAST({column} AS VARCHAR)", "VARCHAR"
    if kind in INTEGERS:
        return f"CAST({column} AS BIGINT)", True
    if kind in FLOATS:  # a frame column with gaps
        whole = f"NOT isnan({column}) AND {column} = floor({column}) AND abs({column}) < 9e15"  # no bound excludes NaN
        return f"CASE WHEN {whole} THEN TRY_CAST({column} AS BIGINT) END", True
    if kind == "VARCHAR":
        legal = f"strlen({column}) BETWEEN 1 AND {MAX_LABEL_BYTES} AND NOT contains({column}, chr(0))"
        return f"CASE WHEN {legal} THEN {column} END", False
    return f"CAST({column} AS VARCHAR)", False
