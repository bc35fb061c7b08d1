"""Decoder of NDJSON, and JSON arrays as lines, so that arrays and NDJSON share one decoder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.labels import Cells, Labels, to_int64
from wevent.counting.string_column import StringColumn
from wevent.streams.decoding import BYTE_ORDER_MARK, Decoded, assemble, line_ends, line_starts, spoiled_lines
from wevent.streams.times import TimeReader

MAX_DEPTH = 64  # of arrays and objects within each other in one line

_NOTHING = np.empty(0, dtype=np.int64)
_SOLID = bytes(sign not in b" \t\n\r\x0b\x0c" for sign in range(256))  # bytes.strip keeps these
_ARRAY_PIECE = 1 << 17  # bytes scanned at once: the scan takes about 30 bytes of memory per byte
_MARKS = bytes(sign in b",[]{}\r\n" for sign in range(256))
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, dtype=np.int64)  # into arrays and objects, and out of them
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


class ObjectDecoder:
    """Decoder of lines `{"time": …, "user": …, "cell": …}`; `columns` has other names of these fields."""

    def __init__(self, columns: Mapping[str, str], cells: Cells, times: TimeReader) -> None:
        fields: list[Any] = [("time", str | int | float), ("user", int | str), ("cell", int | str)]
        event: Any = msgspec.defstruct("Event", fields, rename=dict(columns), gc=False)
        close: Any = msgspec.defstruct("Close", [("close", str | int | float)], gc=False, forbid_unknown_fields=True)
        decoder = msgspec.json.Decoder(event)
        self._decode, self._decode_lines = decoder.decode, decoder.decode_lines
        self._decode_close = msgspec.json.Decoder(close).decode
        self._least = 1 + sum(len(name.encode()) + 5 for name in set(columns.values()))  # {"name":1,"name":1,"name":1}
        self._cells = cells
        self._times = times

    def decode(self, lines: bytes) -> Decoded:
        if BYTE_ORDER_MARK in lines:  # files with such a mark may have been joined
            lines = b"\n".join([row.removeprefix(BYTE_ORDER_MARK) for row in lines.split(b"\n")])
        ends = line_ends(lines)
        spoiled = spoiled_lines(lines, ends)
        events = None if len(spoiled) else self._all_at_once(lines, ends)
        rows, broken = np.arange(len(ends)), _NOTHING
        if events is None:
            rows, events, broken = self._one_by_one(lines, ends, spoiled)
        raw = [event.time for event in events]
        users, cells = _labels([event.user for event in events]), _labels([event.cell for event in events])
        return assemble(rows, raw, users, cells, broken=broken, times=self._times, cells=self._cells)

    def _all_at_once(self, lines: bytes, ends: IntArray) -> list[Any] | None:
        """Return the records if each line is one, else None."""
        # Each record opens one object; only a line with many more brackets can be too deep.
        brackets = lines.count(b"{") + lines.count(b"[")
        if brackets >= len(ends) + MAX_DEPTH and _too_deep(lines.split(b"\n")):
            return None
        try:
            events: list[Any] = self._decode_lines(lines)
        except _MALFORMED:
            return None
        # No JSON value has "}", a line end and "{" inside. If all lines meet so, each has whole records, and so exactly one.
        meetings = lines.count(b"}\n{") + lines.count(b"}\r\n{")
        if len(events) != len(ends) or meetings != len(ends) - 1:  # blank lines, or several records on a line
            return None
        return events

    def _sifted(self, lines: bytes, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Return the lines that are long enough for a record, and the shorter ones that are not blank.

        Decoding millions of tiny lines one by one would take many seconds.
        """
        starts = line_starts(ends)
        is_short = ends - starts < self._least
        if not is_short.any():
            return np.arange(len(ends)), _NOTHING
        solid = np.append(np.flatnonzero(np.frombuffer(lines.translate(_SOLID), dtype=np.bool_)), len(lines))
        is_blank = solid[solid.searchsorted(starts)] >= ends
        return np.flatnonzero(~is_short), np.flatnonzero(is_short & ~is_blank)

    def _one_by_one(self, lines: bytes, ends: IntArray, spoiled: IntArray) -> tuple[IntArray, list[Any], IntArray]:
        """Return the numbers of the lines that are records, the records, and the numbers of broken lines."""
        rows, short = self._sifted(lines, ends)
        starts = line_starts(ends)
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
        malformed = np.array([place for place in broken if texts[place].strip()], dtype=np.int64)
        return np.delete(rows, broken), events, np.concatenate((short, rows[malformed]))

    def time_text(self, line: bytes) -> str | None:
        try:
            return str(self._decode(line).time)
        except _MALFORMED:
            return None

    def close(self, line: bytes) -> int | None:
        """Return the time of a close line; None if the line is malformed or no close line."""
        if len(spoiled_lines(line, line_ends(line))):
            return None
        try:
            return self._times.one(self._decode_close(line).close)
        except _MALFORMED:
            return None


def _labels(values: Sequence[Any]) -> Labels:
    numbers = to_int64(values)
    if numbers is not None:
        return Labels.of(numbers)
    texts = [value if type(value) is str else str(value) for value in values]
    return Labels.from_fields(StringColumn.from_texts(texts))


def _too_deep(rows: Sequence[bytes]) -> list[int]:
    """Return numbers of the lines with more than MAX_DEPTH arrays and objects within each other."""
    deep = []
    for number, row in enumerate(rows):
        if row.count(b"{") + row.count(b"[") > MAX_DEPTH and _depth(row) > MAX_DEPTH:
            deep.append(number)
    return deep


def _depth(row: bytes) -> int:
    steps = _STEPS[np.frombuffer(_STRINGS.sub(b"", row), dtype=np.uint8)]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))


def element_lines(array: bytes) -> bytes:
    r"""Return the elements of a JSON array as lines, each ended by a newline.

    A line break between the tokens of an element becomes a blank. A line break inside a string, which JSON does not
    allow, becomes a NUL, which no line may have. A missing element becomes a blank line.

    >>> element_lines(b'[{"a": 1}, {"b":\n[2, "x,y"]}]')
    b'{"a": 1}\n{"b": [2, "x,y"]}\n'

    Raises:
        ValueError: if the text has no brackets around it, or its quotes or brackets do not balance.
    """
    array = array.strip(b" \t\r\n")
    if len(array) < 2 or not array.startswith(b"[") or not array.endswith(b"]"):
        raise ValueError("no array")
    place, end = 1, len(array) - 1
    depth = quoted = 0
    lines: list[bytes] = []
    while place < end:
        raw = array[place : min(place + _ARRAY_PIECE, end)]
        piece = raw.replace(b"\\\\", b"..").replace(b'\\"', b"..")
        if piece.endswith(b"\\") and len(piece) > 1:
            piece = piece[:-1]  # the next piece has the sign that it escapes
        signs = np.frombuffer(piece, dtype=np.uint8)
        quotes = np.flatnonzero(signs == ord('"'))
        marks = np.flatnonzero(np.frombuffer(piece.translate(_MARKS), dtype=np.bool_))
        kinds = signs[marks]
        in_text = (quotes.searchsorted(marks) + quoted) % 2 == 1
        depths = depth + np.cumsum(np.where(in_text, 0, _STEPS[kinds]))
        if depths.min(initial=0) < 0:
            raise ValueError("a closing bracket without an opening one")
        breaks = (kinds == ord("\n")) | (kinds == ord("\r"))
        edited = np.frombuffer(raw, dtype=np.uint8)[: len(piece)].copy()
        edited[marks[breaks]] = np.where(in_text[breaks], 0, ord(" "))
        edited[marks[(kinds == ord(",")) & ~in_text & (depths == 0)]] = ord("\n")
        lines.append(edited.tobytes().replace(b"\n ", b"\n"))
        place += len(piece)
        quoted = (quoted + len(quotes)) % 2
        depth = int(depths[-1]) if len(depths) else depth
    if depth or quoted:
        raise ValueError("an opening bracket or quote without a closing one")
    return b"".join((*lines, b"\n")) if any(map(bytes.strip, lines)) else b""
