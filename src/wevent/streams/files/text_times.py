"""Times that are texts in Parquet files and frames, as DuckDB expressions; each means what `records.times` says it means.

DuckDB's own casts know more texts than that (spaces around a number, "1_000", offsets by name) and fewer, so a text is
matched first, and only parts of which one thing can be meant are cast.
"""

from __future__ import annotations

from wevent.settings.values import SECOND_US
from wevent.streams.files.sql import literal
from wevent.streams.records.times import FAR_US, MAX_TIME_BYTES

_CLOCK_PART = r"\d{4}-\d{2}-\d{2}[Tt ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_OFFSET = r"[+-]([01]\d|2[0-3])(:?[0-5]\d)?"
_ZONED = f"{_CLOCK_PART}([Zz]|{_OFFSET})"
_WHOLE = r"[+-]?\d+"
_NUMBER = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?"


def text_time(column: str, unit: int, timezone_us: int | None) -> str:
    """µs since 1970 as BIGINT, NULL for what is no time.

    Args:
        column: an expression of type VARCHAR.
        unit: of numbers, in µs.
        timezone_us: the offset of times that carry none; None makes them malformed.
    """
    naive = f"WHEN {_matches(column, _CLOCK_PART)} THEN {_clock(column)} - {timezone_us} "
    return (
        f"CASE WHEN strlen({column}) > {MAX_TIME_BYTES} THEN NULL "
        f"WHEN {_matches(column, _ZONED)} THEN {_clock(column)} - {_offset(column)} "
        f"{'' if timezone_us is None else naive}"
        f"WHEN {_matches(column, _WHOLE)} THEN {_whole(column, unit)} "
        f"WHEN {_matches(column, _NUMBER)} THEN {near_number(f'TRY_CAST({column} AS DOUBLE)', unit)} END"
    )


def text_unzoned(column: str) -> str:
    """Whether a text would be a time if an offset were declared."""
    return f"({_matches(column, _CLOCK_PART)} AND {_clock(column)} IS NOT NULL)"


def near_number(number: str, unit: int) -> str:
    """A DOUBLE as µs, the nearest; a number beyond any clock stays beyond it, and NULL is what is none."""
    product = f"({number} * {unit})"
    within = f"greatest({-FAR_US}::DOUBLE, least({FAR_US}::DOUBLE, round_even({product}, 0)))"
    return f"CASE WHEN isfinite({product}) THEN TRY_CAST({within} AS BIGINT) END"


def whole_number(number: str, unit: int) -> str:
    """A whole number as µs; one beyond any clock stays beyond it."""
    most = FAR_US // unit
    within = f"greatest({-most}, least({most}, {number}))"
    return f"CASE WHEN {number} IS NOT NULL THEN CAST({within} AS BIGINT) * {unit} END"


def _matches(column: str, pattern: str) -> str:
    return f"regexp_full_match({column}, {literal(pattern)})"


def _clock(column: str) -> str:
    """The part without an offset, in µs as if in UTC; NULL for a day that no calendar has, and for the year 0."""
    read = f"epoch_us(TRY_CAST(upper(regexp_extract({column}, {literal('^' + _CLOCK_PART)})) AS TIMESTAMP))"
    return f"CASE WHEN NOT starts_with({column}, '0000') THEN {read} END"


def _offset(column: str) -> str:
    """In µs; 0 for a Z."""
    written = f"regexp_extract({column}, {literal(_OFFSET + '$')})"
    digits = f"rpad(regexp_replace({written}, '[+:-]', '', 'g'), 4, '0')"
    minutes = f"(TRY_CAST({digits}[1:2] AS BIGINT) * 60 + TRY_CAST({digits}[3:4] AS BIGINT))"
    return f"CASE WHEN starts_with({written}, '-') THEN -1 ELSE 1 END * {minutes} * {60 * SECOND_US}"


def _whole(column: str, unit: int) -> str:
    beyond = f"CASE WHEN starts_with({column}, '-') THEN {-FAR_US} ELSE {FAR_US} END"
    return whole_number(f"COALESCE(TRY_CAST({column} AS HUGEINT), {beyond})", unit)
