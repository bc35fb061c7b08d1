"""Columns of times, ids and cell labels, of any type, read as input files are (`streams.duckdb_tables`).

A value that is no time, id or label becomes NULL. No record may end a query or delay it. So no expression here fails or
takes long, as Spark's casts and sums do: its decimals compute 10⁹ digits for "1e-999999999". A time beyond any clock stays
within ±`FAR_US`, where no sum overflows.
"""

from __future__ import annotations

import math

import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.labels import Cells, Labels
from wevent.errors import InvalidEvents, InvalidInput
from wevent.settings import StreamSettings
from wevent.settings.values import SECOND_US
from wevent.streams.times import FAR_US, MAX_TIME_BYTES, UNITS

_CLOCK_PART = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_OFFSET = r"[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?\z"
_NAIVE = _CLOCK_PART + r"\z"
_ZONED = _CLOCK_PART + r"([Zz]\z|" + _OFFSET + ")"
_WHOLE_NUMBER = r"^[+-]?[0-9]+\z"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\z"
_INFINITE_NS = 2**63 - 1  # what DuckDB takes for no time at all
_TO_THE_MINUTE = 16  # characters
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_YEARS: dict[type[T.DataType], tuple[str, str]] = {  # that can be written, of naive times: first and last
    T.TimestampNTZType: ("timestamp_ntz'0001-01-01 00:00:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"),
    T.DateType: ("date'0001-01-01'", "date'9999-12-31'"),
}
_CANONICAL = r"^(0|[1-9][0-9]{0,17})\z"


def identities(column: Column, kind: T.DataType, name: str) -> tuple[Column, bool]:
    """Return the ids or labels of a column of this type, NULL for values that can be none.

    They are BIGINT (`True`) or STRING (`False`), and compared as text as everywhere (`wevent.counting.labels`).
    """
    if isinstance(kind, _WHOLE):
        return column.cast("bigint"), True
    if isinstance(kind, (T.FloatType, T.DoubleType)):  # a frame column with gaps
        number = column.cast("double")
        whole = ~F.isnan(number) & (number == F.rint(number)) & (F.abs(number) < F.lit(9e15))  # floor fails at infinity
        return F.when(whole, number.try_cast("bigint")), True
    if isinstance(kind, T.StringType):
        text = column.cast("string")  # in the binary collation, whatever it had
        legal = F.octet_length(text).between(1, MAX_LABEL_BYTES) & F.is_valid_utf8(text)
        return F.when(legal & ~F.contains(text, F.expr("chr(0)")), text), False
    if isinstance(kind, (T.BooleanType, T.DecimalType)):
        return column.cast("string"), False
    problem = f"The column {name!r} is of the type {kind.simpleString()[:40]}, and ids or labels are numbers or text."
    fix = "Convert the column (binary as of Kafka: cast it to string), or name another one."
    raise InvalidInput(problem, fix, path=None, column=name)


def with_places(rows: DataFrame, labels: Column, numbered: bool, cells: Cells) -> DataFrame:
    """Return the rows with one more column, `place`: BIGINT, NULL for an undeclared cell."""
    if cells.numbered:
        number = labels if numbered else F.when(labels.rlike(_CANONICAL), labels.try_cast("bigint"))
        return rows.withColumn("place", F.when(number.between(0, len(cells) - 1), number))
    declared = [str(label) for label in Labels.of(list(cells)).values()]  # 2.0 is "2", as everywhere
    table = pyarrow.table({"declared_": declared, "place": range(len(declared))})
    places = rows.sparkSession.createDataFrame(table).hint("broadcast")
    named = rows.withColumn("label_", labels.cast("string"))
    return named.join(places, named["label_"] == places["declared_"], "left").drop("label_", "declared_")


def instants(column: Column, kind: T.DataType, settings: StreamSettings) -> tuple[Column, Column]:
    """Return the times of a column of this type: µs since 1970, NULL for values that are none.

    The second column is true for a value that would be a time if an offset were declared.
    """
    never, name = F.lit(False), settings.columns["time"]
    if isinstance(kind, T.TimestampType):
        return _of_whole(F.unix_micros(column), 1), never
    if isinstance(kind, tuple(_YEARS)):
        if settings.timezone_us is None:
            raise InvalidEvents(
                f"The column {name!r} has times without an offset, and no timezone is declared.",
                "If they are UTC, declare timezone='UTC'; local times repeat an hour when summer time ends: write their "
                "offset.",
            )
        return _of_naive(column, kind, settings.timezone_us), never
    unit = UNITS[settings.time_unit]
    if isinstance(kind, _WHOLE):
        return _of_whole(column.cast("bigint"), unit), never
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return _of_float(column.cast("double"), unit), never
    if isinstance(kind, T.DecimalType):
        return _of_decimal(column, unit), never
    if isinstance(kind, T.StringType):
        text = column.cast("string")  # in the binary collation, whatever it had
        naive = text.rlike(_NAIVE) & _clock(text).isNotNull() if settings.timezone_us is None else never
        return _of_text(text, unit, settings.timezone_us), F.coalesce(naive, never)
    problem = f"The column {name!r} is of the type {kind.simpleString()[:40]}, which is no type of times."
    raise InvalidInput(problem, "Convert the column, or name another one.", path=None, column=name)


def of_nanoseconds(column: Column, offset_us: int) -> Column:
    """Return whole nanoseconds since 1970, in some offset, as instants, cut off to microseconds."""
    micros = F.call_function("div", column, F.lit(1000)) - F.when(column % F.lit(1000) < 0, 1).otherwise(0)
    return F.when(~column.isin(-_INFINITE_NS, _INFINITE_NS), F.timestamp_micros(micros - F.lit(offset_us)))


def shifted(column: Column, offset_us: int) -> Column:
    """Return instants that were read as UTC and are in some offset."""
    return F.timestamp_micros(_of_whole(F.unix_micros(column), 1) - F.lit(offset_us))


def _of_naive(column: Column, kind: T.DataType, offset_us: int) -> Column:
    """Read a naive time by way of text: Spark's differences of such times skip an hour where the session's time zone does."""
    first, last = _YEARS[type(kind)]
    rest = "T00:00:00Z" if isinstance(kind, T.DateType) else "Z"
    since = _zoned(F.concat(column.cast("string"), F.lit(rest)))
    return F.when(column.between(F.expr(first), F.expr(last)), since - F.lit(offset_us))


def _of_whole(number: Column, unit: int) -> Column:
    """Clamp a time beyond any clock, so that no product overflows."""
    most = FAR_US // unit
    return F.when(number.isNotNull(), F.least(F.greatest(number, F.lit(-most)), F.lit(most)) * F.lit(unit))


def _of_float(number: Column, unit: int) -> Column:
    product = number * F.lit(float(unit))
    within = F.least(F.greatest(F.rint(product), F.lit(-float(FAR_US))), F.lit(float(FAR_US)))
    finite = ~F.isnan(product) & (F.abs(product) < F.lit(math.inf))
    return F.when(finite, within).try_cast("bigint")


def _of_decimal(number: Column, unit: int) -> Column:
    """Read a time of 18 digits at most: below 10¹⁸ µs no sum overflows."""
    return F.round(number.try_cast("decimal(24,6)") * F.lit(unit), 0).try_cast("decimal(18,0)").cast("bigint")


def _of_text(text: Column, unit: int, offset_us: int | None) -> Column:
    """Read a text as `TimeReader` of `wevent.streams.times` does."""
    short = F.octet_length(text) <= MAX_TIME_BYTES  # reading a number of a million digits takes minutes
    read = F.when(~short, F.lit(None).cast("bigint"))
    read = read.when(text.rlike(_ZONED), _clock(text) - _offset(text))
    if offset_us is not None:
        read = read.when(text.rlike(_NAIVE), _clock(text) - F.lit(offset_us))
    read = read.when(text.rlike(_WHOLE_NUMBER), _of_digits(text, unit))
    return read.when(text.rlike(_NUMBER), _of_float(text.try_cast("double"), unit))


def _clock(text: Column) -> Column:
    """Read date and time without the offset, as if in UTC; Spark needs a T and the seconds."""
    clock = F.regexp_extract(text, _CLOCK_PART, 0)
    seconds = F.when(F.length(clock) == F.lit(_TO_THE_MINUTE), F.lit(":00Z")).otherwise(F.lit("Z"))
    return _zoned(F.concat(clock.substr(1, 10), F.lit("T"), clock.substr(12, MAX_TIME_BYTES), seconds))


def _offset(text: Column) -> Column:
    """Return an offset such as +02, +0200 or -02:00 in µs, 0 for a Z; Spark itself reads none beyond 18 hours."""
    written = F.regexp_extract(text, _OFFSET, 0)
    digits = F.rpad(F.regexp_replace(written, "[+:-]", ""), 4, "0")
    minutes = digits.substr(1, 2).try_cast("bigint") * 60 + digits.substr(3, 2).try_cast("bigint")
    return F.when(written.startswith("-"), -minutes).otherwise(minutes) * F.lit(60 * SECOND_US)


def _of_digits(text: Column, unit: int) -> Column:
    """Read a text of digits; a number of more than 64 bits is beyond any clock."""
    beyond = F.when(text.startswith("-"), F.lit(-FAR_US)).otherwise(F.lit(FAR_US))
    return _of_whole(F.coalesce(text.try_cast("bigint"), beyond), unit)


def _zoned(text: Column) -> Column:
    return F.unix_micros(text.try_cast("timestamp"))
