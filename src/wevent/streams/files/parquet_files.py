"""Parquet files and frames as DuckDB expressions: a time in microseconds, a user and a cell, whatever the types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.cells import Cells
from wevent.counting.lookup import Labels
from wevent.counting.spelling import Spelled
from wevent.errors import InvalidInput
from wevent.settings import StreamSettings
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
from wevent.streams.records.decoding import NO_CELL, NO_OFFSET, NO_TIME, NO_USER, PROBLEMS, EventColumns

_BEFORE, _AFTER, _MALFORMED = -1, -2, -10  # what stands for a slot; less its problem, if it is malformed
_BATCH_ROWS = 2_000_000


@dataclass(frozen=True)
class ParquetReader:
    """Files whose columns have the same types, and how to read an event from a row of them.

    Attributes:
        connection: where queries run.
        files: in input order.
        cells: the declared cells.
        row_number: DuckDB's name for the number of a row; None if a column has that name.
        time: µs since 1970 as BIGINT, NULL if malformed (with a slot column: its number less one).
        unzoned: whether a malformed time would be one if an offset were declared.
        near: a condition on the raw time column for [{low}, {high}), for skipping parts of a file; may be generous.
        user: the id; text unless `integer_users`.
        cell: the label; text unless `integer_cells`.
    """

    connection: duckdb.DuckDBPyConnection
    files: tuple[InputFile, ...]
    cells: Cells
    row_number: str | None
    time: str
    unzoned: str
    near: str
    user: str
    integer_users: bool
    cell: str
    integer_cells: bool

    @property
    def scan(self) -> str:
        """The table function."""
        return _scan(self.files)

    @property
    def rows(self) -> str:
        """Select t, u, c and `unzoned` of all rows, in input order; NULL for what is none."""
        columns = f"{self.time} AS t, {self.unzoned} AS unzoned, {self.user} AS u, {self.cell} AS c"
        return f"SELECT {columns} FROM {self.scan}"

    def batches(self, low_us: int, high_us: int, *, in_parts: bool) -> Iterator[EventColumns]:
        """Return the events in [low, high) in input order."""
        near, inside = self.near.format(low=low_us, high=high_us), f"t >= {low_us} AND t < {high_us}"
        if in_parts:
            yield from self._parts(near, inside)
        else:
            yield self._read(self.files, near, inside)

    def everything(self) -> Iterator[EventColumns]:
        """Return all events in input order, whether a slot has them or not."""
        return self._parts("true", "true")

    def survey(self, clock: SlotClock, last: int, found: Survey) -> None:
        """Add the sizes of slots, and the rows that no slot has."""
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
        found.uncounted.malform(problems)
        found.uncounted.outside(sizes.pop(_BEFORE, 0), sizes.pop(_AFTER, 0))
        found.sizes.update(sizes)
        if any(problems):
            found.note(f"{self.files[0].path} (a row without time, user or cell)")

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

    def _parts(self, near: str, inside: str) -> Iterator[EventColumns]:
        if self.row_number is None:
            yield self._read(self.files, near, inside)
            return
        for file in self.files:
            rows = self.fetch(f"SELECT count(*) FROM {_scan([file])}")[0][0]
            for first in range(0, rows, _BATCH_ROWS):
                part = f"{self.row_number} BETWEEN {first} AND {first + _BATCH_ROWS - 1}"
                yield self._read([file], f"{near} AND {part}", inside)

    def _read(self, files: Sequence[InputFile], near: str, inside: str) -> EventColumns:
        """Return the events of some rows: `near` is a condition on raw columns, `inside` one on the time t."""
        query = (
            f"SELECT * FROM (SELECT {self.time} AS t, {self.user} AS u, {self.cell} AS c FROM {_scan(files)} "
            f"WHERE {near}) WHERE t IS NOT NULL AND {inside} AND u IS NOT NULL AND c IS NOT NULL"
        )
        try:
            found = self.connection.execute(query).fetchnumpy()
        except duckdb.Error as error:
            raise unreadable(files, error) from None
        return EventColumns(np.asarray(found["t"]), _labels(found["u"]), self.cells.find(_labels(found["c"])))


def _labels(column: npt.NDArray[Any]) -> Labels:
    values = np.asarray(column)
    return Labels.of(Spelled.of(values.tolist()) if values.dtype == object else values)


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
    return *expressions, reader.integer_users, reader.integer_cells, reader.row_number


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
    number = "rowid" if file.format == FRAME else "file_row_number"
    return ParquetReader(
        connection,
        (file,),
        settings.cells,
        None if number in map(str.lower, types) else number,
        time=time,
        unzoned=unzoned,
        near=near,
        user=user,
        integer_users=integer_users,
        cell=cell,
        integer_cells=integer_cells,
    )


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
