"""NDJSON: one object per line, decoded line by line; live lines and files alike."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.cells import Cells
from wevent.counting.spelling import padded
from wevent.streams.records.decoding import Columns, Decoded, assemble, assemble_all
from wevent.streams.records.fields import Numbers, Texts
from wevent.streams.records.shapes import Shape, ShapeMarks, learn, mark, match
from wevent.streams.records.splitting import BYTE_ORDER_MARK, line_ends, spoiled_lines
from wevent.streams.records.times import SlotReader, TimeReader

MAX_DEPTH = 64  # of arrays and objects within each other in one line

_MANY = 32  # lines that are worth looking for shapes
_SAMPLES = 4  # lines that shapes are learnt from, and shapes that are remembered
_NOTHING = np.empty(0, dtype=np.int64)
_SOLID = bytes(sign not in b" \t\n\r\x0b\x0c" for sign in range(256))  # what bytes.strip keeps
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, dtype=np.int8)  # into arrays and objects, and out of them
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


class ObjectDecoder:
    """Decodes lines `{"time": …, "user": …, "cell": …}`.

    Args:
        columns: the names of "time", "user" and "cell" in the objects.
        cells: the declared cells.
        times: how times are read.
    """

    def __init__(self, columns: Mapping[str, str], cells: Cells, times: TimeReader | SlotReader) -> None:
        fields: list[Any] = [("time", str | int | float), ("user", int | str), ("cell", int | str)]
        event: Any = msgspec.defstruct("Event", fields, rename=dict(columns), gc=False)
        close: Any = msgspec.defstruct("Close", [("close", str | int | float)], gc=False, forbid_unknown_fields=True)
        self._decode = msgspec.json.Decoder(event).decode
        self._decode_close = msgspec.json.Decoder(close).decode
        self._columns_wanted = dict(columns)
        self._least = 1 + sum(len(name.encode()) + 5 for name in set(columns.values()))  # {"name":1,"name":1,"name":1}
        self._cells = cells
        self._times = times
        self._shapes: list[Shape] = []

    def decode(self, lines: bytes) -> Decoded:
        """The events of whole lines, each with its end."""
        if BYTE_ORDER_MARK in lines:  # some editors put one before text, and files are joined
            lines = b"\n".join([row.removeprefix(BYTE_ORDER_MARK) for row in lines.split(b"\n")])
        ends = line_ends(lines)
        spoiled = spoiled_lines(lines, ends)
        if len(ends) < _MANY:
            return assemble(self._one_by_one(lines, np.arange(len(ends)), ends, spoiled), self._cells)
        left, short = self._sifted(lines, ends)
        parts = [self._one_by_one(lines, _NOTHING, ends, spoiled)._replace(broken=short)]
        if len(left):
            parts += self._by_shape(lines, left, ends, spoiled)
        return assemble_all(parts if len(short) or not len(left) else parts[1:], self._cells)

    def _sifted(self, lines: bytes, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Return the lines that are long enough for a record, and the shorter ones that are not blank.

        Decoding millions of tiny lines one by one would take many seconds.
        """
        starts = np.concatenate((ends[:1] * 0, ends[:-1] + 1))
        is_short = ends - starts < self._least
        if not is_short.any():
            return np.arange(len(ends)), _NOTHING
        solid = np.append(np.flatnonzero(np.frombuffer(lines.translate(_SOLID), dtype=np.bool_)), len(lines))
        is_blank = solid[solid.searchsorted(starts)] >= ends
        return np.flatnonzero(~is_short), np.flatnonzero(is_short & ~is_blank)

    def _by_shape(self, lines: bytes, left: IntArray, ends: IntArray, spoiled: IntArray) -> list[Columns]:
        """Return the columns of some lines: of many at once where they have a shape, of the others one by one."""
        marks = mark(lines, ends, padded(lines))
        marks.plain[spoiled] = False
        parts = []
        for shape in self._candidates(marks):
            found = match(shape, marks, left)
            if len(found.rows):
                times = self._times.fields(found.times)
                lacks_offset = partial(self._times.lack_offset, found.times)
                parts.append(Columns(found.rows, times, lacks_offset, found.users, found.cells, _NOTHING))
                done = len(found.rows) == len(left)
                left = _NOTHING if done else np.setdiff1d(left, found.rows, assume_unique=True)
                self._remember(shape)
            if not len(left):
                return parts
        return [*parts, self._one_by_one(lines, left, ends, spoiled)]

    def _candidates(self, marks: ShapeMarks) -> Iterator[Shape]:
        """Shapes that lines may have: the ones they had lately, then those of a few of them."""
        yield from tuple(self._shapes)
        for row in np.linspace(0, len(marks.ends) - 1, _SAMPLES).astype(np.int64).tolist():
            shape = learn(marks.lines[marks.starts[row] : marks.ends[row]], self._columns_wanted)
            if shape is not None and shape not in self._shapes:
                yield shape

    def _remember(self, shape: Shape) -> None:
        if self._shapes[:1] != [shape]:
            self._shapes = [shape, *(known for known in self._shapes if known != shape)][:_SAMPLES]

    def _one_by_one(self, lines: bytes, rows: IntArray, ends: IntArray, spoiled: IntArray) -> Columns:
        """The columns of some lines, whatever is in them."""
        if len(rows) == len(ends):
            texts = lines.split(b"\n")
            texts.pop()
        else:
            starts = np.concatenate((ends[:1] * 0, ends[:-1] + 1))
            places = zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)
            texts = [lines[start:end] for start, end in places]
        for place in np.flatnonzero(np.isin(rows, spoiled)).tolist() if len(spoiled) else ():
            texts[place] = b"\0"
        for place in _too_deep(texts):
            texts[place] = b"\0"
        events: list[Any] = []
        broken: list[int] = []
        left = iter(texts)
        while True:
            try:
                events.extend(map(self._decode, left))  # keeps what it got when a line fails
                break
            except _MALFORMED:
                broken.append(len(events) + len(broken))
        raw = [event.time for event in events]
        times, lacks_offset = self._times.values(raw), partial(self._times.lack_offset, raw)
        users, cells = _labels([event.user for event in events]), _labels([event.cell for event in events])
        malformed = np.array([place for place in broken if texts[place].strip()], dtype=np.int64)
        whole = np.delete(rows, broken) if broken else rows
        return Columns(whole, times, lacks_offset, users, cells, rows[malformed])

    def time_text(self, line: bytes) -> str | None:
        """What stands where the time of one record should be; None if the line is none."""
        try:
            return str(self._decode(line).time)
        except _MALFORMED:
            return None

    def close(self, line: bytes) -> int | None:
        """The time of a close line, None if it is none; a line that is spoiled closes nothing."""
        if len(spoiled_lines(line, line_ends(line))):
            return None
        try:
            return self._times.one(self._decode_close(line).close)
        except _MALFORMED:
            return None


def _labels(values: Sequence[Any]) -> Numbers | Texts:
    try:
        return Numbers(np.frombuffer(array("q", values), dtype=np.int64) if values else np.empty(0, dtype=np.int64))
    except (TypeError, OverflowError):  # text among them, or numbers of more than 64 bits
        return Texts([value if type(value) is str else str(value) for value in values])


def _too_deep(rows: Sequence[bytes]) -> list[int]:
    """Numbers of the lines with more than MAX_DEPTH arrays and objects within each other."""
    deep = []
    for number, row in enumerate(rows):
        if row.count(b"{") + row.count(b"[") > MAX_DEPTH and _depth(row) > MAX_DEPTH:
            deep.append(number)
    return deep


def _depth(row: bytes) -> int:
    steps = _STEPS[np.frombuffer(_STRINGS.sub(b"", row), dtype=np.uint8)]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))
