"""Data frames as input: pandas, Polars, Arrow and DuckDB become the columns that a Parquet file would have.

A frame is copied once into a private DuckDB in memory, which never writes to disk. DuckDB refuses a whole frame for one
zoned time beyond microseconds, for one text that is no Unicode, and for a column without values. Such columns are changed
first, so that no record prevents reading the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from wevent.errors import InvalidInput
from wevent.streams.duckdb_tables import Table, connect, quoted
from wevent.streams.inputs import FRAME, InputFile, require_columns

_KINDS = {"pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow", "duckdb": "DuckDB", "_duckdb": "DuckDB"}
_COARSE = ("s", "ms")  # units in which a time may be beyond microseconds
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")

_USED_UP: WeakSet[Any] = WeakSet()  # readers that were read


class _Stream:
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
    return f"{_KINDS.get(_library(frame), '')} {name}".strip()


def column_names(frame: Any) -> list[str]:
    """Return the names of a frame's columns."""
    if _is_lazy(frame):
        return list(frame.collect_schema().names())
    names = getattr(getattr(frame, "schema", None), "names", None)  # Arrow; of Polars it is a method
    return [str(name) for name in (getattr(frame, "columns", ()) if names is None or callable(names) else names)]


def load_frame(frame: Any, wanted: Sequence[str]) -> Table:
    """Copy the wanted columns of a frame, in the order of its rows. A frame that can be read only once is used up.

    Raises:
        InvalidInput: if a column is missing or there twice, or the frame cannot be read.
    """
    name, names, present = frame_name(frame), list(dict.fromkeys(wanted)), column_names(frame)
    index = {str(level) for level in frame.index.names} if _library(frame) == "pandas" else set()
    if index & set(names) - set(present):
        raise InvalidInput(f"{name} has a column of events as its index.", "Call reset_index() first.", path=name)
    require_columns(name, present, wanted)
    if hasattr(frame, "read_next_batch"):  # last: a frame that was refused was not read
        if frame in _USED_UP:
            raise InvalidInput(f"{name} was read before.", "Make another one, or hand over a table.", path=name)
        _USED_UP.add(frame)
    connection = connect()
    connection.execute("SET pandas_analyze_sample = 0")  # objects are text: no record decides the type of the others
    try:
        readable, instants = _readable(frame, names)
        connection.register("arriving", readable)
        columns = ", ".join(_in_utc(quoted(column)) if column in instants else quoted(column) for column in names)
        connection.execute(f"CREATE TEMP TABLE {FRAME} AS SELECT {columns} FROM arriving")
        connection.unregister("arriving")
    except Exception as error:  # noqa: BLE001  # of whatever library the frame is
        raise InvalidInput(
            f"{name} cannot be read ({type(error).__name__}).",
            "Times, ids and labels need plain types and names that do not differ in case alone.",
            path=name,
        ) from None
    return Table(InputFile(name, FRAME), connection)


def _in_utc(column: str) -> str:
    """Return a time in UTC in SQL; one that is beyond microseconds becomes NULL."""
    return f"TRY_CAST(TRY_CAST({column} AS TIMESTAMP) AS TIMESTAMPTZ) AS {column}"


def _library(value: object) -> str:
    """Return the library that the value's class, or one it is derived from, comes from."""
    found = (kind.__module__.split(".")[0] for kind in type(value).__mro__)
    return next((library for library in found if library in _KINDS), "")


def _streams(value: object) -> bool:
    """Return whether a value is a stream of tables; a class is none, nor is a single column (pandas, Polars)."""
    return hasattr(value, "__arrow_c_stream__") and not isinstance(value, type) and bool(column_names(value))


def _is_lazy(value: object) -> bool:
    return _library(value) == "polars" and hasattr(value, "collect_schema") and hasattr(value, "collect")


def _readable(frame: Any, wanted: list[str]) -> tuple[Any, set[str]]:
    """Return an object that DuckDB can read these columns from, and the zoned times that have become times in UTC."""
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
    return _from_arrow(frame) if library == "pyarrow" else (_Stream(frame), set())


def _from_pandas(frame: Any) -> tuple[Any, set[str]]:
    """Objects become text, or missing values; coarse zoned times become UTC."""
    safe, instants = frame.copy(deep=False), set[str]()
    for name, kind in frame.dtypes.items():
        if kind.kind == "O" and kind.name == "object":
            safe[name] = type(frame[name])(map(_text, frame[name]), index=frame.index, dtype=object)
        elif getattr(kind, "tz", None) is not None and getattr(kind, "unit", None) in _COARSE:
            safe[name] = frame[name].dt.tz_convert(None)
            instants.add(str(name))
        elif hasattr(kind, "pyarrow_dtype"):
            plain, is_instant = _safe_type(kind.pyarrow_dtype)
            safe[name] = frame[name].astype(type(kind)(plain))
            instants |= {str(name)} if is_instant else set()
    return safe, instants


def _from_polars(frame: Any) -> tuple[Any, set[str]]:
    """Coarse zoned times become UTC, columns without values become text."""
    import polars

    chosen, instants = [], set()
    for name, kind in frame.schema.items():
        column = polars.col(name)
        if kind == polars.Null:
            column = column.cast(polars.String)
        elif isinstance(kind, polars.Datetime) and kind.time_zone is not None and kind.time_unit in _COARSE:
            column = column.cast(polars.Int64).cast(polars.Datetime(kind.time_unit))  # an instant stays the same number
            instants.add(name)
        chosen.append(column)
    return _Stream(frame.select(chosen)), instants


def _from_arrow(frame: Any) -> tuple[Any, set[str]]:
    """Read a table or batch, or a reader that has `cast`, as `_from_polars` does."""
    import pyarrow as arrow

    kinds = [_safe_type(kind) for kind in frame.schema.types]
    schema = arrow.schema(list(zip(frame.schema.names, (kind for kind, _ in kinds), strict=True)))
    instants = {name for name, (_, is_instant) in zip(schema.names, kinds, strict=True) if is_instant}
    return _Stream(frame if schema.types == frame.schema.types else frame.cast(schema)), instants


def _safe_type(kind: Any) -> tuple[Any, bool]:
    """Return the type of Arrow to read a column as, and whether that makes it a time in UTC."""
    import pyarrow as arrow

    if arrow.types.is_null(kind):
        return arrow.string(), False
    if arrow.types.is_timestamp(kind) and kind.tz is not None and kind.unit in _COARSE:
        return arrow.timestamp(kind.unit), True
    return kind, False


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
