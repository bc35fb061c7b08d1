"""Columns of times in Parquet files and frames as DuckDB expressions: µs since 1970, whatever their type.

A fraction finer than a microsecond is cut off, as of texts (`records.times`): DuckDB's own casts take the nearest one, which
may lie in the next slot.
"""

from __future__ import annotations

from wevent.errors import InvalidEvents
from wevent.settings import StreamSettings
from wevent.streams.files.text_times import near_number, text_time, whole_number
from wevent.streams.records.times import UNITS

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
LARGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
FLOATS = {"FLOAT", "DOUBLE"}
ZONED_TYPE, FINE_ZONED_TYPE = "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"
_FINE_TYPE = "TIMESTAMP_NS"
_COARSE_TYPES = {"TIMESTAMP_S", "TIMESTAMP_MS"}
_NAIVE_TYPES = {"TIMESTAMP", "DATE", _FINE_TYPE, *_COARSE_TYPES}
TIME_TYPES = {*_NAIVE_TYPES, ZONED_TYPE, FINE_ZONED_TYPE}
"""What DuckDB calls columns of times."""

_FINE_MOST_US = (2**63 - 1) // 1000 - 1  # nanoseconds of 64 bits end in 2262


def time_expressions(column: str, kind: str, settings: StreamSettings) -> tuple[str, str]:
    """The time in microseconds, and a condition on the raw column for a range of it, [{low}, {high})."""
    unit = UNITS[settings.time_unit]
    if kind in _COARSE_TYPES:  # compared as they are, a time beyond microseconds would end the query
        column, kind = f"TRY_CAST({column} AS TIMESTAMP)", "TIMESTAMP"
    if kind.startswith("ENUM"):
        column, kind = f"CAST({column} AS VARCHAR)", "VARCHAR"
    if kind in TIME_TYPES:
        offset = settings.timezone_us or 0 if kind in _NAIVE_TYPES else 0
        moment = _moment(kind)
        low, high = moment.format(f"{{low}} + {offset}"), moment.format(f"{{high}} + {offset}")
        return _micros(column, kind, offset), f"{_braced(column)} >= {low} AND {_braced(column)} < {high}"
    if kind in INTEGERS | LARGE:
        bounds = f"{{low}} // {unit} - 1", f"{{high}} // {unit} + 1"
        return whole_number(column, unit), f"{_braced(column)} BETWEEN {bounds[0]} AND {bounds[1]}"
    if kind in FLOATS:
        near = f"{_braced(column)} BETWEEN {{low}} / {unit}.0 - 1 AND {{high}} / {unit}.0 + 1"
        return near_number(f"CAST({column} AS DOUBLE)", unit), near
    if kind == "VARCHAR":
        return text_time(column, unit, settings.timezone_us), "true"
    return f"TRY_CAST(TRY_CAST({column} AS DECIMAL(24, 6)) * {unit} AS BIGINT)", "true"


def slot_expressions(column: str, kind: str) -> tuple[str, str]:
    """A slot number less one in place of a time, as of `time_expressions`."""
    number = column if kind in INTEGERS else f"TRY_CAST({column} AS BIGINT)"
    shifted, near = f"CAST({number} AS BIGINT)", f"{_braced(number)} > {{low}} AND {_braced(number)} <= {{high}}"
    return f"CASE WHEN {shifted} > -4e18 THEN {shifted} - 1 END", near


def refuse_naive(path: str, name: str, kind: str, settings: StreamSettings) -> None:
    """Refuse a column of times without an offset where none is declared.

    Raises:
        InvalidEvents: if it is one.
    """
    if settings.timezone_us is None and kind in _NAIVE_TYPES:
        raise InvalidEvents(
            "times in UTC or with an offset, such as 2026-01-01T00:00:00Z",
            f"times without one in column {name!r} of {path!r}",
            "If they are UTC, declare timezone = 'UTC'; local times repeat an hour when summer time ends: "
            "write their offset.",
            path=path,
        )


def _micros(column: str, kind: str, offset: int) -> str:
    """A column of times in µs, less an offset; NULL for what is infinite."""
    if kind in (_FINE_TYPE, FINE_ZONED_TYPE):
        nanos = f"epoch_ns({column})"
        micros = f"{nanos} // 1000 - CASE WHEN {nanos} % 1000 < 0 THEN 1 ELSE 0 END - {offset}"
        return micros if kind == FINE_ZONED_TYPE else _finite(column, micros)  # DuckDB does not ask whether that one is
    if kind == ZONED_TYPE:
        return _finite(column, f"epoch_us({column})")
    return _finite(column, f"TRY_CAST(CAST(epoch_us(TRY_CAST({column} AS TIMESTAMP)) AS HUGEINT) - {offset} AS BIGINT)")


def _moment(kind: str) -> str:
    """A number of µs as a time that DuckDB compares with this type; where that ends earlier, so does the number."""
    within = f"greatest({-_FINE_MOST_US}, least({_FINE_MOST_US}, {{}}))"
    moments = {
        ZONED_TYPE: "make_timestamptz({})",
        FINE_ZONED_TYPE: f"CAST(make_timestamptz({within}) AS {FINE_ZONED_TYPE})",  # it compares with nothing else
        _FINE_TYPE: f"make_timestamp({within})",
    }
    return moments.get(kind, "make_timestamp({})")


def _finite(column: str, expression: str) -> str:
    return f"CASE WHEN isfinite({column}) THEN {expression} END"


def _braced(column: str) -> str:
    """A column in a condition whose {low} and {high} are filled in: names may have braces, too."""
    return column.replace("{", "{{").replace("}", "}}")
