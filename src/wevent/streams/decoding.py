"""Lines to events: line splitting, columns of events, and the rules that every format shares.

A record is one physical line. A line ends with a newline; a carriage return right before it belongs to the line end. No
other sign ends a line, and nothing inside a line continues it on the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.cells import Cells
from wevent.counting.label_index import Labels
from wevent.settings import StreamSettings
from wevent.streams.times import RawTimes, SlotReader, TimeReader

NO_RECORD, NO_USER, NO_CELL, NO_TIME, NO_OFFSET = PROBLEMS = range(5)
TIME_PROBLEMS = (NO_TIME, NO_OFFSET)
MAX_LINE_BYTES = 1 << 20
PIECE_BYTES = MAX_LINE_BYTES  # so that only the first line of a piece can be too long
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors put it before UTF-8 text
OVERLONG = b"\0\n"
"""Replacement of a line that is too long: malformed, like any line with a NUL."""

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


class Decoder(Protocol):
    """A text format. Each line is decoded independently of all others."""

    def decode(self, lines: bytes) -> Decoded:
        """Return the events of whole lines, each with its end."""
        ...

    def time_text(self, line: bytes) -> str | None:
        """Return the text of the time of one record; None if the line is no record."""
        ...


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
        self._parts: list[bytes] = []
        self._kept = 0
        self._dropping = False

    def feed(self, piece: bytes) -> bytes:
        """Return the lines that are complete with this piece of at most `PIECE_BYTES`, each with its end."""
        end = piece.find(b"\n")
        if end < 0:
            self._keep(piece)
            return b""
        cut = piece.rfind(b"\n") + 1
        if self._dropping or self._kept + end > MAX_LINE_BYTES:
            lines = OVERLONG + piece[end + 1 : cut]
        else:
            lines = b"".join((*self._parts, piece[:cut]))
        self._forget()
        self._keep(piece[cut:])
        return lines

    def finish(self) -> bytes:
        """Return the last line, if the input ended without its newline."""
        lines = OVERLONG if self._dropping else b"".join((*self._parts, b"\n")) if self._kept else b""
        self._forget()
        return lines

    def _keep(self, piece: bytes) -> None:
        if self._dropping or self._kept + len(piece) > MAX_LINE_BYTES:
            self._forget()
            self._dropping = True
        elif piece:
            self._parts.append(piece)
            self._kept += len(piece)

    def _forget(self) -> None:
        self._parts, self._kept, self._dropping = [], 0, False


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
