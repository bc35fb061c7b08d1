"""Parquet file of releases. It cannot grow, so it is written whole from the journal at the end of a run."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from wevent.file_io import atomic_write
from wevent.journal.record import Emitted
from wevent.outputs.lines import COLUMNS, CSV_HEADER, FORMAT, csv_lines, released_records
from wevent.outputs.output import Output, ahead, clear_errors, dropped, not_ours, refuse_special, unwritable

_LABEL = (  # as `lines.label_of`
    r"array_to_string(list_transform(string_split(cell, '\\'),"
    r" lambda part: replace(replace(part, '\n', chr(10)), '\r', chr(13))), '\')"
)
FORMAT_KEY = "wevent_format"
"""Key of the format's version in the file's own metadata."""


class ParquetOutput(Output):
    """A Parquet file with one row per slot and cell."""

    def __init__(self, path: Path, first: int = 1) -> None:
        self.path = path
        self._first = first
        self._journal: Emitted | None = None

    def check(self, journal: Emitted, committed: int) -> None:
        """Refuse a file of something else; read only.

        The first slot in the file, and the last one that the journal knows, must have the journal's values.

        Raises:
            StaleJournal: if the file has a slot that the journal lacks.
            InvalidOutput: if the file is none, or not this journal's, or has slots that the journal dropped: the new file
                would be without them.
        """
        refuse_special(self.path)
        if not self.path.exists() or not self.path.stat().st_size:
            return
        names = [row[0] for row in self._rows("SELECT * FROM (DESCRIBE SELECT * FROM read_parquet(?))")]
        if names != list(COLUMNS):
            raise not_ours(self.path)
        first, last = self._rows("SELECT coalesce(min(slot), 0), coalesce(max(slot), 0) FROM read_parquet(?)")[0]
        if not last:
            return
        if last > committed:
            raise ahead(self.path, last, committed)
        for slot in (first, max(first, min(last, journal.head().committed))):
            record = next(released_records(journal, slot), None)
            if record is not None and record.slot == slot and record.shown is not None:
                values = self._rows("SELECT value FROM read_parquet(?) WHERE slot = ?", slot)
                expected = [None] * len(values) if record.is_empty else record.shown.values.tolist()
                if [row[0] for row in values] != expected:
                    raise not_ours(self.path, slot)
        kept = next(journal.releases(), None)
        if kept is not None and first < kept.slot:
            raise dropped(self.path, first, min(last, kept.slot - 1))

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Check the file; `close` writes it."""
        self.check(journal, committed)
        self._journal = journal
        return 0

    def close(self) -> None:
        """Write all releases of the journal to a new file and put it in place."""
        if self._journal is None:
            return
        with clear_errors(self.path), atomic_write(self.path) as made:
            table = made.with_suffix(".csv")
            with table.open("wb") as file:
                file.write(CSV_HEADER)
                for record in released_records(self._journal, self._first):
                    file.write(csv_lines(record))
            columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
            target = str(made).replace("'", "''")
            statement = (
                f"COPY (SELECT * REPLACE ({_LABEL} AS cell) FROM read_csv(?, header = true, columns = {{{columns}}},"
                " auto_detect = false, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false))"
                f" TO '{target}' (FORMAT parquet, KV_METADATA {{{FORMAT_KEY}: '{FORMAT}'}})"
            )
            import duckdb  # only where a Parquet file is used: other outputs start quicker without it

            try:
                duckdb.connect().execute(statement, [glob.escape(str(table))])
            except duckdb.Error as error:
                kind = str(error).partition(":")[0]  # the engine's own wording follows, with paths of temporary files
                passing = isinstance(error, duckdb.IOException)
                raise unwritable(self.path, f"an error of DuckDB ({kind})", passing=passing) from None
        self._journal = None

    def _rows(self, query: str, *values: int) -> list[Any]:
        import duckdb

        try:
            return list(duckdb.connect().execute(query, [glob.escape(str(self.path)), *values]).fetchall())
        except duckdb.Error:
            raise not_ours(self.path) from None
