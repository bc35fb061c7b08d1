"""Columns of labels (ids of users, names of cells), an index from labels to row numbers, and the declared cells,
which are never discovered from events (spec 1).

Labels are compared as text: 7 and "7" are one label, "007" is another. How a label is read depends on that label alone,
never on other labels of its column.
"""

from __future__ import annotations

import operator
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.string_column import StringColumn, StringIndex
from wevent.errors import InvalidCells

NO_LABEL = -(2**62)
"""The key of a value that is no label: None, NaN, text with a NUL."""
TEXTS = 2**62
"""Keys from here on stand for texts."""
_WHOLE = 10**18  # whole numbers of more digits are kept as text
_NO_TEXTS = StringColumn.from_texts(())
_SPARSE = 8  # a table may have this many places per label
_MAX_CELLS = 10_000_000
_LABEL = re.compile(r'\s*(?:"((?:[^"]|"")*)"|(?!")([^,]*?))\s*(?:,|$)')


class Labels:
    """A column of labels, one int64 each.

    Args:
        keys: a whole number below 10¹⁸ as itself, NO_LABEL, or TEXTS + the place in `texts`.
        texts: the texts, repeated or not.
    """

    __slots__ = ("keys", "texts")

    def __init__(self, keys: IntArray, texts: StringColumn = _NO_TEXTS) -> None:
        self.keys = keys
        self.texts = texts

    @classmethod
    def of(cls, column: Any) -> Labels:
        """Return labels from a list, an array, a frame's column or texts without NULs; 7.0 counts as 7."""
        if isinstance(column, Labels):
            return column
        if isinstance(column, StringColumn):
            return cls.from_texts(column)
        if isinstance(column, (list, tuple)):
            return cls.of_values(column)
        values = np.ascontiguousarray(column)
        if values.dtype.kind in "bi" or (values.dtype.kind == "u" and not _beyond(values)):
            keys = values.astype(np.int64, copy=False)
            return cls(keys) if not _beyond(keys) else cls.of_values(keys.tolist())
        if values.dtype.kind == "f":
            whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2.0**53)
            if whole.all():
                return cls(values.astype(np.int64))
        return cls.of_values(values.tolist())

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> Labels:
        """Return labels from Python values."""
        keys = to_int64(values)
        if keys is not None and not _beyond(keys):
            return cls(keys)
        try:
            return cls.from_texts(StringColumn.from_texts(values))
        except TypeError:  # not all are texts
            texts = [_text(value) for value in values]
        labels = cls.from_texts(StringColumn.from_texts([text or "" for text in texts]))
        is_missing = np.array([text is None for text in texts])
        return cls(np.where(is_missing, NO_LABEL, labels.keys), labels.texts)

    @classmethod
    def from_texts(cls, column: StringColumn) -> Labels:
        """Return labels from texts; a text with a NUL is none."""
        numbers, is_number = column.whole_numbers()
        if is_number.all():
            return cls(numbers)
        texts = (column.where(~is_number) if is_number.any() else column).compact()
        numbers[~is_number] = np.arange(TEXTS, TEXTS + len(texts))
        nuls = np.flatnonzero(column.data[:-8] == 0)
        if len(nuls):
            numbers[nuls.searchsorted(column.starts) != nuls.searchsorted(column.starts + column.sizes)] = NO_LABEL
        return cls(numbers, texts)

    @classmethod
    def from_fields(cls, column: StringColumn) -> Labels:
        """Return labels from fields of records; an empty field, a long one, or one with a NUL is none."""
        sized = (column.sizes > 0) & (column.sizes <= MAX_LABEL_BYTES)
        labels = cls.from_texts(column)
        return labels if sized.all() else cls(np.where(sized, labels.keys, NO_LABEL), labels.texts)

    @classmethod
    def joined(cls, columns: Sequence[Labels]) -> Labels:
        """Return one column after the other, without texts that no label has."""
        keys: list[IntArray] = []
        texts: list[StringColumn] = []
        number = 0
        for column in columns:
            where, used = column.spelled()
            keys.append(column.keys)
            if len(where):
                keys[-1] = column.keys.copy()
                keys[-1][where] = np.arange(TEXTS + number, TEXTS + number + len(used))
                texts.append(used)
                number += len(used)
        return cls(np.concatenate(keys), StringColumn.joined(texts) if texts else _NO_TEXTS)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: Any) -> Labels:
        return Labels(self.keys[rows], self.texts)

    def is_label(self) -> BoolArray:
        """Return which are labels."""
        found: BoolArray = self.keys != NO_LABEL
        return found

    def compact(self) -> Labels:
        """Return the same labels without other bytes of the buffer that their texts are in."""
        return Labels(self.keys, self.texts.compact())

    def spelled(self) -> tuple[IntArray, StringColumn]:
        """Return the places of the labels that are texts, and these texts."""
        if not len(self.texts):
            return np.empty(0, dtype=np.int64), _NO_TEXTS
        where = np.flatnonzero(self.keys >= TEXTS)
        return where, self.texts.where(self.keys[where] - TEXTS)

    def codes(self) -> IntArray:
        """Return a number for each label; equal labels have equal numbers."""
        where, used = self.spelled()
        if not len(where):
            return self.keys
        codes = self.keys.copy()
        codes[where] = TEXTS + StringIndex(used).find(used)
        return codes

    def values(self) -> list[int | str | None]:
        """Return the labels as Python values; None for a value that is no label."""
        where, used = self.spelled()
        found: list[int | str | None] = [None if key == NO_LABEL else key for key in self.keys.tolist()]
        for place, text in zip(where.tolist(), used.texts(), strict=True):
            found[place] = text
        return found


class LabelIndex:
    """Index of a column of labels.

    Args:
        labels: integers, strings or mixed.

    Attributes:
        duplicates: number of labels that occur again.
    """

    def __init__(self, labels: Any) -> None:
        column = Labels.of(labels)
        self._numbers = _Numbers(column.keys)
        self._places, used = column.spelled()
        self._texts = StringIndex(used)
        self.duplicates = self._numbers.duplicates + self._texts.duplicates

    def find(self, labels: Any) -> IntArray:
        """Return the position of each label, -1 if it is missing."""
        column = Labels.of(labels)
        where, used = column.spelled()
        if not len(where):
            return self._numbers.find(column.keys)
        found = self._texts.find(used)
        if len(self._places):
            found = np.where(found >= 0, self._places[found], -1)
        if len(where) == len(column):
            return found
        rows = self._numbers.find(np.where(column.keys >= TEXTS, NO_LABEL, column.keys))
        rows[where] = found
        return rows


class _Numbers:
    """Positions of whole numbers: a table of small ones, a sorted search otherwise."""

    def __init__(self, keys: IntArray) -> None:
        rows = np.flatnonzero((keys != NO_LABEL) & (keys < TEXTS))
        numbers = keys if len(rows) == len(keys) else keys[rows]
        self._table: IntArray | None = None
        if len(numbers) and numbers.min() >= 0 and numbers.max() < _SPARSE * len(numbers) + 1024:
            self._table = np.full(int(numbers.max()) + 2, -1, dtype=np.int64)
            self._table[numbers] = rows
            self.duplicates = len(numbers) - int(np.count_nonzero(self._table >= 0))
            return
        order = numbers.argsort(kind="stable")
        self._sorted, self._rows = numbers[order], rows[order]
        self.duplicates = int(np.count_nonzero(self._sorted[1:] == self._sorted[:-1]))

    def find(self, keys: IntArray) -> IntArray:
        if self._table is not None:
            out = len(self._table) - 1  # the last place is always -1
            if not all_below(keys, out):
                keys = np.where((keys >= 0) & (keys < out), keys, out)
            return self._table.take(keys)
        if not len(self._sorted):
            return np.full(len(keys), -1, dtype=np.int64)
        place = np.minimum(self._sorted.searchsorted(keys), len(self._sorted) - 1)
        found: IntArray = np.where(self._sorted[place] == keys, self._rows[place], -1)
        return found


def split_labels(text: str) -> list[str]:
    """Return the labels of one line: `a,b,c`; a label with a comma is in double quotes, empty ones are left out.

    >>> split_labels('north, "old town, west",south')
    ['north', 'old town, west', 'south']
    """
    labels, place = [], 0
    while place < len(text):
        found = _LABEL.match(text, place)
        if found is None:
            fix = "Separate labels by commas, and write a label with a comma in double quotes."
            raise InvalidCells(f"The labels {text!r} have a quote that does not end.", fix, cells=text)
        quoted, plain = found.groups()
        labels += [quoted.replace('""', '"')] if quoted is not None else [plain] if plain else []
        place = found.end()
    return labels


class Cells(Sequence[Any]):
    """The cells of a stream, in column order.

    >>> list(Cells.of(["north", "south"]))
    ['north', 'south']
    >>> Cells.of(3)
    Cells(3)
    """

    __slots__ = ("_labels", "_lookup", "numbered")

    def __init__(self, labels: Sequence[Any], *, numbered: bool) -> None:
        self.numbered = numbered
        self._labels = labels
        self._lookup: LabelIndex | None = None

    @classmethod
    def of(cls, cells: int | Sequence[Any] | npt.NDArray[Any] | Cells) -> Cells:
        """Return the cells of a number or a list of labels.

        Raises:
            InvalidCells: if there are none, or a label occurs twice.
        """
        if isinstance(cells, Cells):
            return cells
        try:
            number = operator.index(cells)  # type: ignore[arg-type]
        except TypeError:
            return cls(_to_labels(cells), numbered=False)
        if number < 1 or isinstance(cells, bool):
            raise _invalid(f"{cells!r}", cells=number)
        if number > _MAX_CELLS:
            fix = f"Declare at most {_MAX_CELLS:,}: every release has a value for every cell."
            raise InvalidCells(f"{number:,} cells are too many.", fix, cells=number)
        return cls(range(number), numbered=True)

    def find(self, labels: Labels | npt.NDArray[Any] | Sequence[Any]) -> IntArray:
        """Return the column of each label, -1 for an undeclared one."""
        column = Labels.of(labels)
        if self.numbered and all_below(column.keys, len(self)):
            return column.keys
        if self._lookup is None:
            self._lookup = LabelIndex(np.arange(len(self)) if self.numbered else list(self._labels))
        return self._lookup.find(column)

    def declaration(self) -> int | list[Any]:
        """Return the number of cells, or the labels."""
        return len(self) if self.numbered else list(self._labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cells.of, (self.declaration(),)  # without the index, whose hashes hold for one process

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: Any) -> Any:
        return self._labels[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._labels)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Cells):
            return self.numbered == other.numbered and list(self) == list(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.numbered, tuple(self)))

    def __repr__(self) -> str:
        return f"Cells({self.declaration()!r})"


def _to_labels(cells: Any) -> tuple[Any, ...]:
    try:
        labels = list(cells) if isinstance(cells, (list, tuple)) else np.asarray(cells).tolist()
    except (TypeError, ValueError):
        labels = None
    if not isinstance(labels, list) or not labels:
        raise _invalid("none" if labels == [] else f"{type(cells).__name__}")
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    seen: set[str] = set()
    for label in labels:
        if not isinstance(label, (str, int, float)) or label != label:  # a state gives these back unchanged
            raise _invalid(f"a label of type {type(label).__name__}")
        if str(label) in seen:
            raise InvalidCells(f"Cell {label!r} is declared twice.", "Remove the repeated label.", duplicate=label)
        seen.add(str(label))
    return tuple(labels)


def _invalid(received: str, **facts: Any) -> InvalidCells:
    fix = "Declare the whole domain: a number as cells=100, or labels that are text or numbers as cells=['north', 'south']."
    return InvalidCells(f"The cells are {received}.", fix, **facts)


def all_below(numbers: IntArray, bound: int) -> bool:
    """Return whether all lie in [0, bound), in one pass: a negative number is huge if read as unsigned."""
    return not len(numbers) or int(numbers.view(np.uint64).max()) < bound


def to_int64(values: Sequence[Any]) -> IntArray | None:
    """Return whole numbers as an array; None if another value is among them, or a number of more than 64 bits."""
    try:
        return np.array(array("q", values), dtype=np.int64)
    except (TypeError, OverflowError):
        return None


def _beyond(numbers: npt.NDArray[Any]) -> bool:
    return len(numbers) > 0 and bool(int(numbers.max()) >= _WHOLE or int(numbers.min()) <= -_WHOLE)


def _text(value: Any) -> str | None:
    """Return the text of one value; None for None and NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53):
        value = int(value)
    return None if value is None or value != value else str(value)
