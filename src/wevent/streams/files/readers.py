"""Inputs as readers: Parquet and frames through DuckDB, text line by line."""

from __future__ import annotations

import itertools

from wevent.settings import StreamSettings
from wevent.streams.files.inputs import FRAME, InputFile, find_files, open_input
from wevent.streams.files.parquet_files import ParquetReader, open_parquet
from wevent.streams.files.sql import connect
from wevent.streams.files.text_files import TextReader


def open_readers(settings: StreamSettings) -> list[ParquetReader | TextReader]:
    """Open all input files, in input order, or the frame; declared columns are checked before a slot is counted.

    Raises:
        InvalidInput: for missing or damaged files, unknown formats, missing columns.
        InvalidEvents: for columns of times without an offset when none is declared.
    """
    if settings.frame is not None:
        return [*open_parquet(settings.frame.connection, [InputFile(settings.frame.name, FRAME)], settings)]
    files = [open_input(path) for path in find_files(settings.inputs)]
    readers: list[ParquetReader | TextReader] = []
    connection = connect() if any(file.format == "parquet" for file in files) else None
    for is_parquet, group in itertools.groupby(files, key=lambda file: file.format == "parquet"):
        if connection is not None and is_parquet:
            readers += open_parquet(connection, list(group), settings)
        else:
            readers.append(TextReader(list(group), settings))
    return readers
