"""A private DuckDB, and names and values in its SQL."""

from __future__ import annotations

import glob
from collections.abc import Iterable

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A private DuckDB that keeps input order and never writes to disk."""
    connection = duckdb.connect(":memory:")
    for setting in ("TimeZone = 'UTC'", "temp_directory = ''", "preserve_insertion_order = true"):
        connection.execute(f"SET {setting}")
    return connection


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def file_list(paths: Iterable[str]) -> str:
    """Files for a table function, each meant literally: DuckDB takes what it is given for a glob."""
    return "[" + ", ".join(literal(glob.escape(path)) for path in paths) + "]"
