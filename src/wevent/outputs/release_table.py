"""Releases read back: one row per slot and cell, for pandas, Polars, Arrow, or as plain columns."""

from __future__ import annotations

import csv
import errno
import glob
import gzip
import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from wevent.errors import InvalidInput, InvalidOption
from wevent.journal import JournalAddress, PostgresAddress, open_journal, parse_address
from wevent.outputs.lines import COLUMNS, CSV_HEADER, FORMAT, label_of, ndjson_line, released_records
from wevent.outputs.parquet_output import FORMAT_KEY
from wevent.publisher.confidence import OUTCOMES
from wevent.schemas import ReleasedSlot

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SQLITE, _PARQUET, _GZIP = b"SQLite format 3\0", b"PAR1", b"\x1f\x8b"
_OPENING = b'{"format":%d,' % FORMAT
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VALUE_OF: dict[str, Callable[[str], Any]] = {
    **{name: lambda text: float(text) if text else None for name in ("value", "low", "high", "std_error")},
    **dict.fromkeys(("start", "end"), lru_cache(lambda text: datetime.fromisoformat(text) if text else None)),
    **dict.fromkeys(("outcome", "mechanism"), str),
    "slot": int,
    "measured": lambda text: int(text) if text else None,
    "cell": label_of,
}
"""Readers of the fields of CSV."""


@dataclass(repr=False)
class ReleaseTable:
    """Releases, one row per slot and cell; the result of `read_releases`.

    Libraries that read Arrow take it as it is (`polars.DataFrame(table)`, DuckDB, pyarrow), if pyarrow is installed.

    Attributes:
        columns: slot, start, end, cell, value, low, high, std_error, outcome, measured and mechanism, as plain lists: whole
            numbers, times in UTC, text and floats; None where nothing is known. Cells are text.
    """

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["slot"])

    def __repr__(self) -> str:
        slots, cells = (len(set(self.columns[name])) for name in ("slot", "cell"))
        return f"<ReleaseTable {len(self)} rows: {slots} slots × {cells} cells>"

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas.DataFrame; times with their zone, `measured` as Int64, which has missing values."""
        pandas = _library("pandas")
        types = _types("Int64", "float64", "str", "datetime64[us, UTC]") | {"slot": "int64"}
        frame = {name: pandas.Series(column, dtype=types[name]) for name, column in self.columns.items()}
        return cast("pd.DataFrame", pandas.DataFrame(frame))

    def to_polars(self) -> pl.DataFrame:
        """Return a polars.DataFrame."""
        polars = _library("polars")
        schema = _types(polars.Int64, polars.Float64, polars.String, polars.Datetime("us", "UTC"))
        return cast("pl.DataFrame", polars.DataFrame(self.columns, schema=schema))

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow.Table."""
        arrow = _library("pyarrow")
        types = _types(arrow.int64(), arrow.float64(), arrow.string(), arrow.timestamp("us", "UTC"))
        return arrow.table(self.columns, schema=arrow.schema(list(types.items())))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table by the Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def read_releases(path: str | JournalAddress) -> ReleaseTable:
    """Read an output of releases (NDJSON, CSV, Parquet; the text formats also compressed with gzip), or a journal.

    The content decides the format, not the name. A line that is still being written is left out, and so is a slot that
    was sent twice: standard output may repeat some after a crash.

    Raises:
        InvalidInput: if it is none of these, or of another version of the format.
        InvalidJournal: if it is a damaged journal.
    """
    place = parse_address(path)
    if isinstance(place, PostgresAddress):
        return _read_journal(place)
    try:
        if place.exists() and not place.is_file():
            raise ValueError("a pipe, which may never end")
        with place.open("rb") as file:
            start = file.read(len(_SQLITE))
        table = None if start == _SQLITE else _read_file(place, start)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidInput(f"{place} cannot be read ({reason}).", "Check the file.", path=str(place)) from None
    except (ValueError, IndexError, RecursionError, csv.Error, msgspec.MsgspecError):
        raise InvalidInput(
            f"{place} is neither a file of releases that wevent wrote (NDJSON, CSV or Parquet), nor a journal.",
            "Name what `publish --out` or `wevent releases --out` made.",
            path=str(place),
        ) from None
    return _read_journal(place) if table is None else table


def tabulate_releases(releases: Iterable[ReleasedSlot]) -> ReleaseTable:
    """Return releases of the service as a table; of a slot that comes twice the first one."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    last = 0
    for one in releases:
        if one.slot <= last:
            continue
        last, labels = one.slot, one.labels
        columns["cell"] += labels
        numbers = {"value": one.histogram, "low": one.low, "high": one.high, "std_error": one.std_error}
        for name, values in numbers.items():
            columns[name] += [None] * len(labels) if values is None else values
        for name in ("slot", "start", "end", "outcome", "measured", "mechanism"):
            columns[name] += [getattr(one, name)] * len(labels)
    return ReleaseTable(columns)


def _read_journal(place: JournalAddress) -> ReleaseTable:
    with open_journal(place) as journal:
        return tabulate_releases(_read_ndjson(map(ndjson_line, released_records(journal))))


def _read_file(path: Path, start: bytes) -> ReleaseTable:
    """Read a file that begins so.

    Raises:
        ValueError, IndexError, RecursionError, csv.Error, MsgspecError: for anything that wevent never writes: a file from
            elsewhere may say anything.
    """
    if start.startswith(_PARQUET):
        table = _read_parquet(path)
    else:
        with gzip.open(path) if start.startswith(_GZIP) else path.open("rb") as text:
            first = text.readline()
            is_beginning = _OPENING.startswith(first) or first.startswith(_OPENING) or CSV_HEADER.startswith(first)
            if not first.endswith(b"\n") and not is_beginning:  # an empty file is one that is still being written
                raise ValueError("a line that wevent never writes")
            table = _read_csv(text) if first == CSV_HEADER else tabulate_releases(_read_ndjson(chain([first], text)))
    spans = set(zip(table.columns["start"], table.columns["end"], strict=True))
    if not set(table.columns["outcome"]) <= set(OUTCOMES) or not all(_is_span(start, end) for start, end in spans):
        raise ValueError("words or times that wevent never writes")
    return table


def _is_span(start: datetime | None, end: datetime | None) -> bool:
    if start is None or end is None:
        return start is end
    return start.tzinfo is not None and end.tzinfo is not None and start < end


def _read_ndjson(lines: Iterable[bytes]) -> Iterator[ReleasedSlot]:
    decoder = msgspec.json.Decoder(ReleasedSlot)
    for one in map(decoder.decode, _whole(lines)):
        lengths = {len(values) for values in (one.histogram, one.low, one.high, one.std_error) if values is not None}
        if one.format != FORMAT or lengths - {len(one.labels)}:
            raise ValueError("another format, or columns of other lengths")
        yield one


def _read_csv(lines: Iterable[bytes]) -> ReleaseTable:
    """Read rows; cells of a slot that is still being written may be missing."""
    rows: list[list[str]] = []
    last = 0
    for row in csv.reader(map(bytes.decode, _whole(lines)), strict=True):
        slot = int(row[0])
        if len(row) != len(COLUMNS):
            raise ValueError("more columns, or fewer")
        if slot >= last:  # slots before were sent twice
            rows.append(row)
        last = max(last, slot)
    texts = dict(zip(COLUMNS, zip(*rows, strict=True), strict=False))
    return ReleaseTable({name: [_VALUE_OF[name](text) for text in texts.get(name, ())] for name in COLUMNS})


def _read_parquet(path: Path) -> ReleaseTable:
    import duckdb  # only where a Parquet file is read: it takes long to load

    place = glob.escape(str(path))
    names = ", ".join(f'epoch_us("{name}")' if name in ("start", "end") else f'"{name}"' for name in COLUMNS)
    try:
        with duckdb.connect() as connection:
            known = connection.execute("SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)", [place])
            if dict(known.fetchall()).get(FORMAT_KEY) != str(FORMAT):
                raise ValueError("another format")
            rows = connection.execute(f"SELECT {names} FROM read_parquet(?)", [place]).fetchall()
    except duckdb.Error as error:
        raise OSError(errno.EIO, type(error).__name__) from None
    columns = {name: [row[index] for row in rows] for index, name in enumerate(COLUMNS)}
    for name in ("start", "end"):
        moments = {us: None if us is None else _EPOCH + timedelta(microseconds=us) for us in set(columns[name])}
        columns[name] = [moments[us] for us in columns[name]]
    return ReleaseTable(columns)


def _whole(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without the last one, if it is still being written."""
    return (line for line in lines if line.endswith(b"\n"))


def _types(whole: Any, number: Any, text: Any, time: Any) -> dict[str, Any]:
    """Return the types of all columns in a library."""
    kinds = {"BIGINT": whole, "DOUBLE": number, "VARCHAR": text, "TIMESTAMPTZ": time}
    return {name: kinds[kind] for name, kind in COLUMNS.items()}


def _library(name: str) -> Any:
    """Return a library that is not part of an installation of wevent."""
    try:
        return importlib.import_module(name)
    except ImportError:
        problem, fix = f"{name} is not installed.", f"Run pip install {name}."
        raise InvalidOption(problem, fix, option="library", value=name) from None
