"""Lines to events: line splitting, columns of events, rules that every format shares, and the decoder of CSV and TSV.

A record is one physical line. A line ends with a newline; a carriage return right before it belongs to the line end. No
other sign ends a line, and nothing inside a line continues it on the next. In CSV and TSV a quote may stand at both ends of
a field, and doubled inside such a field. A line with any other quote is malformed, like one with too few or too many fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.labels import Cells, Labels
from wevent.counting.string_column import StringColumn, padded
from wevent.settings import StreamSettings
from wevent.streams.times import RawTimes, SlotReader, TimeReader

NO_RECORD, NO_USER, NO_CELL, NO_TIME, NO_OFFSET = PROBLEMS = range(5)
TIME_PROBLEMS = (NO_TIME, NO_OFFSET)
DELIMITERS = {"csv": ",", "tsv": "\t"}
MAX_LINE_BYTES = 1 << 20
PIECE_BYTES = MAX_LINE_BYTES  # so that only the first line of a piece can be too long
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors put it before UTF-8 text
OVERLONG = b"\0\n"
"""Replacement of a line that is too long: malformed, like any line with a NUL."""

_QUOTE = ord('"')
_NOTHING: IntArray = np.empty(0, dtype=np.int64)


class EventColumns(NamedTuple):
    """Events as columns.

    Attributes:
        times: µs since 1970 (with a slot column: slot numbers less one).
        users: the ids.
        cells: columns of the declared cells, -1 for an undeclared one.
    """

    times: IntArray
    users: Labels
    cells: IntArray

    @classmethod
    def joined(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Return the events of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls(_NOTHING, Labels(_NOTHING), _NOTHING)
        times, users, cells = zip(*parts, strict=True)
        return cls(np.concatenate(times), Labels.joined(users), np.concatenate(cells))

    def where(self, chosen: IntArray | BoolArray | slice) -> EventColumns:
        """Return some of the events."""
        return EventColumns(self.times[chosen], self.users[chosen], self.cells[chosen])

    def by_time(self) -> EventColumns:
        """Return the events in order of time; those with equal times stay in their order."""
        times = self.times
        return self.where(times.argsort(kind="stable")) if (times[1:] < times[:-1]).any() else self


class Decoded(NamedTuple):
    """The events of some lines or rows.

    Attributes:
        batch: the events.
        malformed: indices of malformed lines, ascending.
        problems: the problem of each, one of `PROBLEMS`.
    """

    batch: EventColumns
    malformed: IntArray
    problems: IntArray


def assemble(
    rows: IntArray,
    raw_times: RawTimes,
    users: Labels,
    labels: Labels,
    *,
    broken: IntArray,
    times: TimeReader,
    cells: Cells,
    has_time: BoolArray | None = None,
) -> Decoded:
    """Return the events of records; a record without a time, a user or a cell is malformed.

    Args:
        rows: the numbers of the lines that are records.
        raw_times, users, labels: columns of times, users and cells.
        broken: the numbers of the lines that are no records.
        times: the reader of times.
        cells: the declared cells.
        has_time: which records have a time; None: all.
    """
    moments, is_timely = times.read(raw_times)
    if has_time is not None:
        is_timely &= has_time
    has_user, has_cell = users.is_label(), labels.is_label()
    whole = is_timely & has_user & has_cell
    if whole.all() and not len(broken):
        return Decoded(EventColumns(moments, users, cells.find(labels)), _NOTHING, _NOTHING)
    batch = EventColumns(moments[whole], users[whole], cells.find(labels[whole]))
    problems = np.select((~has_user, ~has_cell, ~is_timely), (NO_USER, NO_CELL, NO_TIME), NO_RECORD)
    untimely = np.flatnonzero(problems == NO_TIME)
    if len(untimely):
        problems[untimely[times.lack_offset(raw_times, untimely)]] = NO_OFFSET
    malformed = np.concatenate((broken, rows[~whole]))
    order = malformed.argsort(kind="stable")
    both = np.concatenate((np.full(len(broken), NO_RECORD), problems[~whole]))
    return Decoded(batch, malformed[order], both[order])


def time_reader(settings: StreamSettings) -> TimeReader:
    """Return the reader of the time column."""
    return SlotReader() if settings.slot_column else TimeReader(settings.timezone_us, settings.time_unit)


def event_columns(settings: StreamSettings) -> tuple[str, str, str]:
    """Return the names of the columns of times (or slot numbers), users and cells."""
    names = settings.columns
    return settings.slot_column or names["time"], names["user"], names["cell"]


def explain(problem: int, settings: StreamSettings) -> str:
    """Return a problem in words, without content of the line."""
    size = f"or one of more than {MAX_LABEL_BYTES} bytes"
    time = "ISO 8601 or a number"
    if settings.timezone_us is None:
        time = "ISO 8601 with Z or an offset, or a number"
    if settings.slot_column:
        time = "a slot number"
    words = ["not a record", f"no user, {size}", f"no cell, {size}", f"its time is not {time}"]
    return [*words, "its time has no offset; --timezone says what such times are in"][problem]


class LineSplitter:
    """Splits pieces of a file into whole lines. It keeps one line at most and drops a longer one while it arrives."""

    def __init__(self) -> None:
        self._rest, self._is_dropping = b"", False

    def feed(self, piece: bytes) -> bytes:
        """Return the lines that are complete with this piece of at most `PIECE_BYTES`, each with its end."""
        text = self._rest + piece
        cut = text.rfind(b"\n") + 1
        lines, self._rest = text[:cut], text[cut:]
        if lines and (self._is_dropping or lines.find(b"\n") > MAX_LINE_BYTES):
            lines, self._is_dropping = OVERLONG + lines[lines.find(b"\n") + 1 :], False
        if self._is_dropping or len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._is_dropping = b"", True
        return lines

    def finish(self) -> bytes:
        """Return the last line, if the input ended without its newline."""
        lines = OVERLONG if self._is_dropping else self._rest + b"\n" if self._rest else b""
        self._rest, self._is_dropping = b"", False
        return lines


def line_ends(lines: bytes) -> IntArray:
    """Return the places of the newlines."""
    return np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n"))


def line_starts(ends: IntArray) -> IntArray:
    """Return the places where lines begin."""
    return np.concatenate((ends[:1] * 0, ends[:-1] + 1))


def spoiled_lines(lines: bytes, ends: IntArray) -> IntArray:
    """Return numbers of lines that are too long, have a NUL or a carriage return inside, or are not UTF-8."""
    characters = np.frombuffer(lines, dtype=np.uint8)
    found = []
    if b"\0" in lines:
        found.append(np.flatnonzero(characters == 0))
    if b"\r" in lines:
        returns = np.flatnonzero(characters == ord("\r"))
        found.append(returns[characters[returns + 1] != ord("\n")])
    spoiled = [ends.searchsorted(places) for places in found]
    if len(lines) > MAX_LINE_BYTES:
        spoiled.append(np.flatnonzero(np.diff(ends, prepend=-1) - 1 > MAX_LINE_BYTES))
    if not lines.isascii() and not _is_text(lines):
        suspects = np.unique(ends.searchsorted(np.flatnonzero(characters >= 0x80)))
        starts = line_starts(ends)
        bad = [row for row in suspects.tolist() if not _is_text(lines[starts[row] : ends[row]])]
        spoiled.append(np.array(bad, dtype=np.int64))
    return np.unique(np.concatenate(spoiled)) if spoiled else _NOTHING


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


class DelimitedDecoder:
    """Decoder of the lines after a header; `wanted` names its columns of times, users and cells."""

    def __init__(
        self, header: Sequence[str], wanted: Sequence[str], delimiter: str, cells: Cells, times: TimeReader
    ) -> None:
        self._width = len(header)
        self._wanted = [list(header).index(name) for name in wanted]
        self._delimiter, self._cells, self._times = delimiter, cells, times

    def decode(self, lines: bytes) -> Decoded:
        """Return the events of whole lines, each with its end; a line is decoded independently of all others."""
        table = split_fields(lines, self._delimiter, self._width, self._wanted)
        times, *labels = table.columns
        users, cells = map(Labels.from_fields, labels)
        return assemble(table.rows, times, users, cells, broken=table.broken, times=self._times, cells=self._cells)

    def time_text(self, line: bytes) -> str | None:
        """Return the text of the time of one record; None if the line is no record."""
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
    starts, ends, first = starts[rows], ends[rows], first[rows]

    def border(column: int) -> IntArray:
        """Return the place behind a column in each line; of column -1 the place before the line."""
        if column < 0:
            return starts - 1
        return ends if column == width - 1 else separators[first + column]

    if quotes is None:
        data = padded(lines)
        lefts = [border(column - 1) + 1 for column in wanted]
        columns = [StringColumn(data, left, border(column) - left) for column, left in zip(wanted, lefts, strict=True)]
    else:
        borders = np.stack([border(column) for column in range(-1, width)], axis=1)
        columns, legal = _unquoted(lines, borders, quotes, delimiter, wanted)
        usable[rows[~legal]] = False
        rows, columns = rows[legal], [column.where(legal) for column in columns]
    return TextTable(rows, columns, np.flatnonzero(present & ~usable))


def _unquoted(
    lines: bytes, borders: IntArray, quotes: IntArray, delimiter: str, wanted: Sequence[int]
) -> tuple[list[StringColumn], BoolArray]:
    """Return the wanted columns without quotes around them, and which lines have quotes in legal places only."""
    characters = np.frombuffer(lines, dtype=np.uint8)
    left, right = borders[:, :-1] + 1, borders[:, 1:]
    quoted = (right - left >= 2) & (characters[left] == _QUOTE) & (characters[right - 1] == _QUOTE)
    number = quotes.searchsorted(right[:, -1]) - quotes.searchsorted(left[:, 0])
    legal = 2 * quoted.sum(axis=1) == number
    starts, ends = (left + quoted)[:, wanted], (right - quoted)[:, wanted]
    extra = [lines]  # fields with doubled quotes are appended to the lines, unquoted
    place = len(lines)
    for row in np.flatnonzero(~legal).tolist():
        fields = split_line(lines[left[row, 0] : right[row, -1]], delimiter)
        if fields is not None and len(fields) == left.shape[1]:
            legal[row] = True
            for index, column in enumerate(wanted):
                extra.append(fields[column])
                starts[row, index], ends[row, index] = place, place + len(fields[column])
                place += len(fields[column])
    data = padded(b"".join(extra))
    sizes = ends - starts
    return [StringColumn(data, starts[:, index].copy(), sizes[:, index].copy()) for index in range(len(wanted))], legal


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
