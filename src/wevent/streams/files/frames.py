"""Data frames as input: pandas, Polars, Arrow and DuckDB become the columns that a Parquet file would have.

A frame is copied once into a private DuckDB in memory, which never writes to disk; from there on it is read as files are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from wevent.errors import InvalidInput
from wevent.streams.files.frame_columns import SafeFrame, safe_arrow, safe_pandas, safe_polars
from wevent.streams.files.frame_table import FrameTable
from wevent.streams.files.inputs import FRAME, require_columns
from wevent.streams.files.sql import connect, quoted

_KINDS = {"pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow", "duckdb": "DuckDB", "_duckdb": "DuckDB"}

_USED_UP: WeakSet[Any] = WeakSet()  # readers, as long as somebody else holds them


class _Stream:
    """An Arrow stream and nothing else: as that, DuckDB takes every library's frames, without pyarrow."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def is_frame(value: object) -> bool:
    """Whether it is a frame: of pandas, Polars (also lazy), Arrow, a DuckDB relation, or any with an Arrow stream."""
    return _is_lazy(value) or (_library(value) == "pandas" and hasattr(value, "columns")) or _streams(value)


def frame_name(frame: object) -> str:
    """What people know it by, such as "Polars DataFrame"."""
    name = type(frame).__name__.removeprefix("DuckDBPy")
    return f"{_KINDS.get(_library(frame), '')} {name}".strip()


def column_names(frame: Any) -> list[str]:
    """The names of a frame's columns."""
    if _is_lazy(frame):
        return list(frame.collect_schema().names())
    names = getattr(getattr(frame, "schema", None), "names", None)  # Arrow; of Polars it is a method
    return [str(name) for name in (getattr(frame, "columns", ()) if names is None or callable(names) else names)]


def load_frame(frame: Any, wanted: Sequence[str]) -> FrameTable:
    """Copy the wanted columns of a frame, in the order of its rows.

    Args:
        frame: anything that `is_frame`; one that can be read once only is used up.
        wanted: the names of columns.

    Raises:
        InvalidInput: if one is missing or there twice, or the frame cannot be read.
    """
    name = frame_name(frame)
    present = column_names(frame)
    _refuse_index(frame, name, present, wanted)
    require_columns(name, present, wanted)
    _refuse_used_up(frame, name)  # last: what was refused was not read
    connection = connect()
    connection.execute("SET pandas_analyze_sample = 0")  # objects are text: no record decides what the others are
    try:
        readable = _readable(frame, list(dict.fromkeys(wanted)))
        connection.register("arriving", readable.frame)
        columns = ", ".join(_column(name, instant=name in readable.instants) for name in dict.fromkeys(wanted))
        connection.execute(f"CREATE TEMP TABLE {FRAME} AS SELECT {columns} FROM arriving")
        connection.unregister("arriving")
    except Exception as error:  # noqa: BLE001  # of whatever library the frame is
        raise InvalidInput(
            "a frame that can be read, with plain columns",
            f"a {name} that cannot ({type(error).__name__})",
            "Times, ids and labels need plain types and names that do not differ in case alone.",
            path=name,
        ) from None
    return FrameTable(connection, name)


def _library(value: object) -> str:
    """The library that the value's class, or one it is derived from, comes from."""
    found = (kind.__module__.split(".")[0] for kind in type(value).__mro__)
    return next((library for library in found if library in _KINDS), "")


def _streams(value: object) -> bool:
    """Whether it gives a stream of tables; a class does not, nor does a single column (pandas, Polars)."""
    return hasattr(value, "__arrow_c_stream__") and not isinstance(value, type) and bool(column_names(value))


def _is_lazy(value: object) -> bool:
    return _library(value) == "polars" and hasattr(value, "collect_schema") and hasattr(value, "collect")


def _column(name: str, *, instant: bool) -> str:
    """A column in SQL; an instant that is beyond microseconds becomes NULL, and ends nothing."""
    own = quoted(name)
    return f"TRY_CAST(TRY_CAST({own} AS TIMESTAMP) AS TIMESTAMPTZ) AS {own}" if instant else own


def _readable(frame: Any, wanted: list[str]) -> SafeFrame:
    """Something that DuckDB reads these columns from, whatever the others are, and whatever a record says."""
    library = _library(frame)
    if library == "pandas":
        return safe_pandas(frame[wanted])
    if library == "polars":
        chosen = frame.select(wanted)
        return _streaming(safe_polars(chosen.collect() if _is_lazy(chosen) else chosen))
    if library == "pyarrow" and hasattr(frame, "select"):
        return _streaming(safe_arrow(frame.select(wanted)))
    folded = [name.lower() for name in column_names(frame)]
    if any(folded.count(name.lower()) > 1 for name in wanted):
        raise ValueError("columns that differ in case alone, which DuckDB cannot tell apart")
    return _streaming(safe_arrow(frame) if library == "pyarrow" else SafeFrame(frame))


def _streaming(safe: SafeFrame) -> SafeFrame:
    return safe._replace(frame=_Stream(safe.frame))


def _refuse_used_up(frame: Any, name: str) -> None:
    """A reader gives its events once; handed over again it would be a stream without any."""
    if not hasattr(frame, "read_next_batch"):
        return
    if frame in _USED_UP:
        raise InvalidInput(
            "a reader that was not read before",
            f"a {name} that was",
            "Make another one, or hand over a table.",
            path=name,
        )
    _USED_UP.add(frame)


def _refuse_index(frame: Any, name: str, present: Sequence[str], wanted: Sequence[str]) -> None:
    """pandas keeps some columns in the index, where nobody sees that they are none."""
    index = [] if _library(frame) != "pandas" else [str(level) for level in frame.index.names]
    for column in wanted:
        if column in index and column not in present:
            raise InvalidInput(
                f"a column {column!r}",
                f"a {name} with that as its index",
                "Call reset_index() first.",
                path=name,
                column=column,
            )
