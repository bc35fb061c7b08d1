"""Event files as DuckDB expressions: whatever the format, a time in microseconds, a user and a cell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from wevent.errors import InvalidEvents, InvalidInput
from wevent.streams.inputs import InputFile, delimiter_of, find_files, open_input, require_columns
from wevent.streams.settings import StreamSettings

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}

_CLOCK_PART = r"\d{4}-\d{2}-\d{2}[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
ZONED = _CLOCK_PART + r"(Z|[+-]\d{2}(:?\d{2})?)"
_NAIVE = re.compile(_CLOCK_PART + r"|\d{4}-\d{2}-\d{2}")
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NAIVE_TYPES = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE"}


@dataclass(frozen=True)
class Reader:
    """Files of one shape, and how to read an event from a row of them.

    Attributes:
        files: in input order.
        scan: the table function.
        time: µs since 1970 as BIGINT, NULL if malformed (with a slot column: its number less one).
        near: a condition on the raw time column for [{low}, {high}), for skipping parts of a file; may be generous.
        user: the id; text unless `integer_users`.
        cell: the label; text unless `integer_cells`.
    """

    files: tuple[InputFile, ...]
    scan: str
    time: str
    near: str
    user: str
    integer_users: bool
    cell: str
    integer_cells: bool

    @property
    def text(self) -> bool:
        """Whether lines of it may be malformed."""
        return self.files[0].format != "parquet"

    @property
    def malformed(self) -> str:
        """The condition of a row without time, user or cell."""
        return f"({self.time}) IS NULL OR ({self.user}) IS NULL OR ({self.cell}) IS NULL"

    def events(self, low_us: int, high_us: int, text_users: bool, text_cells: bool) -> str:
        """Select t, u, c of the well-formed events in [low, high), in input order."""
        user = f"CAST({self.user} AS VARCHAR)" if text_users and self.integer_users else self.user
        cell = f"CAST({self.cell} AS VARCHAR)" if text_cells and self.integer_cells else self.cell
        near = self.near.format(low=low_us, high=high_us)
        return (
            f"SELECT * FROM (SELECT {self.time} AS t, {user} AS u, {cell} AS c FROM {self.scan} WHERE {near}) "
            f"WHERE t >= {low_us} AND t < {high_us} AND u IS NOT NULL AND c IS NOT NULL"
        )


def connect() -> duckdb.DuckDBPyConnection:
    """A private DuckDB that keeps input order and never writes to disk."""
    connection = duckdb.connect(":memory:")
    for setting in ("TimeZone = 'UTC'", "temp_directory = ''", "preserve_insertion_order = true"):
        connection.execute(f"SET {setting}")
    return connection


def open_readers(connection: duckdb.DuckDBPyConnection, settings: StreamSettings) -> list[Reader]:
    """A reader for each run of input files of the same shape, in input order.

    Raises:
        InvalidInput: for missing files, unknown formats, missing columns.
        InvalidEvents: for times without an offset when none is declared.
    """
    files = [open_input(path) for path in find_files(settings.inputs)]
    groups = itertools.groupby(files, key=lambda one: (one.format, one.columns if one.format in ("csv", "tsv") else ()))
    return [_reader(connection, tuple(group), settings) for _, group in groups]


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _reader(connection: duckdb.DuckDBPyConnection, files: tuple[InputFile, ...], settings: StreamSettings) -> Reader:
    time_name = settings.slot_column or settings.columns["time"]
    wanted = (time_name, settings.columns["user"], settings.columns["cell"])
    scan = _scan(files, wanted)
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    except duckdb.Error as error:
        raise InvalidInput(
            f"readable {files[0].format} files of one shape",
            f"{files[0].path!r} ({type(error).__name__})",
            "Check that all have the same columns, and that none is cut off.",
            path=files[0].path,
        ) from None
    types = {row[0]: row[1] for row in described}
    require_columns(files[0].path, list(types), wanted)
    for one in files:
        if one.format == "ndjson":
            require_columns(one.path, one.columns, wanted)
    if settings.slot_column:
        time, near = _slot_number(quoted(time_name), types[time_name])
    else:
        _refuse_naive(files, time_name, types[time_name], settings)
        time, near = _time(quoted(time_name), types[time_name], settings)
    user, integer_users = _label(quoted(wanted[1]), types[wanted[1]])
    cell, integer_cells = _label(quoted(wanted[2]), types[wanted[2]])
    return Reader(files, scan, time, near, user, integer_users, cell, integer_cells)


def _scan(files: tuple[InputFile, ...], wanted: Sequence[str]) -> str:
    paths = "[" + ", ".join(literal(one.path) for one in files) + "]"
    if files[0].format == "parquet":
        return f"read_parquet({paths})"
    if files[0].format == "ndjson":
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in wanted)
        return f"read_json({paths}, format = 'newline_delimited', columns = {{{columns}}}, ignore_errors = true)"
    require_columns(files[0].path, files[0].columns, wanted)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in files[0].columns)
    return (
        f"read_csv({paths}, columns = {{{columns}}}, auto_detect = false, header = true, "
        f"delim = {literal(delimiter_of(files[0].format))}, quote = '\"', escape = '\"', ignore_errors = true)"
    )


def _label(column: str, kind: str) -> tuple[str, bool]:
    """An id or label, and whether it is an integer."""
    if kind in _INTEGERS:
        return f"CAST({column} AS BIGINT)", True
    if kind in ("FLOAT", "DOUBLE"):  # a frame column with gaps
        return f"CASE WHEN {column} = floor({column}) AND abs({column}) < 9e15 THEN CAST({column} AS BIGINT) END", True
    if kind == "VARCHAR":
        return f"nullif({column}, '')", False
    return f"CAST({column} AS VARCHAR)", False


def _slot_number(column: str, kind: str) -> tuple[str, str]:
    number = column if kind in _INTEGERS else f"TRY_CAST({column} AS BIGINT)"
    return f"CAST({number} AS BIGINT) - 1", f"{number} > {{low}} AND {number} <= {{high}}"


def _time(column: str, kind: str, settings: StreamSettings) -> tuple[str, str]:
    """The time in microseconds, and a condition on the raw column for a range of it."""
    offset = settings.timezone_us or 0
    unit = UNITS[settings.time_unit]
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"epoch_us({column})", f"{column} >= make_timestamptz({{low}}) AND {column} < make_timestamptz({{high}})"
    if kind in _NAIVE_TYPES:
        moved = "make_timestamp({{{}}} + {})"
        bounds = moved.format("low", offset), moved.format("high", offset)
        return f"epoch_us({column}) - {offset}", f"{column} >= {bounds[0]} AND {column} < {bounds[1]}"
    if kind in _INTEGERS:
        bounds = f"{{low}} // {unit} - 1", f"{{high}} // {unit} + 1"
        near = f"{column} BETWEEN {bounds[0]} AND {bounds[1]}"
        return f"TRY_CAST(CAST({column} AS HUGEINT) * {unit} AS BIGINT)", near
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        near = f"{column} BETWEEN {{low}} / {unit}.0 - 1 AND {{high}} / {unit}.0 + 1"
        return f"TRY_CAST(round({column} * {unit}) AS BIGINT)", near
    number = f"TRY_CAST(TRY_CAST({column} AS DECIMAL(24, 6)) * {unit} AS BIGINT)"
    zoned = f"WHEN regexp_full_match({column}, {literal(ZONED)}) THEN epoch_us(TRY_CAST({column} AS TIMESTAMPTZ)) "
    naive = ""
    if settings.timezone_us is not None:
        naive = (
            f"WHEN regexp_full_match({column}, {literal(_CLOCK_PART)}) "
            f"THEN epoch_us(TRY_CAST({column} AS TIMESTAMP)) - {offset} "
        )
    return f"CASE {zoned}{naive}ELSE {number} END", "true"


def _refuse_naive(files: tuple[InputFile, ...], name: str, kind: str, settings: StreamSettings) -> None:
    if settings.timezone_us is not None:
        return
    for one in files:
        value = one.sample.get(name)
        if kind in _NAIVE_TYPES or (isinstance(value, str) and _NAIVE.fullmatch(value)):
            raise InvalidEvents(
                "times in UTC or with an offset, such as 2026-01-01T00:00:00Z",
                f"times without one in column {name!r} of {one.path!r}",
                "If they are UTC, declare timezone = 'UTC'; local times repeat an hour when summer time ends: "
                "write their offset.",
                path=one.path,
            )
