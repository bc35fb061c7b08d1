"""The columns of an input file and their types, from its header and first rows; no value leaves this module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import duckdb
import msgspec

from wevent.errors import InvalidInput
from wevent.streams.files.inputs import InputFile, find_files, open_input, other_delimiter, read_lines
from wevent.streams.files.parquet_times import FINE_ZONED_TYPE, ZONED_TYPE
from wevent.streams.files.sql import connect, file_list
from wevent.streams.records.delimited import DELIMITERS, split_fields
from wevent.streams.records.outlines import listed_columns, looks_like_record
from wevent.streams.records.times import TimeReader

ZONED, NAIVE, WHOLE, NUMBER, TEXT, NOTHING = (
    "times with an offset",
    "times without an offset",
    "whole numbers",
    "numbers",
    "text",
    "nothing",
)
_ROWS = 200  # that types are taken from
_PARQUET = {ZONED_TYPE: ZONED, FINE_ZONED_TYPE: ZONED, "FLOAT": NUMBER, "DOUBLE": NUMBER}


class Column(NamedTuple):
    """A column: its name, its type in words, and of whole numbers how many digits the first one has."""

    name: str
    type: str
    digits: int = 0


def column_types(path: str) -> list[Column]:
    """The columns of a file.

    Raises:
        InvalidInput: for a missing or unreadable file, or one without columns.
    """
    file = open_input(find_files([path])[0])
    if file.format == "parquet":
        columns = _of_parquet(file)
    else:
        columns = _of_delimited(file) if file.format in DELIMITERS else _of_objects(file)
    names = [column.name for column in columns]
    if len(columns) < 3 or (file.format in DELIMITERS and looks_like_record(names)):
        raise InvalidInput(
            "a file with columns for time, user and cell",
            f"{path!r} with {listed_columns(names)}",
            other_delimiter(names)
            or "Fields of .csv are separated by commas, of .tsv by tabs; NDJSON has an object per line.",
            path=path,
        )
    return columns


def _of_parquet(file: InputFile) -> list[Column]:
    scan = f"read_parquet({file_list([file.path])}, hive_partitioning = false)"
    try:
        rows = connect().execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    except duckdb.Error as error:
        raise InvalidInput(
            "a readable Parquet file",
            f"{file.path!r} ({type(error).__name__})",
            "Check that it is not cut off.",
            path=file.path,
        ) from None
    return [Column(row[0], _parquet_type(row[1])) for row in rows]


def _parquet_type(kind: str) -> str:
    if kind in _PARQUET:
        return _PARQUET[kind]
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        return NAIVE
    if kind.endswith(("INT", "INTEGER")):
        return WHOLE
    return NUMBER if kind.startswith("DECIMAL") else TEXT


def _of_delimited(file: InputFile) -> list[Column]:
    lines = b"\n".join(next(read_lines(file), b"").split(b"\n")[:_ROWS]).rstrip(b"\n") + b"\n"
    table = split_fields(lines, DELIMITERS[file.format], len(file.columns), range(len(file.columns)))
    return [_column(name, fields.texts()) for name, fields in zip(file.columns, table.columns, strict=True)]


def _of_objects(file: InputFile) -> list[Column]:
    return [_column(name, values) for name, values in object_fields(file).items()]


def object_fields(file: InputFile) -> dict[str, list[Any]]:
    """The fields that most of the first objects of NDJSON have, and their values; one record alone names no column."""
    values: dict[str, list[Any]] = {}
    objects = 0
    for line in next(read_lines(file), b"").split(b"\n")[:_ROWS]:
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        objects += 1
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: found for name, found in values.items() if 2 * len(found) > objects}


def _column(name: str, values: Iterable[Any]) -> Column:
    texts = [str(value) for value in values if value not in (None, "")]
    kinds = {_type(text) for text in texts}
    if kinds == {WHOLE, NUMBER}:
        kinds = {NUMBER}
    kind = next(iter(kinds)) if len(kinds) == 1 else TEXT if kinds else NOTHING
    return Column(name, kind, len(texts[0]) if kind == WHOLE else 0)


def _type(text: str) -> str:
    if text.removeprefix("-").isdecimal():
        return WHOLE
    try:
        float(text)
    except ValueError:
        pass
    else:
        return NUMBER
    if TimeReader(None, "s").one(text) is not None:
        return ZONED
    return NAIVE if TimeReader(0, "s").one(text) is not None else TEXT
