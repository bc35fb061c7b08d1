"""A data frame as a table that can be read like files."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class FrameTable:
    """Some columns of a frame, copied: the table `wevent.streams.files.inputs.FRAME` of a private DuckDB.

    Attributes:
        connection: where it is.
        name: what people know the frame by.
    """

    connection: duckdb.DuckDBPyConnection
    name: str
