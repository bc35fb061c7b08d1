"""What is in the input files, for somebody who wants to know before anything is spent. Private: for the operator only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.counting.cells import Cells
from wevent.counting.lookup import Labels
from wevent.counting.roster import Roster
from wevent.streams.clock import SlotClock
from wevent.streams.files.column_types import object_fields
from wevent.streams.files.engines import Tables
from wevent.streams.files.inputs import InputFile
from wevent.streams.files.parquet_files import ParquetReader
from wevent.streams.files.readers import open_readers
from wevent.streams.files.sql import quoted
from wevent.streams.files.text_files import TextReader
from wevent.streams.records.decoding import NO_OFFSET, NO_TIME, PROBLEMS
from wevent.streams.records.outlines import outline
from wevent.streams.stream_settings import StreamSettings
from wevent.streams.uncounted import MALFORMED

_LABELS = 10_000  # different undeclared labels that are looked at


@dataclass
class Inspection:
    """What files hold, whether a slot has it or not; a value shows as its outline, never as it is.

    Attributes:
        columns: the columns of each file, by its name.
        events: well-formed events.
        span: the first and last time of them (with a slot column: slot numbers less one); None without any.
        users_found: events whose user is registered.
        cells_found: events whose cell is declared.
        nearly_cells: events whose cell differs from a declared one by case or spaces alone.
        cells_from_one: whether cells look numbered from 1 on where they are declared from 0 on.
        seen: which of the registered occur.
        outlines: one example for each reason.
    """

    columns: dict[str, list[str]] = field(default_factory=dict)
    events: int = 0
    span: tuple[int, int] | None = None
    users_found: int = 0
    cells_found: int = 0
    nearly_cells: int = 0
    cells_from_one: bool = False
    seen: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    outlines: dict[str, str] = field(default_factory=dict)

    @property
    def people(self) -> int:
        """How many of the registered occur."""
        return int(np.count_nonzero(self.seen))

    def add(self, times: tuple[int, int, int], users: int, cells: int) -> None:
        """More events: how many, from when to when; how many users and cells of them are known."""
        number, low, high = times
        if number:
            self.events += number
            self.span = (low, high) if self.span is None else (min(low, self.span[0]), max(high, self.span[1]))
            self.users_found += users
            self.cells_found += cells

    def example(self, reason: str, text: str) -> None:
        """The first example of a reason stays."""
        self.outlines.setdefault(reason, outline(text))


def inspect_files(settings: StreamSettings, clock: SlotClock, roster: Roster) -> Inspection:
    """Look through all input files with the readers that publishing uses.

    Args:
        settings: which files, which columns.
        clock: when slots begin.
        roster: who is registered.

    Raises:
        InvalidInput, InvalidEvents: as of `open_readers`.
    """
    watched = _WatchedCells(settings.cells)
    readers = open_readers(replace(settings, cells=watched))
    tables = Tables(readers, settings.cells, clock)
    if tables.parquet:
        tables.load(roster)
    found = Inspection(seen=np.zeros(len(roster), dtype=np.bool_))
    for reader in readers:
        for file in reader.files:
            found.columns[file.path] = reader.columns_of(file) if isinstance(reader, ParquetReader) else _columns(file)
        if isinstance(reader, ParquetReader):
            _inspect_parquet(reader, tables, settings, watched, found)
        else:
            _inspect_text(reader, roster, found)
    for text in watched.first:
        found.example("unknown_cell", text)
    found.nearly_cells = watched.nearly
    found.cells_from_one = watched.one_too_many and not watched.zero
    return found


class _WatchedCells(Cells):
    """Cells that remember what undeclared labels look like."""

    __slots__ = ("_near", "first", "nearly", "one_too_many", "zero")

    def __init__(self, cells: Cells) -> None:
        super().__init__(cells._labels, numbered=cells.numbered)
        self._near = {_folded(str(label)) for label in self}
        self.first: list[str] = []
        self.nearly = 0
        self.one_too_many = self.zero = False

    def find(self, labels: Labels | object) -> IntArray:
        column = Labels.of(labels)
        places = super().find(column)
        if self.numbered and not self.zero:
            self.zero = bool((places == 0).any())
        missing = np.flatnonzero(places < 0)
        if len(missing):
            codes = column[missing].codes()
            _, first, sizes = np.unique(codes, return_index=True, return_counts=True)
            self.note(column[missing[first[:_LABELS]]].values(), sizes[:_LABELS].tolist())
        return places

    def note(self, labels: Iterable[object], sizes: Iterable[int]) -> None:
        """Undeclared labels, and how many events have each."""
        for label, size in zip(labels, sizes, strict=True):
            text = str(label)
            if not self.first:
                self.first.append(text)
            self.nearly += size if _folded(text) in self._near else 0
            self.one_too_many |= self.numbered and text == str(len(self))


def _folded(text: str) -> str:
    return "".join(text.casefold().split())


def _columns(file: InputFile) -> list[str]:
    """The header of a text file; of NDJSON the fields that most of its first objects have."""
    return list(file.columns or object_fields(file))


def _inspect_text(reader: TextReader, roster: Roster, found: Inspection) -> None:
    for _, lines, decoded in reader.pieces():
        times, users, cells = decoded.batch
        rows = roster.find(users)
        known = rows >= 0
        span = (len(times), int(times.min()), int(times.max())) if len(times) else (0, 0, 0)
        found.add(span, int(np.count_nonzero(known)), int(np.count_nonzero(cells >= 0)))
        found.seen[rows[known]] = True
        if "unknown_user" not in found.outlines and not known.all():
            found.example("unknown_user", str(users[np.flatnonzero(~known)[:1]].values()[0]))
        for problem, name in zip(PROBLEMS, MALFORMED, strict=True):
            if name not in found.outlines and (decoded.problems == problem).any():
                row = int(decoded.malformed[(decoded.problems == problem).argmax()])
                line = lines.split(b"\n", row + 1)[row]
                time = reader.decoder.time_text(line) if problem in (NO_TIME, NO_OFFSET) else None
                found.example(name, line.decode(errors="replace") if time is None else time)


def _inspect_parquet(
    reader: ParquetReader, tables: Tables, settings: StreamSettings, watched: _WatchedCells, found: Inspection
) -> None:
    fetch = reader.fetch
    events = (
        "SELECT n, t, u, c, roster.place AS who, cells.place AS what "
        f"FROM (SELECT *, row_number() OVER () AS n FROM ({reader.rows})) "
        "LEFT JOIN roster ON CAST(u AS VARCHAR) = roster.id LEFT JOIN cells ON CAST(c AS VARCHAR) = cells.label "
        "WHERE t IS NOT NULL AND u IS NOT NULL AND c IS NOT NULL"
    )
    people = (
        "SELECT who, count(*) AS events, min(t) AS low, max(t) AS high, count(what) AS cells "
        f"FROM ({events}) GROUP BY who"
    )
    number, low, high, users, cells, seen = fetch(
        "SELECT coalesce(sum(events), 0)::BIGINT, min(low), max(high), "
        "coalesce(sum(events) FILTER (who IS NOT NULL), 0)::BIGINT, coalesce(sum(cells), 0)::BIGINT, "
        f"list(who) FILTER (who IS NOT NULL) FROM ({people})"
    )[0]
    found.add((number, low, high), users, cells)
    found.seen[seen or []] = True
    if cells < number:  # every question is a way through all files: none that has no answer
        labels = fetch(
            f"SELECT c, count(*) FROM ({events}) WHERE what IS NULL GROUP BY c ORDER BY min(n) LIMIT {_LABELS}"
        )
        watched.note(*zip(*labels, strict=True))
    if watched.numbered and not watched.zero:
        watched.zero = bool(fetch(f"SELECT 1 FROM ({events}) WHERE what = 0 LIMIT 1"))
    raw = f"CAST({quoted(settings.slot_column or settings.columns['time'])} AS VARCHAR)"
    untimely = (
        f"SELECT {raw} AS raw, {reader.unzoned} AS unzoned, {reader.user} AS u, {reader.cell} AS c, {reader.time} AS t"
    )
    untimely = f"SELECT raw FROM ({untimely} FROM {reader.scan}) WHERE t IS NULL AND u IS NOT NULL AND c IS NOT NULL"
    queries = {"no_time": f"{untimely} AND NOT coalesce(unzoned, false)", "no_offset": f"{untimely} AND unzoned"}
    if users < number:
        queries["unknown_user"] = f"SELECT u FROM ({events}) WHERE who IS NULL ORDER BY n"
    for name, query in queries.items():
        for (value,) in fetch(f"{query} LIMIT 1"):
            found.example(name, "" if value is None else str(value))
