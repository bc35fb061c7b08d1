"""Releases read back: one row per slot and cell, for pandas, Polars, Arrow, or as plain columns."""

from __future__ import annotations

import csv
import glob
import gzip
import importlib
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import msgspec

from wevent.errors import InvalidInput, InvalidOption
from wevent.journal import JournalPlace, PostgresPlace, Record, journal_place, open_journal
from wevent.outputs.lines import COLUMNS, CSV_HEADER, FORMAT, cell_labels, label_of, released_numbers, released_records
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
_NUMBERS = ("value", "low", "high", "std_error")


class ReleaseTable:
    """Releases, one row per slot and cell; what `read_releases` gives.

    Anything that speaks Arrow takes it as it is (`polars.DataFrame(table)`, DuckDB, pyarrow), if pyarrow is installed.

    Attributes:
        columns: slot, start, end, cell, value, low, high, std_error, outcome, measured and mechanism, as plain lists: whole
            numbers, times in UTC, text and floats; None where nothing is known. Cells are text, whatever was declared.
    """

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns["slot"])

    def __eq__(self, other: object) -> bool:
        return self.columns == other.columns if isinstance(other, ReleaseTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        slots, cells = (len(set(self.columns[name])) for name in ("slot", "cell"))
        return f"<ReleaseTable {len(self)} rows: {slots} slots × {cells} cells>"

    def to_pandas(self) -> pd.DataFrame:
        """A pandas.DataFrame; times with their zone, `measured` as Int64, which knows what is missing."""
        pandas = _library("pandas")
        kinds = {"BIGINT": "Int64", "DOUBLE": "float64", "TIMESTAMPTZ": "datetime64[us, UTC]", "VARCHAR": "str"}
        types = {name: kinds[kind] for name, kind in COLUMNS.items()} | {"slot": "int64"}
        frame = {name: pandas.Series(column, dtype=types[name]) for name, column in self.columns.items()}
        return cast("pd.DataFrame", pandas.DataFrame(frame))

    def to_polars(self) -> pl.DataFrame:
        """A polars.DataFrame."""
        polars = _library("polars")
        kinds = {"BIGINT": polars.Int64, "DOUBLE": polars.Float64, "VARCHAR": polars.String}
        kinds["TIMESTAMPTZ"] = polars.Datetime("us", "UTC")
        schema = {name: kinds[kind] for name, kind in COLUMNS.items()}
        return cast("pl.DataFrame", polars.DataFrame(self.columns, schema=schema))

    def to_arrow(self) -> pa.Table:
        """A pyarrow.Table."""
        arrow = _library("pyarrow")
        kinds = {"BIGINT": arrow.int64(), "DOUBLE": arrow.float64(), "VARCHAR": arrow.string()}
        kinds["TIMESTAMPTZ"] = arrow.timestamp("us", "UTC")
        schema = arrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
        return arrow.table(self.columns, schema=schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def read_releases(path: str | JournalPlace) -> ReleaseTable:
    """Read an output of releases (NDJSON, CSV, Parquet; the text formats also compressed with gzip), or a journal.

    What it is, the file itself says, not its name. A line that is still being written is left out, and so is a slot that
    was sent twice: standard output may repeat some after a crash.

    Raises:
        InvalidInput: if it is none of these, or of another version of the format.
        InvalidJournal: if it is a damaged journal.
    """
    place = journal_place(path)
    if isinstance(place, PostgresPlace):
        return _of_journal(place)
    if place.exists() and not place.is_file():  # a pipe may never end
        raise _none(place)
    start = _first_bytes(place)
    if start.startswith(_SQLITE):
        return _of_journal(place)
    if start.startswith(_PARQUET):
        return _checked(place, _read_parquet(place))
    try:
        with _open(place, start) as file:
            first = file.readline()
            if first == CSV_HEADER:
                return _checked(place, _table(_csv_slots(file, place)))
            if not first.endswith(b"\n") and not _is_beginning(first):
                raise _none(place)
            return _checked(place, _table(_ndjson_slots(first, file, place)))
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(place, type(error).__name__) from None


def tabulate_releases(releases: Iterable[ReleasedSlot]) -> ReleaseTable:
    """Return releases of the service as a table."""
    return _table(map(_of_release, releases))


def _of_journal(place: JournalPlace) -> ReleaseTable:
    with open_journal(place) as journal:
        return _table(map(_of_record, released_records(journal)))


class _Slot(NamedTuple):
    """The rows of one slot."""

    slot: int
    start: datetime | None
    end: datetime | None
    cells: list[str]
    numbers: list[list[Any] | None]  # value, low, high, std_error
    outcome: str
    measured: int | None
    mechanism: str


def _table(slots: Iterable[_Slot]) -> ReleaseTable:
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    last = 0
    for one in slots:
        if one.slot <= last:
            continue
        last, number = one.slot, len(one.cells)
        columns["cell"] += one.cells
        for name, values in zip(_NUMBERS, one.numbers, strict=True):
            columns[name] += [None] * number if values is None else values
        for name in ("slot", "start", "end", "outcome", "measured", "mechanism"):
            columns[name] += [getattr(one, name)] * number
    return ReleaseTable(columns)


def _checked(path: Path, table: ReleaseTable) -> ReleaseTable:
    """Refuse words and times that wevent never writes: a file from elsewhere may say anything."""
    spans = set(zip(table.columns["start"], table.columns["end"], strict=True))
    known = all(word in OUTCOMES for word in table.columns["outcome"])
    if not known or not all(_is_span(start, end) for start, end in spans):
        raise _none(path)
    return table


def _is_span(start: datetime | None, end: datetime | None) -> bool:
    if start is None or end is None:
        return start is end
    return start.tzinfo is not None and end.tzinfo is not None and start < end


def _of_record(record: Record) -> _Slot:
    terms = record.epoch.terms
    start, end = (None if text is None else datetime.fromisoformat(text) for text in terms.slot_span(record.slot))
    numbers = [None if array is None else array.tolist() for array in released_numbers(record)]
    cells = list(map(str, cell_labels(terms.cells)))
    return _Slot(record.slot, start, end, cells, numbers, record.outcome, record.measured, terms.mechanism)


def _ndjson_slots(first: bytes, file: Iterable[bytes], path: Path) -> Iterator[_Slot]:
    decoder = msgspec.json.Decoder(ReleasedSlot)
    for line in _whole_lines(first, file):
        try:
            one = decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            raise _none(path) from None
        rows = _of_release(one)
        if one.format != FORMAT or any(
            values is not None and len(values) != len(rows.cells) for values in rows.numbers
        ):
            raise _none(path)
        yield rows


def _of_release(one: ReleasedSlot) -> _Slot:
    numbers: list[list[Any] | None] = [one.histogram, one.low, one.high, one.std_error]
    return _Slot(one.slot, one.start, one.end, one.labels, numbers, one.outcome, one.measured, one.mechanism)


def _csv_slots(file: Iterable[bytes], path: Path) -> Iterator[_Slot]:
    """Rows of the same slot together; cells of a slot that is still being written may be missing."""
    try:
        texts = (line.decode() for line in _whole_lines(b"", file))
        found: list[list[str]] = []
        for row in csv.reader(texts, strict=True):
            if len(row) != len(COLUMNS):
                raise _none(path)
            if found and row[0] != found[0][0]:
                yield _of_rows(found)
                found = []
            found.append(row)
        if found:
            yield _of_rows(found)
    except (ValueError, csv.Error):  # text that is no UTF-8, a number that is none
        raise _none(path) from None


def _of_rows(rows: list[list[str]]) -> _Slot:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    start, end = (datetime.fromisoformat(columns[name][0]) if columns[name][0] else None for name in ("start", "end"))
    numbers: list[list[Any] | None] = [[float(text) if text else None for text in columns[name]] for name in _NUMBERS]
    measured = int(columns["measured"][0]) if columns["measured"][0] else None
    outcome, mechanism = columns["outcome"][0], columns["mechanism"][0]
    cells = [label_of(field) for field in columns["cell"]]
    return _Slot(int(columns["slot"][0]), start, end, cells, numbers, outcome, measured, mechanism)


def _read_parquet(path: Path) -> ReleaseTable:
    import duckdb  # only where a Parquet file is read: it takes long to load

    place = glob.escape(str(path))
    names = ", ".join(f'epoch_us("{name}")' if name in ("start", "end") else f'"{name}"' for name in COLUMNS)
    try:
        with duckdb.connect() as connection:
            known = connection.execute("SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)", [place])
            if dict(known.fetchall()).get(FORMAT_KEY) != str(FORMAT):
                raise _none(path)
            rows = connection.execute(f"SELECT {names} FROM read_parquet(?)", [place]).fetchall()
    except duckdb.Error as error:
        raise _unreadable(path, type(error).__name__) from None
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)) if rows else {n: [] for n in COLUMNS}
    for name in ("start", "end"):
        moments = {us: None if us is None else _EPOCH + timedelta(microseconds=us) for us in set(columns[name])}
        columns[name] = [moments[us] for us in columns[name]]
    return ReleaseTable(columns)


def _is_beginning(line: bytes) -> bool:
    """Return whether a first line that is still being written, or empty, may be ours."""
    return _OPENING.startswith(line) or line.startswith(_OPENING) or CSV_HEADER.startswith(line)


def _whole_lines(first: bytes, file: Iterable[bytes]) -> Iterator[bytes]:
    if first.endswith(b"\n"):
        yield first
    for line in file:
        if line.endswith(b"\n"):
            yield line


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE))
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from None


def _open(path: Path, start: bytes) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if start.startswith(_GZIP) else path.open("rb")


def _none(path: Path) -> InvalidInput:
    return InvalidInput(
        "a file of releases that wevent wrote (NDJSON, CSV or Parquet), or a journal",
        f"something else ({path})",
        "Name what `publish --out` or `wevent releases --out` made.",
        path=str(path),
    )


def _unreadable(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(
        "a readable file of releases", f"{path}, which is not ({reason})", "Check the file.", path=str(path)
    )


def _library(name: str) -> Any:
    """A library that is not part of an installation of wevent.

    Raises:
        InvalidOption: if it is not there.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InvalidOption(
            f"{name} to be installed",
            "an installation without it",
            f"Run pip install {name}.",
            option="library",
            value=name,
        ) from None
