"""Labels (ids of users, names of cells) as columns, and from labels to row numbers.

Labels are compared as text: 7 and "7" are one label, "007" is another. What a label is found as depends on that label
alone, never on the others in its column: one odd id among a million must not change how the rest are read.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.counting.spelling import Spelled, SpelledIndex, whole_numbers

NOBODY = -(2**62)  # the key of what is no label at all: None, NaN, text with a NUL in it
TEXTS = 2**62  # keys from here on stand for texts
_WHOLE = 10**18  # whole numbers of more digits are kept as text
_NO_TEXTS = Spelled.of(())
_SPARSE = 8  # a table may have this many places per label
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,17}")
_CANONICAL_LINE = re.compile(rf"^(?:{_CANONICAL.pattern})$", re.MULTILINE)


class Labels:
    """A column of labels: whole numbers as themselves, any other text as a place among texts, one int64 each.

    Args:
        keys: a number below 10¹⁸ as itself, NOBODY, or 2⁶² + the place in `texts`.
        texts: the texts, repeated or not.
    """

    __slots__ = ("keys", "texts")

    def __init__(self, keys: IntArray, texts: Spelled = _NO_TEXTS) -> None:
        self.keys = keys
        self.texts = texts

    @classmethod
    def of(cls, column: Any) -> Labels:
        """Labels from a list, an array, a frame's column or texts without NULs; whole floats count as whole numbers."""
        if isinstance(column, Labels):
            return column
        if isinstance(column, Spelled):
            numbers, whole = whole_numbers(column.data, column.starts, column.starts + column.sizes)
            return cls.placed(numbers, whole, column if not whole.any() else column.where(~whole))
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
        """Labels from Python values, one by one."""
        try:
            keys = np.frombuffer(array("q", values), dtype=np.int64) if values else np.empty(0, dtype=np.int64)
        except (TypeError, OverflowError):  # not all of them whole numbers
            pass
        else:
            if not _beyond(keys):
                return cls(keys)
        if all_plain_text(values):
            return cls(np.arange(TEXTS, TEXTS + len(values)), Spelled.of(values))
        texts: list[str] = []
        each = (_key(value, texts) for value in values)
        keys = np.fromiter(each, dtype=np.int64, count=len(values))
        return cls(keys, Spelled.of(texts))

    @classmethod
    def placed(cls, numbers: IntArray, whole: npt.NDArray[np.bool_], texts: Spelled) -> Labels:
        """Whole numbers where `whole` says so, the texts in between in their order; none of them has a NUL."""
        keys = numbers.copy()
        keys[~whole] = np.arange(TEXTS, TEXTS + len(texts))
        return cls(keys, texts)

    @classmethod
    def joined(cls, columns: Sequence[Labels]) -> Labels:
        """One column after the other, with the texts that occur in them and no others."""
        keys: list[IntArray] = []
        texts: list[Spelled] = []
        number = 0
        for column in columns:
            where, used = column.spelled()
            keys.append(column.keys)
            if len(where):
                keys[-1] = column.keys.copy()
                keys[-1][where] = np.arange(TEXTS + number, TEXTS + number + len(used))
                texts.append(used)
                number += len(used)
        return cls(np.concatenate(keys), Spelled.joined(texts) if texts else _NO_TEXTS)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: Any) -> Labels:
        return Labels(self.keys[rows], self.texts)

    def spelled(self) -> tuple[IntArray, Spelled]:
        """Where labels are texts, and which."""
        if not len(self.texts):
            return np.empty(0, dtype=np.int64), _NO_TEXTS
        where = np.flatnonzero(self.keys >= TEXTS)
        return where, self.texts.where(self.keys[where] - TEXTS)

    def codes(self) -> IntArray:
        """A number for each: equal labels, equal numbers."""
        where, used = self.spelled()
        if not len(where):
            return self.keys
        codes = self.keys.copy()
        codes[where] = TEXTS + SpelledIndex(used).find(used)
        return codes

    def values(self) -> list[int | str | None]:
        """As Python values: numbers, texts, None for nobody."""
        where, used = self.spelled()
        found: list[int | str | None] = [None if key == NOBODY else key for key in self.keys.tolist()]
        for place, text in zip(where.tolist(), used.texts(), strict=True):
            found[place] = text
        return found


class Lookup:
    """Finds the position of labels in a column of labels.

    Args:
        labels: integers, strings or mixed.

    Attributes:
        duplicates: how many labels occur again.
    """

    def __init__(self, labels: Any) -> None:
        column = Labels.of(labels)
        self._numbers = _Numbers(column.keys)
        self._places, used = column.spelled()  # where the texts are
        self._texts = SpelledIndex(used)
        self.duplicates = self._numbers.duplicates + self._texts.duplicates

    def find(self, labels: Any) -> IntArray:
        """The position of each label, -1 if it is not there."""
        column = Labels.of(labels)
        where, used = column.spelled()
        if not len(where):
            return self._numbers.find(column.keys)
        found = self._texts.find(used)
        if len(self._places):
            found = np.where(found >= 0, self._places[found], -1)
        if len(where) == len(column):
            return found
        rows = self._numbers.find(np.where(column.keys >= TEXTS, NOBODY, column.keys))
        rows[where] = found
        return rows


class _Numbers:
    """Positions of whole numbers: a table if they are small, a sorted search otherwise."""

    def __init__(self, keys: IntArray) -> None:
        rows = np.flatnonzero((keys != NOBODY) & (keys < TEXTS))
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


def all_below(numbers: IntArray, bound: int) -> bool:
    """Whether all lie in [0, bound), in one pass: seen as unsigned, a negative number is huge."""
    return not len(numbers) or int(numbers.view(np.uint64).max()) < bound


def _beyond(numbers: npt.NDArray[Any]) -> bool:
    return len(numbers) > 0 and bool(int(numbers.max()) >= _WHOLE or int(numbers.min()) <= -_WHOLE)


def all_plain_text(values: Sequence[Any]) -> bool:
    """Whether all are texts that stand for themselves: none a whole number, none with a NUL."""
    try:
        joined = "\n".join(values)
    except TypeError:
        return False
    return "\0" not in joined and not _CANONICAL_LINE.search(joined)


def _key(value: Any, texts: list[str]) -> int:
    """The key of one value; a text goes to the end of `texts`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        value = int(value)
    if isinstance(value, int):
        if -_WHOLE < value < _WHOLE:
            return int(value)
    elif value is None or value != value:
        return NOBODY
    text = str(value)
    if _CANONICAL.fullmatch(text):
        return int(text)
    if "\0" in text:
        return NOBODY
    texts.append(text)
    return TEXTS + len(texts) - 1
