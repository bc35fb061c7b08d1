"""Reading of the raw files of the real streams: lines as text, malformed ones counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from wevent.errors import InvalidOption
from wevent.streams.duckdb_tables import file_list


def lines_of(files: Sequence[Path]) -> str:
    """Return SQL for the non-empty lines of text files (plain or .gz): `line` and its number `n`, without line ends.

    One column, no quotes and Latin-1: no line can stop the reading.
    """
    table = file_list(map(str, files))
    options = "header=false, delim='\x01', quote='', escape='', comment='', auto_detect=false, strict_mode=false"
    return (
        f"SELECT row_number() OVER () AS n, rtrim(line, chr(13)) AS line FROM read_csv({table}, {options}, "
        "encoding='latin-1', columns={'line': 'VARCHAR'}, max_line_size=1000000) WHERE trim(line, chr(13) || ' ') <> ''"
    )


def raw_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files below a folder that match a pattern, plain or .gz, in a stable order."""
    found = {path for ending in ("", ".gz") for path in folder.rglob(pattern + ending) if path.is_file()}
    return sorted(path for path in found if path.stat().st_size)


def missing(stream: str, folder: Path, what: str, where: str) -> InvalidOption:
    """Return the error for data that is not there."""
    return InvalidOption(
        f"The folder {folder} has no {what}.",
        f"wevent ships no data: {where} Unpack it there, or name another place with --data "
        f"(the parent of {folder.name}/).",
        option="data",
        value=str(folder),
        stream=stream,
    )


def single_row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """Return the only row of a query's result."""
    row = connection.execute(query).fetchone()
    assert row is not None
    return tuple(row)
