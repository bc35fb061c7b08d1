"""Parquet files and frames as DuckDB expressions: a time in microseconds, a user and a cell, whatever the types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from wevent.core.limits import MAX_LABEL_BYTES
from wevent.errors import InvalidEvents, InvalidInput
from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import FRAME, InputFile, require_columns
from wevent.streams.files.sql import file_list, quoted
from wevent.streams.files.survey import Survey
from wevent.streams.files.text_times import near_number, text_time, text_unzoned, whole_number
from wevent.streams.records.decoding import NO_CELL, NO_OFFSET, NO_TIME, NO_USER, PROBLEMS
from wevent.streams.records.times import UNITS
from wevent.streams.stream_settings import StreamSettings

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_LARGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
_ZONED_TYPE = "TIMESTAMP WITH TIME ZONE"
_FINE_ZONED_TYPE = "TIMESTAMPTZ_NS"
_NAIVE_TYPES = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE"}
_COARSE_TYPES = {"TIMESTAMP_S", "TIMESTAMP_MS"}
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
        time, near = _slot_number(quoted(time_name), types[time_name])
    else:
        _refuse_naive(file.path, time_name, types[time_name], settings)
        time, near = _time(quoted(time_name), types[time_name], settings)
        if settings.timezone_us is None and types[time_name] == "VARCHAR":
            unzoned = text_unzoned(quoted(time_name))
    user, integer_users = _label(quoted(wanted[1]), types[wanted[1]])
    cell, integer_cells = _label(quoted(wanted[2]), types[wanted[2]])
    return ParquetReader(connection, (file,), time, unzoned, near, user, integer_users, cell, integer_cells)


def _require_scalar(path: str, name: str, kind: str, *, as_time: bool) -> None:
    known = _INTEGERS | _LARGE | _FLOATS | {"VARCHAR", "BOOLEAN", "UUID"}
    if as_time:
        known = (known | _NAIVE_TYPES | {_ZONED_TYPE, _FINE_ZONED_TYPE}) - {"BOOLEAN", "UUID"}
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
    if kind in _INTEGERS:
        return f"CAST({column} AS BIGINT)", True
    if kind in _FLOATS:  # a frame column with gaps
        whole = f"NOT isnan({column}) AND {column} = floor({column}) AND abs({column}) < 9e15"  # no bound excludes NaN
        return f"CASE WHEN {whole} THEN TRY_CAST({column} AS BIGINT) END", True
    if kind == "VARCHAR":
        legal = f"strlen({column}) BETWEEN 1 AND {MAX_LABEL_BYTES} AND NOT contains({column}, chr(0))"
        return f"CASE WHEN {legal} THEN {column} END", False
    return f"CAST({column} AS VARCHAR)", False


def _slot_number(column: str, kind: str) -> tuple[str, str]:
    number = column if kind in _INTEGERS else f"TRY_CAST({column} AS BIGINT)"
    shifted = f"CAST({number} AS BIGINT)"
    return f"CASE WHEN {shifted} > -4e18 THEN {shifted} - 1 END", f"{number} > {{low}} AND {number} <= {{high}}"


def _time(column: str, kind: str, settings: StreamSettings) -> tuple[str, str]:
    """The time in microseconds, and a condition on the raw column for a range of it."""
    offset = settings.timezone_us or 0
    unit = UNITS[settings.time_unit]
    if kind == _FINE_ZONED_TYPE:  # which DuckDB compares with nothing else
        column, kind = f"CAST({column} AS TIMESTAMPTZ)", _ZONED_TYPE
    if kind in _COARSE_TYPES:  # compared as they are, a time beyond microseconds would end the query
        column, kind = f"TRY_CAST({column} AS TIMESTAMP)", "TIMESTAMP"
    if kind.startswith("ENUM"):
        column, kind = f"CAST({column} AS VARCHAR)", "VARCHAR"
    if kind == _ZONED_TYPE:
        near = f"{column} >= make_timestamptz({{low}}) AND {column} < make_timestamptz({{high}})"
        return _finite(column, f"epoch_us({column})"), near
    if kind in _NAIVE_TYPES:
        moved = "make_timestamp({{{}}} + {})"
        bounds = moved.format("low", offset), moved.format("high", offset)
        shifted = f"TRY_CAST(CAST(epoch_us(TRY_CAST({column} AS TIMESTAMP)) AS HUGEINT) - {offset} AS BIGINT)"
        return _finite(column, shifted), f"{column} >= {bounds[0]} AND {column} < {bounds[1]}"
    if kind in _INTEGERS | _LARGE:
        bounds = f"{{low}} // {unit} - 1", f"{{high}} // {unit} + 1"
        near = f"{column} BETWEEN {bounds[0]} AND {bounds[1]}"
        return whole_number(column, unit), near
    if kind in _FLOATS:
        near = f"{column} BETWEEN {{low}} / {unit}.0 - 1 AND {{high}} / {unit}.0 + 1"
        return near_number(f"CAST({column} AS DOUBLE)", unit), near
    if kind == "VARCHAR":
        return text_time(column, unit, settings.timezone_us), "true"
    return f"TRY_CAST(TRY_CAST({column} AS DECIMAL(24, 6)) * {unit} AS BIGINT)", "true"


def _finite(column: str, expression: str) -> str:
    return f"CASE WHEN isfinite({column}) THEN {expression} END"


def _refuse_naive(path: str, name: str, kind: str, settings: StreamSettings) -> None:
    if settings.timezone_us is None and kind in _NAIVE_TYPES:
        raise InvalidEvents(
            "times in UTC or with an offset, such as 2026-01-01T00:00:00Z",
            f"times without one in column {name!r} of {path!r}",
            "If they are UTC, declare timezone = 'UTC'; local times repeat an hour when summer time ends: "
            "write their offset.",
            path=path,
        )
