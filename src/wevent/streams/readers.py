"""Input files as readers: Parquet through DuckDB, text line by line."""

from __future__ import annotations

import itertools

import duckdb

from wevent.streams.inputs import find_files, open_input
from wevent.streams.parquet import ParquetReader, open_parquet
from wevent.streams.settings import StreamSettings
from wevent.streams.text import TextReader

Reader = ParquetReader | TextReader


def open_readers(connection: duckdb.DuckDBPyConnection, settings: StreamSettings) -> list[Reader]:
    """Readers of all input files, in input order; whatever is declared is checked here, before a slot is counted.

    Raises:
        InvalidInput: for missing or damaged files, unknown formats, missing columns.
        InvalidEvents: for columns of times without an offset when none is declared.
    """
    files = [open_input(path) for path in find_files(settings.inputs)]
    readers: list[Reader] = []
    for kind, group in itertools.groupby(files, key=lambda one: one.format):
        if kind == "parquet":
            readers += open_parquet(connection, list(group), settings)
        else:
            readers += [TextReader(one, settings) for one in group]
    return readers
