"""Bytes into physical lines: a record is one line, whatever is in it.

A line ends with a newline; a carriage return right before it belongs to the line end. Nothing else ends a line, and
nothing inside a line continues it on the next: what stands in one person's record cannot reach another's.
"""

from __future__ import annotations

import numpy as np

from wevent.core.arrays import IntArray

MAX_LINE_BYTES = 1 << 20
PIECE_BYTES = MAX_LINE_BYTES  # so that only the first line of a piece can be too long
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # what some editors put before UTF-8 text
OVERLONG = b"\0\n"  # stands for a line that is too long: malformed like any other line with a NUL in it


class LineSplitter:
    """Hands on whole lines; keeps at most one line's bytes, drops a longer one while it arrives."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._kept = 0
        self._dropping = False

    def feed(self, piece: bytes) -> bytes:
        """The lines that are complete with this piece, each with its end; a piece has at most `PIECE_BYTES`."""
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
        """The last line, if the input ended without its newline."""
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
    """Where the newlines are."""
    return np.flatnonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n"))


def spoiled_lines(lines: bytes, ends: IntArray) -> IntArray:
    """Numbers of lines that are too long, or with a NUL, a carriage return before the line end, or bytes not in UTF-8."""
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
        starts = np.concatenate(([0], ends[:-1] + 1))
        bad = [row for row in suspects.tolist() if not _is_text(lines[starts[row] : ends[row]])]
        spoiled.append(np.array(bad, dtype=np.int64))
    return np.unique(np.concatenate(spoiled)) if spoiled else np.empty(0, dtype=np.int64)


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True
