"""NDJSON: one object per line, decoded line by line; live lines and files alike."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from wevent.counting.cells import Cells
from wevent.streams.records.decoding import Columns, Decoded, assemble
from wevent.streams.records.fields import Numbers, Texts
from wevent.streams.records.splitting import BYTE_ORDER_MARK, line_ends, spoiled_lines
from wevent.streams.records.times import SlotReader, TimeReader

MAX_DEPTH = 64  # of arrays and objects within each other in one line

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


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
        self._cells = cells
        self._times = times

    def decode(self, lines: bytes) -> Decoded:
        """The events of whole lines, each with its end."""
        if BYTE_ORDER_MARK in lines:  # some editors put one before text, and files are joined
            lines = b"\n".join([row.removeprefix(BYTE_ORDER_MARK) for row in lines.split(b"\n")])
        rows = lines.split(b"\n")
        rows.pop()
        for spoiled in (*spoiled_lines(lines, line_ends(lines)).tolist(), *_too_deep(lines, rows)):
            rows[spoiled] = b"\0"
        events: list[Any] = []
        strange: list[int] = []
        left = iter(rows)
        while True:
            try:
                events.extend(map(self._decode, left))  # keeps what it got when a line fails
                break
            except _MALFORMED:
                strange.append(len(events) + len(strange))
        return assemble(self._columns(events, rows, strange), self._cells)

    def close(self, line: bytes) -> int | None:
        """The time of a close line, None if it is none; a line that is spoiled closes nothing."""
        if len(spoiled_lines(line, line_ends(line))):
            return None
        try:
            return self._times.one(self._decode_close(line).close)
        except _MALFORMED:
            return None

    def _columns(self, events: Sequence[Any], rows: Sequence[bytes], strange: Sequence[int]) -> Columns:
        kept = np.arange(len(rows))
        if strange:
            kept = np.delete(kept, strange)
        times = self._times.values([event.time for event in events])
        users, cells = _labels([event.user for event in events]), _labels([event.cell for event in events])
        malformed = [row for row in strange if rows[row].strip()]
        return Columns(kept, times, users, cells, np.array(malformed, dtype=np.int64))


def _labels(values: Sequence[Any]) -> Numbers | Texts:
    try:
        return Numbers(np.frombuffer(array("q", values), dtype=np.int64) if values else np.empty(0, dtype=np.int64))
    except (TypeError, OverflowError):  # text among them, or numbers of more than 64 bits
        return Texts([value if type(value) is str else str(value) for value in values])


def _too_deep(lines: bytes, rows: Sequence[bytes]) -> list[int]:
    """Numbers of the lines with more than MAX_DEPTH arrays and objects within each other."""
    if lines.count(b"{") + lines.count(b"[") <= MAX_DEPTH:
        return []
    characters = np.frombuffer(lines, dtype=np.uint8)
    opening = np.flatnonzero((characters == ord("{")) | (characters == ord("[")))
    brackets = np.bincount(line_ends(lines).searchsorted(opening), minlength=len(rows))
    return [row for row in np.flatnonzero(brackets > MAX_DEPTH).tolist() if _depth(rows[row]) > MAX_DEPTH]


def _depth(row: bytes) -> int:
    depth = deepest = 0
    for token in _BRACKETS.finditer(row):
        first = row[token.start()]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest
