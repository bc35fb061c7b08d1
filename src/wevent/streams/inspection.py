"""Facts about input files, for `check` and `init --from`. Private: for the operator only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.counting.labels import Cells, Labels
from wevent.counting.roster import Roster
from wevent.errors import InvalidInput
from wevent.settings import StreamSettings
from wevent.streams.decoding import DELIMITERS, PROBLEMS, EventColumns, split_fields
from wevent.streams.duckdb_tables import NAIVE, NOTHING, NUMBER, TEXT, WHOLE, ZONED, Table, kind_of
from wevent.streams.file_source import open_readers
from wevent.streams.inputs import (
    InputFile,
    find_files,
    listed_columns,
    looks_like_record,
    object_fields,
    open_input,
    other_delimiter,
    outline,
    sample_lines,
)
from wevent.streams.source import MALFORMED
from wevent.streams.times import TimeReader

_LABELS = 10_000  # different undeclared labels that are looked at


@dataclass
class Inspection:
    """Contents of files, inside and outside the clock; values show as masks only.

    Attributes:
        columns: the columns of each file, by its name.
        events: well-formed events.
        span: their first and last time (with a slot column: slot numbers less one); None without any.
        users_found: events whose user is registered.
        cells_found: events whose cell is declared.
        nearly_cells: events whose cell differs from a declared one by case or spaces alone.
        cells_from_one: whether cells look numbered from 1 on but are declared from 0 on.
        seen: which of the registered users occur.
        outlines: the mask of one value for each reason.
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
        """Number of registered users that occur."""
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

    def example(self, reason: str, text: str | None) -> None:
        """Note a value, if it is the first of its reason."""
        if text is not None:
            self.outlines.setdefault(reason, outline(text))


def inspect_files(settings: StreamSettings, roster: Roster) -> Inspection:
    """Read all input files with the readers that publishing uses.

    Raises:
        InvalidInput, InvalidEvents: as of `open_readers`.
    """
    watched = _WatchedCells(settings.cells)
    found = Inspection(seen=np.zeros(len(roster), dtype=np.bool_))
    for reader in open_readers(replace(settings, cells=watched)):
        found.columns[reader.file.path] = reader.columns
        for piece in reader.pieces():
            found.add(piece.decoded.batch, roster)
            _, rows, problems = piece.decoded
            for problem, name in zip(PROBLEMS, MALFORMED, strict=True):
                if name not in found.outlines and (problems == problem).any():
                    found.example(name, piece.example(int(rows[(problems == problem).argmax()]), problem))
    for text in watched.first:
        found.example("unknown_cell", text)
    found.nearly_cells = watched.nearly
    found.cells_from_one = watched.one_too_many and not watched.zero
    return found


class _WatchedCells(Cells):
    """Cells that note undeclared labels."""

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
        self.zero |= self.numbered and bool((places == 0).any())
        missing = column[np.flatnonzero(places < 0)]
        _, first, sizes = np.unique(missing.codes(), return_index=True, return_counts=True)
        texts = [str(label) for label in missing[first[:_LABELS]].values()]
        self.first += texts[: 1 - len(self.first)]
        self.nearly += sum(
            size for text, size in zip(texts, sizes.tolist(), strict=False) if _folded(text) in self._near
        )
        self.one_too_many |= self.numbered and str(len(self)) in texts
        return places


def _folded(text: str) -> str:
    return "".join(text.casefold().split())


class Column(NamedTuple):
    """A column: its name, its kind in words, and of whole numbers the digits of the first one."""

    name: str
    type: str
    digits: int = 0


def column_types(path: str) -> list[Column]:
    """Return the columns of a file and their kinds, from its header and first rows.

    Raises:
        InvalidInput: for a missing or unreadable file, or one without columns.
    """
    file = open_input(find_files([path])[0])
    columns = list(_read_columns(file))
    names = [column.name for column in columns]
    if len(columns) < 3 or (file.format in DELIMITERS and looks_like_record(names)):
        fix = "Fields of .csv are separated by commas, of .tsv by tabs; NDJSON has an object per line."
        problem = f"{path} has no columns for time, user and cell. Its columns: {listed_columns(names)}."
        raise InvalidInput(problem, other_delimiter(names) or fix, path=path)
    return columns


def _read_columns(file: InputFile) -> Iterator[Column]:
    if file.format == "parquet":
        for name, type_name in Table(file).types.items():
            yield Column(name, kind_of(type_name) or TEXT)
    elif file.format in DELIMITERS:
        lines = b"\n".join(sample_lines(file)).rstrip(b"\n") + b"\n"
        table = split_fields(lines, DELIMITERS[file.format], len(file.columns), range(len(file.columns)))
        for name, fields in zip(file.columns, table.columns, strict=True):
            yield _column(name, fields.texts())
    else:
        for name, values in object_fields(file).items():
            yield _column(name, values)


def _column(name: str, values: Iterable[Any]) -> Column:
    texts = [str(value) for value in values if value not in (None, "")]
    kinds = {_type(text) for text in texts}
    if kinds == {WHOLE, NUMBER}:
        kinds = {NUMBER}
    kind = NOTHING if not kinds else TEXT if len(kinds) > 1 else kinds.pop()
    return Column(name, kind, len(texts[0]) if kind == WHOLE else 0)


def _type(text: str) -> str:
    if text.removeprefix("-").isdecimal():
        return WHOLE
    try:
        float(text)
    except ValueError:
        pass
    else:
        return NUMBER
    if TimeReader(None, "s").one(text) is not None:
        return ZONED
    return NAIVE if TimeReader(0, "s").one(text) is not None else TEXT
