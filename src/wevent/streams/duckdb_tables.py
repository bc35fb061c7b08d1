"""Parquet files and frames through DuckDB: types of columns, queries, events.

Results arrive as Arrow batches over the C interface of DuckDB, which needs no further package. A query reads a table once,
in the order of its rows, and holds one batch at a time.

A frame is copied once into a private DuckDB in memory, which never writes to disk. DuckDB refuses a whole frame for one
zoned time beyond microseconds, for one text that is no Unicode, and for a column without values. Such columns are changed
first, so that no record prevents reading the others.
"""

from __future__ import annotations

import ctypes
import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.labels import NO_LABEL, Labels
from wevent.counting.string_column import StringColumn, padded
from wevent.errors import InvalidEvents, InvalidInput
from wevent.settings import StreamSettings
from wevent.streams.decoding import TIME_PROBLEMS, assemble, event_columns, time_reader
from wevent.streams.inputs import FRAME, EventPiece, InputFile, require_columns
from wevent.streams.times import MAX_TIME_BYTES, UNITS, TimeReader

ZONED, NAIVE, WHOLE, NUMBER, TEXT, NOTHING = (
    "times with an offset",
    "times without an offset",
    "whole numbers",
    "numbers",
    "text",
    "nothing",
)
"""Kinds of columns, in words."""

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FLOATS = ("FLOAT", "DOUBLE")
_TYPES = {
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), ZONED),
    **dict.fromkeys(("TIMESTAMP", "DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), NAIVE),
    **dict.fromkeys((*_INTEGERS, "UBIGINT", "HUGEINT", "UHUGEINT"), WHOLE),
    **dict.fromkeys((*_FLOATS, "DECIMAL"), NUMBER),
    **dict.fromkeys(("VARCHAR", "ENUM", "BOOLEAN", "UUID"), TEXT),
}

_LIBRARIES = {"pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow", "duckdb": "DuckDB", "_duckdb": "DuckDB"}
_COARSE = ("s", "ms")  # units in which a time may be beyond microseconds
_IN_UTC = "TRY_CAST(TRY_CAST({0} AS TIMESTAMP) AS TIMESTAMPTZ)"  # NULL beyond microseconds
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")

_USED_UP: WeakSet[Any] = WeakSet()  # readers that were read


def kind_of(type_name: str) -> str | None:
    """Return the kind of a column of some type of DuckDB; None for a type without plain values, such as lists."""
    return _TYPES.get(type_name) or (None if type_name.endswith("]") else _TYPES.get(type_name.partition("(")[0]))


def connect() -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB that keeps the order of rows and never writes to disk."""
    connection = duckdb.connect(":memory:")
    for setting in ("TimeZone = 'UTC'", "temp_directory = ''", "preserve_insertion_order = true"):
        connection.execute(f"SET {setting}")
    return connection


def quoted(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def file_list(paths: Iterable[str]) -> str:
    """Return files for a table function; each path is meant literally, not as a glob."""
    return "[" + ", ".join(literal(glob.escape(path)) for path in paths) + "]"


class TableColumn(NamedTuple):
    """Values of one column in some rows.

    Attributes:
        values: whole numbers, floats or texts.
        present: which are not NULL; the others are of any value, texts are empty.
    """

    values: npt.NDArray[Any] | StringColumn
    present: BoolArray


class Table:
    """A Parquet file, or a frame that was copied into a private DuckDB, whose connection is given.

    Attributes:
        types: DuckDB's name for the type of each column.
    """

    def __init__(self, file: InputFile, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self.file = file
        self._connection = connection or connect()
        self._scan = FRAME
        with self._readable():
            if file.format != FRAME:
                self._scan = f"({_valid_texts(self._connection, file.path)})"
            described = self._connection.execute(f"DESCRIBE SELECT * FROM {self._scan}").fetchall()
        self.types: dict[str, str] = {row[0]: row[1] for row in described}

    def select(self, expressions: Sequence[str]) -> Iterator[list[TableColumn]]:
        """Yield columns of type BIGINT, DOUBLE or VARCHAR, some thousand rows at a time.

        Raises:
            InvalidInput: if the file cannot be read.
        """
        names = ", ".join(f"{expression} AS c{place}" for place, expression in enumerate(expressions))
        with self._readable():
            relation = self._connection.sql(f"SELECT {names} FROM {self._scan}")
            kinds = [str(kind) for kind in relation.types]
            for batch in _arrow_batches(relation.__arrow_c_stream__()):
                yield [_read_column(child.contents, kind) for child, kind in zip(batch, kinds, strict=True)]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            path, fix = self.file.path, "Check that it is not cut off or still being written."
            raise InvalidInput(f"{path} cannot be read ({type(error).__name__}).", fix, path=path) from None


def _valid_texts(connection: duckdb.DuckDBPyConnection, path: str) -> str:
    """Return a query of a Parquet file in which a text that is no Unicode is NULL: one record must not stop a run.

    DuckDB drops or replaces invalid bytes: a text that both leave the same is valid.
    """
    scan = f"read_parquet({file_list([path])}, hive_partitioning = false, utf8_validation = "
    dropped, replaced = f"{scan}'ignore')", f"{scan}'replace')"
    types = connection.execute(f"DESCRIBE SELECT * FROM {dropped}").fetchall()
    texts = [quoted(name) for name, kind, *_ in types if kind == "VARCHAR"]
    if not texts:
        return f"SELECT * FROM {dropped}"
    valid = ", ".join(f"CASE WHEN a.{text} = b.{text} THEN a.{text} END AS {text}" for text in texts)
    return f"SELECT a.* REPLACE ({valid}) FROM {dropped} AS a POSITIONAL JOIN {replaced} AS b"


class TableReader:
    """Events of a Parquet file or a frame.

    Raises:
        InvalidInput: for missing columns, and types that are no time, id or label.
        InvalidEvents: for times without an offset if none is declared.
    """

    unit = "row"

    def __init__(self, table: Table, settings: StreamSettings) -> None:
        self.file, self.columns = table.file, list(table.types)
        self._table, self._cells = table, settings.cells
        self._times = time_reader(settings)
        time, user, cell = event_columns(settings)
        require_columns(self.file.path, self.columns, (time, user, cell))
        types = [self._require_values(name, as_time=name == time) for name in (time, user, cell)]
        if settings.timezone_us is None and kind_of(types[0]) == NAIVE and not settings.slot_column:
            raise InvalidEvents(
                f"{self.file.path}: the times in column {time!r} have no offset.",
                "If they are UTC, declare timezone = 'UTC'; local times repeat an hour when summer time ends: "
                "write their offset.",
                path=self.file.path,
            )
        read = partial(_number, unit=UNITS[settings.time_unit])
        if kind_of(types[0]) in (ZONED, NAIVE) and not settings.slot_column:
            self._times, read = TimeReader(0, "us"), partial(_micros, offset=settings.timezone_us or 0)
        labels = [_label(quoted(name), kind) for name, kind in zip((user, cell), types[1:], strict=True)]
        self.expressions = [read(quoted(time), types[0]), *labels]

    def pieces(self) -> Iterator[EventPiece]:
        """Yield the events of all rows, in their order."""
        first = 1
        for times, users, cells in self._table.select(self.expressions):
            rows = np.arange(len(times.present))
            decoded = assemble(
                rows,
                times.values,
                _read_labels(users),
                _read_labels(cells),
                broken=rows[:0],
                times=self._times,
                cells=self._cells,
                has_time=times.present,
            )
            yield EventPiece(first, decoded, partial(_example, times))
            first += len(rows)

    def _require_values(self, name: str, *, as_time: bool) -> str:
        """Return the type of a column.

        Raises:
            InvalidInput: if it has no values that can be times, or ids and labels.
        """
        found = self._table.types[name]
        refused = (None,) if as_time else (None, ZONED, NAIVE)
        if kind_of(found) in refused or (as_time and found in ("BOOLEAN", "UUID")):
            values = "times" if as_time else "ids or labels, which are numbers or text"
            raise InvalidInput(
                f"{self.file.path}: column {name!r} of type {found[:40]} has no {values}.",
                "Convert the column, or name another one.",
                path=self.file.path,
                column=name,
            )
        return found


def _example(times: TableColumn, row: int, problem: int) -> str | None:
    """Return the value of a malformed time."""
    if problem not in TIME_PROBLEMS:
        return None
    values, present = times
    if isinstance(values, StringColumn):
        return values.where(slice(row, row + 1)).texts()[0]
    return str(values[row]) if present[row] else ""


def _read_labels(column: TableColumn) -> Labels:
    values, present = column
    if isinstance(values, StringColumn):
        return Labels.from_fields(values)
    labels = Labels.of(values)
    return labels if present.all() else Labels(np.where(present, labels.keys, NO_LABEL), labels.texts)


def _label(column: str, type_name: str) -> str:
    """Return an id or label as BIGINT or VARCHAR; NULL for a value that is none, as in text files."""
    if type_name in _INTEGERS:
        return f"CAST({column} AS BIGINT)"
    if type_name in _FLOATS:  # of a frame column with gaps
        whole = f"NOT isnan({column}) AND {column} = floor({column}) AND abs({column}) < 9e15"
        return f"CASE WHEN {whole} THEN TRY_CAST({column} AS BIGINT) END"
    if type_name.startswith("DECIMAL(38,"):  # a frame's may hold -2¹²⁷, which DuckDB cannot write
        column = f"CASE WHEN CAST({column} AS DOUBLE) > -1.7014118346046923e38 THEN {column} END"
    return _short_text(column, MAX_LABEL_BYTES)


def _number(column: str, type_name: str, *, unit: int) -> str:
    """Return a time that is a number or a text as BIGINT, DOUBLE or VARCHAR; NULL for a decimal beyond 10¹⁸ µs."""
    if type_name in _INTEGERS:
        return f"CAST({column} AS BIGINT)"
    if kind_of(type_name) == NUMBER:
        number = f"CAST({column} AS DOUBLE)"
        return number if type_name in _FLOATS else f"CASE WHEN abs({number}) * {unit} < 1e18 THEN {number} END"
    return _short_text(column, MAX_TIME_BYTES)


def _short_text(column: str, limit: int) -> str:
    text = f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN strlen({text}) <= {limit} THEN {text} END"


def _micros(column: str, type_name: str, *, offset: int) -> str:
    """Return a time in µs, cut off; DuckDB's own casts round, possibly into the next slot. NULL if it is infinite."""
    is_zoned = kind_of(type_name) == ZONED
    if type_name.endswith("_NS"):
        nanos = f"epoch_ns({column})"
        micros = f"{nanos} // 1000 - CASE WHEN {nanos} % 1000 < 0 THEN 1 ELSE 0 END"
        return micros if is_zoned else f"CASE WHEN isfinite({column}) THEN {micros} - {offset} END"
    if is_zoned:
        return f"CASE WHEN isfinite({column}) THEN epoch_us({column}) END"
    time = f"TRY_CAST({column} AS TIMESTAMP)"
    return f"CASE WHEN isfinite({time}) THEN TRY_CAST(CAST(epoch_us({time}) AS HUGEINT) - {offset} AS BIGINT) END"


class _Array(ctypes.Structure):
    """`ArrowArray` of the Arrow C data interface."""


class _Stream(ctypes.Structure):
    """`ArrowArrayStream` of the Arrow C stream interface."""


_Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _arrow_batches(capsule: Any) -> Iterator[list[Any]]:
    """Yield the columns of each batch of a stream; they live until the next one is taken.

    Raises:
        duckdb.Error: if the query fails.
    """
    stream = ctypes.cast(_capsule_pointer(capsule, b"arrow_array_stream"), ctypes.POINTER(_Stream))
    while True:
        batch = _Array()
        if stream.contents.get_next(stream, batch):
            raise duckdb.Error(stream.contents.get_last_error(stream))
        if not batch.release:
            return
        try:
            if batch.length:
                yield batch.children[: batch.n_children]
        finally:
            batch.release(batch)


def _read_column(array: Any, type_name: str) -> TableColumn:
    """Return a copy of a column."""
    length, offset = array.length, array.offset
    present = np.ones(length, dtype=np.bool_)
    if array.null_count and array.buffers[0]:
        bits = np.frombuffer(ctypes.string_at(array.buffers[0], (offset + length + 7) // 8), dtype=np.uint8)
        present = np.unpackbits(bits, bitorder="little")[offset : offset + length].astype(np.bool_)
    if type_name != "VARCHAR":
        kind = np.float64 if type_name == "DOUBLE" else np.int64
        return TableColumn(_copied(array.buffers[1], kind, offset, length), present)
    ends = _copied(array.buffers[1], np.int32, offset, length + 1).astype(np.int64)
    data = ctypes.string_at(array.buffers[2], int(ends[-1])) if length else b""
    sizes = np.where(present, ends[1:] - ends[:-1], 0)
    return TableColumn(StringColumn(padded(data), ends[:-1], sizes), present)


def _copied(address: int, kind: Any, first: int, length: int) -> Any:
    size = np.dtype(kind).itemsize
    return np.frombuffer(ctypes.string_at(address + first * size, length * size) if length else b"", dtype=kind)


class _FrameStream:
    """An Arrow stream and nothing else: as that, DuckDB takes every library's frames, without pyarrow."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def is_frame(value: object) -> bool:
    """Return whether a value is a frame of pandas, Polars (also lazy), Arrow or DuckDB, or has an Arrow stream."""
    return _is_lazy(value) or (_library(value) == "pandas" and hasattr(value, "columns")) or _streams(value)


def frame_name(frame: object) -> str:
    """Return the name of a frame for messages."""
    name = type(frame).__name__.removeprefix("DuckDBPy")
    return f"{_LIBRARIES.get(_library(frame), '')} {name}".strip()


def column_names(frame: Any) -> list[str]:
    """Return the names of a frame's columns."""
    if _is_lazy(frame):
        return list(frame.collect_schema().names())
    names = getattr(getattr(frame, "schema", None), "names", None)  # Arrow; of Polars it is a method
    return [str(name) for name in (getattr(frame, "columns", ()) if names is None or callable(names) else names)]


def load_frame(
    frame: Any, wanted: Sequence[str], *, name: str = "", connection: duckdb.DuckDBPyConnection | None = None
) -> Table:
    """Copy the wanted columns of a frame, in the order of its rows. A frame that can be read only once is used up.

    Args:
        frame: the frame.
        wanted: names of columns.
        name: the name of the frame in messages; by default its library and class.
        connection: a connection whose last frame is replaced.

    Raises:
        InvalidInput: if a column is missing or there twice, or the frame cannot be read.
    """
    name, names, present = name or frame_name(frame), list(dict.fromkeys(wanted)), column_names(frame)
    index = {str(level) for level in frame.index.names} if _library(frame) == "pandas" else set()
    if index & set(names) - set(present):
        raise InvalidInput(f"{name} has a column of events as its index.", "Call reset_index() first.", path=name)
    require_columns(name, present, wanted)
    if hasattr(frame, "read_next_batch"):  # last: a frame that was refused was not read
        if frame in _USED_UP:
            raise InvalidInput(f"{name} was read before.", "Make another one, or hand over a table.", path=name)
        _USED_UP.add(frame)
    connection = connection or connect()
    connection.execute("SET pandas_analyze_sample = 0")  # objects are text: no record decides the type of the others
    try:
        readable, expressions = _readable(frame, names)
        connection.register("arriving", readable)
        columns = ", ".join(f"{expressions.get(name, '{0}').format(quoted(name))} AS {quoted(name)}" for name in names)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {FRAME} AS SELECT {columns} FROM arriving")
        connection.unregister("arriving")
    except Exception as error:  # noqa: BLE001  # of whatever library the frame is
        raise InvalidInput(
            f"{name} cannot be read ({type(error).__name__}).",
            "Times, ids and labels need plain types and names that do not differ in case alone.",
            path=name,
        ) from None
    return Table(InputFile(name, FRAME), connection)


def _library(value: object) -> str:
    """Return the library that the value's class, or one it is derived from, comes from."""
    found = (kind.__module__.split(".")[0] for kind in type(value).__mro__)
    return next((library for library in found if library in _LIBRARIES), "")


def _streams(value: object) -> bool:
    """Return whether a value is a stream of tables; a class is none, nor is a single column (pandas, Polars)."""
    return hasattr(value, "__arrow_c_stream__") and not isinstance(value, type) and bool(column_names(value))


def _is_lazy(value: object) -> bool:
    return _library(value) == "polars" and hasattr(value, "collect_schema") and hasattr(value, "collect")


def _readable(frame: Any, wanted: list[str]) -> tuple[Any, dict[str, str]]:
    """Return an object that DuckDB can read these columns from, and the expressions of columns that it reads otherwise."""
    library = _library(frame)
    if library == "pandas":
        return _from_pandas(frame[wanted])
    if library == "polars":
        chosen = frame.select(wanted)
        return _from_polars(chosen.collect() if _is_lazy(chosen) else chosen)
    if library == "pyarrow" and hasattr(frame, "select"):
        return _from_arrow(frame.select(wanted))
    folded = [name.lower() for name in column_names(frame)]
    if any(folded.count(name.lower()) > 1 for name in wanted):
        raise ValueError("columns that differ in case alone, which DuckDB cannot tell apart")
    return _from_arrow(frame) if library == "pyarrow" else (_FrameStream(frame), {})


def _from_pandas(frame: Any) -> tuple[Any, dict[str, str]]:
    """Objects become text, or missing values; coarse zoned times become UTC."""
    safe, expressions = frame.copy(deep=False), dict[str, str]()
    for name, kind in frame.dtypes.items():
        if kind.kind == "O" and kind.name == "object":
            safe[name] = type(frame[name])(map(_text, frame[name]), index=frame.index, dtype=object)
        elif getattr(kind, "tz", None) is not None and getattr(kind, "unit", None) in _COARSE:
            safe[name] = frame[name].dt.tz_convert(None)
            expressions[str(name)] = _IN_UTC
        elif hasattr(kind, "pyarrow_dtype"):
            plain, expressions[str(name)] = _safe_type(kind.pyarrow_dtype)
            safe[name] = frame[name].astype(type(kind)(plain))
    return safe, expressions


def _from_polars(frame: Any) -> tuple[Any, dict[str, str]]:
    """Coarse zoned times become UTC, columns without values become text."""
    import polars

    chosen, expressions = [], {}
    for name, kind in frame.schema.items():
        column = polars.col(name)
        if kind == polars.Null:
            column = column.cast(polars.String)
        elif isinstance(kind, polars.Datetime) and kind.time_zone is not None and kind.time_unit in _COARSE:
            column = column.cast(polars.Int64).cast(polars.Datetime(kind.time_unit))  # an instant stays the same number
            expressions[name] = _IN_UTC
        chosen.append(column)
    return _FrameStream(frame.select(chosen)), expressions


def _from_arrow(frame: Any) -> tuple[Any, dict[str, str]]:
    """Read a table or batch, or a reader that has `cast`, as `_from_polars` does; text as bytes, which may be no Unicode."""
    import pyarrow as arrow

    names = frame.schema.names
    values = [kind.value_type if arrow.types.is_dictionary(kind) else kind for kind in frame.schema.types]
    safe = [_safe_type(kind) for kind in values]
    for types in (values, [kind for kind, _ in safe]):  # no cast leads from a dictionary of text to bytes
        if types != frame.schema.types:
            frame = frame.cast(arrow.schema(list(zip(names, types, strict=True))))
    return _FrameStream(frame), {name: expression for name, (_, expression) in zip(names, safe, strict=True)}


def _safe_type(kind: Any) -> tuple[Any, str]:
    """Return the type of Arrow to read a column as, and the expression of the column."""
    import pyarrow as arrow

    if arrow.types.is_null(kind):
        return arrow.string(), "{0}"
    if arrow.types.is_timestamp(kind) and kind.tz is not None and kind.unit in _COARSE:
        return arrow.timestamp(kind.unit), _IN_UTC
    if arrow.types.is_string(kind) or arrow.types.is_string_view(kind) or arrow.types.is_large_string(kind):
        return (arrow.large_binary() if arrow.types.is_large_string(kind) else arrow.binary()), "TRY(decode({0}))"
    return kind, "{0}"


def _text(value: Any) -> str | None:
    """Return the text of an object; None for a missing value and for one without a text that can be written."""
    if type(value).__name__ in _MISSING or (isinstance(value, float) and value != value):
        return None
    try:
        text = value if isinstance(value, str) else str(value)
        text.encode()
    except Exception:  # noqa: BLE001  # of whatever class the object is
        return None
    return text
