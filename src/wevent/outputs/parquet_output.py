"""A Parquet file, which cannot grow: written whole from the journal at the end of a run, in one move."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from wevent.errors import WeventError
from wevent.journal.contract import Emitted
from wevent.journal.record import Record
from wevent.journal.whole_file import made_whole
from wevent.outputs.lines import CSV_HEADER, FORMAT, csv_lines
from wevent.outputs.refusals import (
    ahead,
    clear_errors,
    doubtful,
    foreign,
    no_longer_kept,
    of_another_journal,
    outdated,
    refuse_special,
    unrelated,
    unwritable,
)

TYPES = {
    "slot": "BIGINT",
    "start": "TIMESTAMPTZ",
    "end": "TIMESTAMPTZ",
    "cell": "VARCHAR",
    "value": "DOUBLE",
    "low": "DOUBLE",
    "high": "DOUBLE",
    "std_error": "DOUBLE",
    "outcome": "VARCHAR",
    "measured": "BIGINT",
    "mechanism": "VARCHAR",
}
_LABEL = (  # as `lines.label_of`
    r"array_to_string(list_transform(string_split(cell, '\\'),"
    r" lambda part: replace(replace(part, '\n', chr(10)), '\r', chr(13))), '\')"
)
FORMAT_KEY = "wevent_format"
"""Under this key the file's own metadata have the version of the format."""

FIRST_VERSION = ["slot", "time", "cell", "value", "std_error", "outcome", "fresh", "mechanism"]
"""The columns of the first version, which had no metadata of its own."""


class ParquetOutput:
    """A Parquet file with one row per slot and cell.

    Args:
        path: the file.
        first: the first slot it is to hold.
    """

    def __init__(self, path: Path, first: int = 1) -> None:
        self.path = path
        self._first = first
        self._journal: Emitted | None = None

    def check(self, journal: Emitted, committed: int) -> None:
        """Refuse a file that is not this journal's; reads only.

        Raises:
            StaleJournal: if the file holds a slot that the journal does not know.
            InvalidOutput: if it is no file, or holds anything else than this journal's releases, or such as the journal
                no longer keeps: the file that takes its place would be without them.
        """
        refuse_special(self.path)
        if not self.path.exists() or not self.path.stat().st_size:
            return
        first, last = self._span()
        if not committed and last:
            raise ahead(self.path, last, committed)
        if last > committed:
            raise self._judge(journal, first, last, committed)
        kept = next(journal.releases(), None) if first else None
        if kept is not None and first < kept.slot:
            raise no_longer_kept(self.path, first, min(last, kept.slot - 1))
        for slot in (first, last):
            record = next(journal.releases(slot), None) if slot else None
            if record is not None and record.slot == slot and record.shown is not None:
                values = self._rows("SELECT value FROM read_parquet(?) WHERE slot = ?", slot)
                if [row[0] for row in values] != _values(record):
                    raise of_another_journal(self.path, slot)

    def _judge(self, journal: Emitted, first: int, last: int, committed: int) -> WeventError:
        """Whether a file that goes on behind the journal is this journal's: all that both have is compared."""
        rows = self._rows("SELECT slot, value FROM read_parquet(?) WHERE slot <= ?", committed)
        held = {slot: [row[1] for row in part] for slot, part in groupby(rows, itemgetter(0))}
        fresh = False
        for record in journal.releases(first):
            if record.shown is None or record.slot not in held:
                continue
            if held[record.slot] != _values(record):
                return doubtful(self.path, record.slot, last, committed)
            fresh = fresh or record.kind == "published"
        return (ahead if fresh else unrelated)(self.path, last, committed)

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Nothing yet: the file is made anew by `close`."""
        self.check(journal, committed)
        self._journal = journal
        return 0

    def emit(self, records: Iterable[Record]) -> None:
        """Nothing yet: the journal has them."""

    def close(self) -> None:
        """Write all releases of the journal to a new file and put it in place.

        Raises:
            StorageFailed: if it cannot be written; what was there stays.
        """
        if self._journal is None:
            return
        with clear_errors(self.path), made_whole(self.path) as made:
            table = made.with_suffix(".csv")
            with table.open("wb") as file:
                file.write(CSV_HEADER)
                for record in self._journal.releases(self._first):
                    if record.shown is not None:
                        file.write(csv_lines(record))
            columns = ", ".join(f"'{name}': '{kind}'" for name, kind in TYPES.items())
            target = str(made).replace("'", "''")
            self._write(
                f"COPY (SELECT * REPLACE ({_LABEL} AS cell) FROM read_csv(?, header = true, columns = {{{columns}}},"
                " auto_detect = false, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false))"
                f" TO '{target}' (FORMAT parquet, KV_METADATA {{{FORMAT_KEY}: '{FORMAT}'}})",
                table,
            )
        self._journal = None

    def abandon(self) -> None:
        """Nothing: what was there stays."""

    def _write(self, statement: str, table: Path) -> None:
        import duckdb

        try:
            _connect().execute(statement, [glob.escape(str(table))])
        except duckdb.Error as error:
            kind = str(error).partition(":")[
                0
            ]  # what follows is the engine's own wording, paths of the making included
            is_io = isinstance(error, duckdb.IOException)
            raise unwritable(self.path, f"an error of DuckDB ({kind})", passing=is_io) from None

    def _span(self) -> tuple[int, int]:
        """The first and the last slot in the file, 0 if it has none."""
        found = self._rows("SELECT * FROM (DESCRIBE SELECT * FROM read_parquet(?))")
        names = [row[0] for row in found]
        if names == FIRST_VERSION:
            raise outdated(self.path)
        if names != list(TYPES):
            raise foreign(self.path)
        first, last = self._rows("SELECT coalesce(min(slot), 0), coalesce(max(slot), 0) FROM read_parquet(?)")[0]
        return first, last

    def _rows(self, query: str, *values: int) -> list[Any]:
        import duckdb

        try:
            return list(_connect().execute(query, [glob.escape(str(self.path)), *values]).fetchall())
        except duckdb.Error:
            raise foreign(self.path) from None


def _values(record: Record) -> list[float | None]:
    """The column `value` of a slot."""
    assert record.shown is not None
    return [None] * len(record.shown.values) if record.is_empty else list(record.shown.values.tolist())


def _connect() -> Any:
    import duckdb  # only where a Parquet file is asked for: other outputs start quicker without it

    return duckdb.connect()
