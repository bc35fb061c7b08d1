"""What is in the input files, for somebody who wants to know before anything is spent. Private: for the operator only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.counting.cells import Cells
from wevent.counting.lookup import Labels
from wevent.counting.roster import Roster
from wevent.settings import StreamSettings
from wevent.streams.files.column_types import object_fields
from wevent.streams.files.inputs import InputFile
from wevent.streams.files.parquet_files import ParquetReader
from wevent.streams.files.readers import open_readers
from wevent.streams.files.sql import quoted
from wevent.streams.files.text_files import TextReader
from wevent.streams.records.decoding import NO_OFFSET, NO_TIME, PROBLEMS, EventColumns
from wevent.streams.records.outlines import outline
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

    def add(self, batch: EventColumns, roster: Roster) -> None:
        """Add events."""
        times, users, cells = batch
        if not len(times):
            return
        low, high = int(times.min()), int(times.max())
        self.span = (low, high) if self.span is None else (min(low, self.span[0]), max(high, self.span[1]))
        rows = roster.find(users)
        known = rows >= 0
        self.events += len(times)
        self.users_found += int(np.count_nonzero(known))
        self.cells_found += int(np.count_nonzero(cells >= 0))
        self.seen[rows[known]] = True
        if "unknown_user" not in self.outlines and not known.all():
            self.example("unknown_user", str(users[np.flatnonzero(~known)[:1]].values()[0]))

    def example(self, reason: str, text: str) -> None:
        """The first example of a reason stays."""
        self.outlines.setdefault(reason, outline(text))


def inspect_files(settings: StreamSettings, roster: Roster) -> Inspection:
    """Look through all input files with the readers that publishing uses.

    Args:
        settings: which files, which columns.
        roster: who is registered.

    Raises:
        InvalidInput, InvalidEvents: as of `open_readers`.
    """
    watched = _WatchedCells(settings.cells)
    found = Inspection(seen=np.zeros(len(roster), dtype=np.bool_))
    for reader in open_readers(replace(settings, cells=watched)):
        for file in reader.files:
            found.columns[file.path] = reader.columns_of(file) if isinstance(reader, ParquetReader) else _columns(file)
        if isinstance(reader, ParquetReader):
            for batch in reader.everything():
                found.add(batch, roster)
            _note_times(reader, settings, found)
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
    for _, decoder, _, lines, decoded in reader.pieces():
        found.add(decoded.batch, roster)
        for problem, name in zip(PROBLEMS, MALFORMED, strict=True):
            if name not in found.outlines and (decoded.problems == problem).any():
                row = int(decoded.malformed[(decoded.problems == problem).argmax()])
                line = lines.split(b"\n", row + 1)[row]
                time = decoder.time_text(line) if problem in (NO_TIME, NO_OFFSET) else None
                found.example(name, line.decode(errors="replace") if time is None else time)


def _note_times(reader: ParquetReader, settings: StreamSettings, found: Inspection) -> None:
    """Add an example of a value that is no time, and of one without an offset."""
    raw = f"CAST({quoted(settings.slot_column or settings.columns['time'])} AS VARCHAR)"
    columns = f"{raw} AS raw, {reader.unzoned} AS unzoned, {reader.user} AS u, {reader.cell} AS c, {reader.time} AS t"
    untimely = f"(SELECT {columns} FROM {reader.scan}) WHERE t IS NULL AND u IS NOT NULL AND c IS NOT NULL"
    for name, condition in (("no_time", "NOT coalesce(unzoned, false)"), ("no_offset", "unzoned")):
        for (value,) in reader.fetch(f"SELECT raw FROM {untimely} AND {condition} LIMIT 1"):
            found.example(name, "" if value is None else str(value))
