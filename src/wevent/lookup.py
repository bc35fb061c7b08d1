"""From labels to row numbers, whatever the labels are: a table for small integers, a sorted search for the rest."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray

_NOBODY = -(2**62)
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,17}")
_SPARSE = 8  # a table may have this many places per label


class Lookup:
    """Finds the position of labels in a column of labels.

    Args:
        labels: one-dimensional; integers, strings or mixed objects.

    Attributes:
        duplicates: how many labels occur again.
    """

    def __init__(self, labels: npt.NDArray[Any]) -> None:
        self._text = labels.dtype.kind not in "iub" or bool(labels.dtype.kind == "u" and _beyond_int64(labels))
        keys = _as_text(labels) if self._text else labels.astype(np.int64)
        self._table: IntArray | None = None
        if not self._text and len(keys) and keys.min() >= 0 and keys.max() < _SPARSE * len(keys) + 1024:
            self._table = np.full(int(keys.max()) + 2, -1, dtype=np.int64)
            self._table[keys] = np.arange(len(keys))
            self.duplicates = len(keys) - int(np.count_nonzero(self._table >= 0))
            return
        self._order = keys.argsort(kind="stable")
        self._sorted = keys[self._order]
        self.duplicates = int(np.count_nonzero(self._sorted[1:] == self._sorted[:-1]))

    def find(self, labels: npt.NDArray[Any]) -> IntArray:
        """The position of each label, -1 if it is not there."""
        if not len(labels):
            return np.empty(0, dtype=np.int64)
        if self._table is None and not len(self._sorted):  # nobody is registered yet
            return np.full(len(labels), -1, dtype=np.int64)
        if self._text:
            keys: npt.NDArray[Any] = _as_text(labels)
        else:
            converted = _as_integers(labels)
            if converted is None:
                return np.full(len(labels), -1, dtype=np.int64)
            keys = converted
        if self._table is not None:
            out = len(self._table) - 1  # the last place is always -1
            if not all_below(keys, out):
                keys = np.where((keys >= 0) & (keys < out), keys, out)
            return self._table.take(keys)
        place = np.minimum(self._sorted.searchsorted(keys), len(self._sorted) - 1)
        found: IntArray = np.where(self._sorted[place] == keys, self._order[place], -1)
        return found


def all_below(numbers: IntArray, bound: int) -> bool:
    """Whether all lie in [0, bound), in one pass: seen as unsigned, a negative number is huge."""
    return not len(numbers) or int(numbers.view(np.uint64).max()) < bound


def _number(label: Any) -> int:
    if isinstance(label, str):
        return int(label) if _CANONICAL.fullmatch(label) else _NOBODY
    return label if isinstance(label, int) else _NOBODY


def _beyond_int64(labels: npt.NDArray[Any]) -> bool:
    return len(labels) > 0 and int(labels.max()) >= 2**63


def _as_text(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return labels if labels.dtype.kind == "U" else np.array([str(label) for label in labels.tolist()])


def _as_integers(labels: npt.NDArray[Any]) -> IntArray | None:
    """Integer labels as int64; text counts as the number it is written like, and whole floats (a column with gaps is float).

    Anything else is nobody's number. So whether ids are kept as text or numbers never decides who is found.
    """
    if labels.dtype.kind == "u" and _beyond_int64(labels):
        return np.where(labels < 2**63, labels, 0).astype(np.int64) - np.where(labels < 2**63, 0, 2**62)
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64, copy=False)
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels) & (labels == np.floor(labels)) & (np.abs(labels) < 2.0**53)
        return np.where(whole, labels, -(2.0**62)).astype(np.int64)
    try:
        return np.array([_number(label) for label in labels.tolist()], dtype=np.int64)
    except OverflowError:
        return None
