"""Decoder of CSV and TSV: a record is one line, and a quoted field ends on its line.

A quote may stand at both ends of a field, and doubled inside such a field. A line with any other quote is malformed, like
one with too few or too many fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.counting.cells import Cells
from wevent.counting.label_index import Labels
from wevent.counting.string_column import Bytes, StringColumn, padded
from wevent.streams.decoding import Decoded, assemble, line_ends, line_starts, spoiled_lines
from wevent.streams.times import TimeReader

DELIMITERS = {"csv": ",", "tsv": "\t"}
_QUOTE = ord('"')


class DelimitedDecoder:
    """Decoder of the lines after a header; `wanted` names its columns of times, users and cells."""

    def __init__(
        self,
        header: Sequence[str],
        wanted: Sequence[str],
        *,
        delimiter: str,
        cells: Cells,
        times: TimeReader,
    ) -> None:
        self._width = len(header)
        self._wanted = [list(header).index(name) for name in wanted]
        self._delimiter = delimiter
        self._cells = cells
        self._times = times

    def decode(self, lines: bytes) -> Decoded:
        table = split_fields(lines, self._delimiter, self._width, self._wanted)
        times, *labels = table.columns
        users, cells = map(Labels.from_fields, labels)
        return assemble(table.rows, times, users, cells, broken=table.broken, times=self._times, cells=self._cells)

    def time_text(self, line: bytes) -> str | None:
        times = split_fields(line + b"\n", self._delimiter, self._width, self._wanted[:1]).columns[0]
        return times.texts()[0] if len(times) else None


class TextTable(NamedTuple):
    """Some columns of the lines that are records.

    Attributes:
        rows: numbers of these lines.
        columns: the wanted columns.
        broken: numbers of the lines that are neither records nor empty.
    """

    rows: IntArray
    columns: list[StringColumn]
    broken: IntArray


def split_fields(lines: bytes, delimiter: str, width: int, wanted: Sequence[int]) -> TextTable:
    """Return the wanted columns of lines that have `width` fields."""
    ends = line_ends(lines)
    starts = line_starts(ends)
    spoiled = spoiled_lines(lines, ends)
    characters = np.frombuffer(lines, dtype=np.uint8)
    if b"\r\n" in lines:
        ends = ends - ((ends > starts) & (characters[ends - 1] == ord("\r")))
    separators = np.flatnonzero(characters == ord(delimiter))
    quotes = np.flatnonzero(characters == _QUOTE) if b'"' in lines else None
    if quotes is not None:  # a separator after an odd number of quotes in its line is inside a quoted field
        before = quotes.searchsorted(separators) - quotes.searchsorted(starts)[ends.searchsorted(separators)]
        separators = separators[before % 2 == 0]
    first = separators.searchsorted(starts)
    usable = separators.searchsorted(ends) - first == width - 1
    present = starts < ends
    usable &= present
    usable[spoiled] = False
    rows = np.flatnonzero(usable)
    bounds = _Bounds(starts[rows], ends[rows], separators, first[rows], width)
    if quotes is None:
        data = padded(lines)
        columns = [_column(data, *bounds.of(column)) for column in wanted]
    else:
        columns, legal = _unquoted(lines, bounds, quotes, delimiter, wanted)
        usable[rows[~legal]] = False
        rows, columns = rows[legal], [column.where(legal) for column in columns]
    return TextTable(rows, columns, np.flatnonzero(present & ~usable))


def split_line(line: bytes, delimiter: str) -> list[bytes] | None:
    """Return all fields of one line without its end; None if its quotes are in the wrong places."""
    mark = re.escape(delimiter.encode())
    field = re.compile(rb'(?:"([^"]*(?:""[^"]*)*)"|([^"' + mark + rb"]*))(" + mark + rb"|$)", re.DOTALL)
    fields, place = [], 0
    while match := field.match(line, place):
        fields.append(match[2] if match[1] is None else match[1].replace(b'""', b'"'))
        place = match.end()
        if not match[3]:
            return fields
    return None


class _Bounds(NamedTuple):
    """Places of the fields of some lines."""

    starts: IntArray
    ends: IntArray
    separators: IntArray
    first: IntArray
    width: int

    def of(self, column: int) -> tuple[IntArray, IntArray]:
        """Return where each field of a column begins and ends."""
        left = self.starts if column == 0 else self.separators[self.first + column - 1] + 1
        right = self.ends if column == self.width - 1 else self.separators[self.first + column]
        return left, right


def _unquoted(
    lines: bytes, bounds: _Bounds, quotes: IntArray, delimiter: str, wanted: Sequence[int]
) -> tuple[list[StringColumn], BoolArray]:
    """Return the wanted columns without quotes around them, and which lines have quotes in legal places only."""
    characters = np.frombuffer(lines, dtype=np.uint8)
    inner = bounds.separators[bounds.first[:, None] + np.arange(bounds.width - 1)]
    left = np.concatenate((bounds.starts[:, None], inner + 1), axis=1)
    right = np.concatenate((inner, bounds.ends[:, None]), axis=1)
    quoted = (right - left >= 2) & (characters[left] == _QUOTE) & (characters[right - 1] == _QUOTE)
    number = quotes.searchsorted(bounds.ends) - quotes.searchsorted(bounds.starts)
    legal = 2 * quoted.sum(axis=1) == number
    left, right = (left + quoted)[:, wanted], (right - quoted)[:, wanted]
    extra: list[bytes] = []  # fields with doubled quotes are appended to the lines, unquoted
    place = len(lines)
    for row in np.flatnonzero(~legal).tolist():
        fields = split_line(lines[bounds.starts[row] : bounds.ends[row]], delimiter)
        if fields is not None and len(fields) == bounds.width:
            legal[row] = True
            for index, column in enumerate(wanted):
                extra.append(fields[column])
                left[row, index], right[row, index] = place, place + len(fields[column])
                place += len(fields[column])
    data = padded(b"".join((lines, *extra)))
    return [_column(data, left[:, index], right[:, index]) for index in range(len(wanted))], legal


def _column(data: Bytes, starts: IntArray, ends: IntArray) -> StringColumn:
    return StringColumn(data, np.ascontiguousarray(starts), ends - starts)
