"""Columns of frames, made such that no single record keeps DuckDB from reading the others.

DuckDB refuses a whole frame for one time with a zone that is beyond microseconds, for a text that is no Unicode, and for a
column of nothing at all. Who hands over events must not notice what one of them says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_COARSE = ("s", "ms")  # units in which a time may be beyond microseconds
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")


class SafeFrame(NamedTuple):
    """A frame that can be read whatever its records say.

    Attributes:
        frame: of the same library.
        instants: columns of times with a zone that have lost it: they are in UTC.
    """

    frame: Any
    instants: frozenset[str] = frozenset()


def safe_pandas(frame: Any) -> SafeFrame:
    """Objects become text, one that has none becomes missing; coarse times with a zone become UTC."""
    safe, instants = frame.copy(deep=False), set()
    for name, kind in frame.dtypes.items():
        if kind.kind == "O" and kind.name == "object":
            safe[name] = type(frame[name])(map(_text, frame[name]), index=frame.index, dtype=object)
        elif getattr(kind, "tz", None) is not None and getattr(kind, "unit", None) in _COARSE:
            safe[name] = frame[name].dt.tz_convert(None)
            instants.add(str(name))
        elif hasattr(kind, "pyarrow_dtype"):
            plain, instant = _safe_type(kind.pyarrow_dtype)
            safe[name] = frame[name].astype(type(kind)(plain))
            instants |= {str(name)} if instant else set()
    return SafeFrame(safe, frozenset(instants))


def safe_polars(frame: Any) -> SafeFrame:
    """Coarse times with a zone become UTC, columns of nothing become text."""
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
    return SafeFrame(frame.select(chosen), frozenset(instants))


def safe_arrow(frame: Any) -> SafeFrame:
    """A table or batch, or a reader that has `cast`: as `safe_polars`."""
    import pyarrow as arrow

    kinds = [_safe_type(kind) for kind in frame.schema.types]
    schema = arrow.schema(list(zip(frame.schema.names, (kind for kind, _ in kinds), strict=True)))
    instants = [name for name, (_, instant) in zip(schema.names, kinds, strict=True) if instant]
    return SafeFrame(frame if schema.types == frame.schema.types else frame.cast(schema), frozenset(instants))


def _safe_type(kind: Any) -> tuple[Any, bool]:
    """The type of Arrow to read a column as, and whether that takes a zone away."""
    import pyarrow as arrow

    if arrow.types.is_null(kind):
        return arrow.string(), False
    if arrow.types.is_timestamp(kind) and kind.tz is not None and kind.unit in _COARSE:
        return arrow.timestamp(kind.unit), True
    return kind, False


def _text(value: Any) -> str | None:
    """The text of an object, None for a missing value and for one without a text that can be written."""
    if type(value).__name__ in _MISSING or (isinstance(value, float) and value != value):
        return None
    try:
        text = value if isinstance(value, str) else str(value)
        text.encode()
    except Exception:  # noqa: BLE001  # of whatever class the object is
        return None
    return text
