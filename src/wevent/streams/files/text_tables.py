"""Small files of the operator's as tables of text: who asks for what, which cells there are.

A line is a row here too, but a malformed one is refused: it is the operator's, not a user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np

from wevent.errors import InvalidInput
from wevent.streams.files.inputs import FRAME, InputFile, open_input, read_lines
from wevent.streams.files.sql import file_list, quoted
from wevent.streams.records.delimited import DELIMITERS, split_fields
from wevent.streams.records.fields import Fields

Choice = Callable[[Sequence[str]], list[str]]


def load_rows(connection: duckdb.DuckDBPyConnection, path: str, choose: Choice) -> list[str]:
    """Some columns of a file as a table `loaded` of texts c0, c1, …, in the order of its rows; returns their names.

    Args:
        connection: where the table is made.
        path: CSV, TSV, NDJSON (also with .gz) or Parquet; the name of that very file.
        choose: the columns to read, given the names that there are (of NDJSON: in the first object).

    Raises:
        InvalidInput: for a missing or unreadable file, or a line that is no row of it.
    """
    file = open_file(path)
    if file.format == "parquet":
        return load_columns(connection, f"read_parquet({file_list([path])}, hive_partitioning = false)", choose, path)
    names, pieces = _delimited(file, choose) if file.format in DELIMITERS else _objects(file, choose)
    columns = ", ".join(f"c{index} VARCHAR" for index in range(len(names)))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE loaded ({columns})")
    for piece in pieces:
        arriving = {f"c{index}": np.array(column, dtype=object) for index, column in enumerate(piece)}
        connection.register("arriving", arriving)
        connection.execute("INSERT INTO loaded SELECT * FROM arriving")
        connection.unregister("arriving")
    return names


def open_file(path: str) -> InputFile:
    """The file of that very name.

    Raises:
        InvalidInput: if it is not there or cannot be read.
    """
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "is not there"
        raise InvalidInput("a file", f"{path!r}, which {what}", "Check the path.", path=path)
    return open_input(path)


def load_columns(connection: duckdb.DuckDBPyConnection, scan: str, choose: Choice, path: str) -> list[str]:
    """`load_rows` of a table that DuckDB has, or of Parquet: columns of any type, as text.

    Raises:
        InvalidInput: if it cannot be read.
    """
    try:
        kinds = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
        names = choose(list(kinds))
        texts = ", ".join(f"{_as_text(quoted(name), kinds[name])} AS c{index}" for index, name in enumerate(names))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE loaded AS SELECT {texts} FROM {scan}")
    except duckdb.Error as error:
        raise InvalidInput(
            "a readable Parquet file", f"{path!r} ({type(error).__name__})", "Check that it is not cut off.", path=path
        ) from None
    return names


def _as_text(column: str, kind: str) -> str:
    """Whole numbers without a decimal point, as in events: a column with gaps is one of floats in many frames."""
    if kind not in ("FLOAT", "DOUBLE"):
        return f"CAST({column} AS VARCHAR)"
    whole = f"{column} = floor({column}) AND abs({column}) < 9e15"
    number = f"CASE WHEN {whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE CAST({column} AS VARCHAR) END"
    return f"CASE WHEN isfinite({column}) THEN {number} END"


def delimited_fields(file: InputFile, places: Sequence[int]) -> Iterator[list[Fields]]:
    """Some columns of a CSV or TSV file, piece by piece.

    Raises:
        InvalidInput: at a line that is no row of it.
    """
    line = 2
    for lines in read_lines(file):
        table = split_fields(lines, DELIMITERS[file.format], len(file.columns), places)
        if len(table.broken):
            raise _no_row(file.path, line + int(table.broken[0]))
        yield table.columns
        line += lines.count(b"\n")


def place_of_row(file: InputFile, row: int) -> str:
    """Where a row stands, for a message: its line; of a Parquet file its number. The first row is 0.

    The file is read again: nobody needs it of a file without mistakes.
    """
    line, passed = 2 if file.columns else 1, 0
    if file.format in ("parquet", FRAME):
        return f"row {row + 1}"
    for lines in read_lines(file):
        split = lines.split(b"\n")[:-1]
        present = [place for place, text in enumerate(split) if text.strip(b"\r" if file.columns else None)]
        if passed + len(present) > row:
            return f"line {line + present[row - passed]}"
        passed, line = passed + len(present), line + len(split)
    return f"row {row + 1}"


def _delimited(file: InputFile, choose: Choice) -> tuple[list[str], Iterator[list[list[str | None]]]]:
    names = choose(file.columns)
    pieces = delimited_fields(file, [file.columns.index(name) for name in names])
    return names, ([list(column.texts()) for column in piece] for piece in pieces)


def _objects(file: InputFile, choose: Choice) -> tuple[list[str], Iterator[list[list[str | None]]]]:
    rows = _decoded(file)
    first = next(rows, None)
    names = choose(list(first or ()))

    def pieces() -> Iterator[list[list[str | None]]]:
        row = first
        while row is not None:
            piece: list[list[str | None]] = [[] for _ in names]
            while row is not None and len(piece[0]) < 100_000:
                for column, name in zip(piece, names, strict=True):
                    value = row.get(name)
                    column.append(None if value is None else str(value))
                row = next(rows, None)
            yield piece

    return names, pieces()


def _decoded(file: InputFile) -> Iterator[dict[str, Any]]:
    decode = msgspec.json.Decoder(dict[str, str | int | float | None]).decode
    number = 0
    for lines in read_lines(file):
        for line in lines.split(b"\n")[:-1]:
            number += 1
            if line.strip():
                try:
                    yield decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    raise _no_row(file.path, number) from None


def _no_row(path: str, line: int) -> InvalidInput:
    return InvalidInput(
        "a file with the same fields in every row",
        f"{path!r}, where line {line} is no row",
        "Check that no row is cut off, has a comma too many or a quote in the wrong place.",
        path=path,
    )
