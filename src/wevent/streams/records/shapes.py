"""Lines of one shape, many at once: objects whose keys, punctuation and kinds of values agree with a sample.

A shape is learnt from one line and then looked for in all of them. Whether a line has it depends on that line alone: its
keys and punctuation are compared byte by byte, its strings have no escapes or control characters, its numbers are
whole and of at most 18 digits. Whatever has no such shape is left to the decoder that knows all of JSON.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wevent.core.arrays import IntArray
from wevent.counting.spelling import Bytes, words_of
from wevent.streams.records.fields import Fields, Mask, Numbers

_MOST = 32  # fields of an object that has a shape
_TEXT, _NUMBER = rb'"[^"\\\x00-\x1f]*"', rb"-?(?:0|[1-9][0-9]{0,17})"
_FIELD = re.compile(rb'"([^"\\\x00-\x1f]*)" ?: ?(?:(' + _TEXT + rb")|" + _NUMBER + rb")")
_DIGITS = frozenset(b"-0123456789")
_BETWEEN = re.compile(rb" ?, ?")


class Shape(NamedTuple):
    """What lines have in common.

    Attributes:
        literals: the bytes before, between and behind the values; quotes of strings belong to them.
        texts: for each value whether it is a string, else it is a whole number.
        places: which values are the time, the user and the cell.
    """

    literals: tuple[bytes, ...]
    texts: tuple[bool, ...]
    places: tuple[int, int, int]


class ShapeMarks(NamedTuple):
    """Some lines and what stands where in them.

    Attributes:
        lines: the bytes.
        data: the same, padded.
        starts, ends: of each line, without the line end.
        plain: which lines have neither escapes nor control characters.
        quotes: where all the quotes are.
        first: for each line the number of its first quote.
        counts: for each line how many quotes it has.
    """

    lines: bytes
    data: Bytes
    starts: IntArray
    ends: IntArray
    plain: Mask
    quotes: IntArray
    first: IntArray
    counts: IntArray


class Shaped(NamedTuple):
    """The fields of the lines that have a shape.

    Attributes:
        rows: which lines.
        times, users, cells: their values.
    """

    rows: IntArray
    times: Fields
    users: Fields | Numbers
    cells: Fields | Numbers


def learn(line: bytes, columns: Mapping[str, str]) -> Shape | None:
    """The shape of a line without its end; None if it has none, or lacks a column."""
    if not line.startswith(b"{") or not line.endswith(b"}"):
        return None
    place, literal = 1, b"{"
    literals: list[bytes] = []
    texts: list[bool] = []
    names: list[bytes] = []
    while len(names) < _MOST and (field := _FIELD.match(line, place)) is not None:
        is_text = field[2] is not None
        value = field.start(2) + 1 if is_text else _number_start(line, field.end())
        literals.append(literal + line[place:value])
        texts.append(is_text)
        names.append(field[1])
        literal = b'"' if is_text else b""
        if field.end() == len(line) - 1:
            break
        between = _BETWEEN.match(line, field.end())
        if between is None:
            return None
        literal += between[0]
        place = between.end()
    else:
        return None
    wanted = [columns[name].encode() for name in ("time", "user", "cell")]
    if len(set(names)) < len(names) or not set(wanted) <= set(names):
        return None
    time, user, cell = (names.index(name) for name in wanted)
    return Shape((*literals, literal + b"}"), tuple(texts), (time, user, cell))


def mark(lines: bytes, ends: IntArray, data: Bytes) -> ShapeMarks:
    """What has to be known of lines before shapes are looked for.

    Args:
        lines: whole lines.
        ends: where their newlines are.
        data: the lines, padded.
    """
    starts = np.concatenate((ends[:1] * 0, ends[:-1] + 1))
    inner = data[: len(lines)]
    stops = ends - ((ends > starts) & (data[ends - 1] == ord("\r")))
    plain = np.ones(len(ends), dtype=np.bool_)
    control = inner < 0x20
    if np.count_nonzero(control) > len(ends):
        special = np.flatnonzero(control)
        rows = ends.searchsorted(special)
        plain[rows[special < stops[rows]]] = False
    if b"\\" in lines:
        plain[ends.searchsorted(np.flatnonzero(inner == ord("\\")))] = False
    quotes = np.flatnonzero(inner == ord('"'))
    upto = quotes.searchsorted(ends)
    first = np.concatenate((upto[:1] * 0, upto[:-1]))
    return ShapeMarks(lines, data, starts, stops, plain, quotes, first, upto - first)


def match(shape: Shape, marks: ShapeMarks, among: IntArray) -> Shaped:
    """The lines among these that have a shape, and their fields."""
    wanted = sum(literal.count(b'"') for literal in shape.literals)
    rows = among[marks.plain[among] & (marks.counts[among] == wanted)]
    place, quotes = marks.starts[rows], 0
    bounds: list[tuple[IntArray, IntArray]] = []
    numbers: dict[int, IntArray] = {}
    for value, (literal, following) in enumerate(itertools.pairwise(shape.literals)):
        fits = _has(marks.data, place, literal)
        quotes += literal.count(b'"')
        start, end = place + len(literal), _end(marks, rows, quotes, following)
        if not shape.texts[value]:
            numbers[value], valid = Fields(marks.lines, start, end).whole_numbers()
            fits &= valid
        bounds.append((start, end))
        place = end
        if not fits.all():
            rows, place = rows[fits], place[fits]
            bounds = [(start[fits], other[fits]) for start, other in bounds]
            numbers = {place: column[fits] for place, column in numbers.items()}
    last = shape.literals[-1]
    whole = _has(marks.data, place, last) & (place + len(last) == marks.ends[rows])

    def fields(value: int) -> Fields:
        return Fields(marks.lines, bounds[value][0][whole], bounds[value][1][whole])

    def labels(value: int) -> Fields | Numbers:
        return Numbers(numbers[value][whole]) if value in numbers else fields(value)

    time, user, cell = shape.places
    return Shaped(rows[whole], fields(time), labels(user), labels(cell))


def _end(marks: ShapeMarks, rows: IntArray, quotes: int, following: bytes) -> IntArray:
    """Where a value ends that so many quotes stand before: with the next quote, or the line."""
    ahead = following.find(b'"')
    if ahead < 0:
        return marks.ends[rows] - len(following)
    return marks.quotes[marks.first[rows] + quotes] - ahead


def _has(data: Bytes, places: IntArray, literal: bytes) -> Mask:
    """Whether these bytes stand at each place; there is no zero in them, so none reaches beyond the end."""
    words = words_of(data)
    same = np.ones(len(places), dtype=np.bool_)
    for start in range(0, len(literal), 8):
        part = literal[start : start + 8]
        found = words[np.minimum(places + start, len(words) - 1)]
        if len(part) < 8:
            found &= np.uint64((1 << 8 * len(part)) - 1)
        same &= found == np.uint64(int.from_bytes(part, "little"))
    return same


def _number_start(line: bytes, end: int) -> int:
    """Where the number that ends there begins."""
    start = end
    while line[start - 1] in _DIGITS:
        start -= 1
    return start
