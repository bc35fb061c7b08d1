"""The class × cell matrix of one slot, checked before any budget is spent. It never outlives its slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray, any_true
from wevent.errors import InvalidCounts


class Rejected(NamedTuple):
    """Events of a slot that did not count, each under one reason; private like the counts.

    Attributes:
        unknown_cell: events in undeclared cells, of any user.
        unknown_user: other events of ids that are not registered.
    """

    unknown_cell: int = 0
    unknown_user: int = 0

    @classmethod
    def of(cls, declared: BoolArray, counted: int) -> Rejected:
        """Return the reasons for a batch of events.

        Args:
            declared: for each event, `True` if its cell is declared.
            counted: number of events with a declared cell and a user who counts.
        """
        cells = int(np.count_nonzero(declared))
        return cls(len(declared) - cells, cells - counted)

    def plus(self, other: Rejected) -> Rejected:
        """Return the sums of both."""
        return Rejected(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


NONE_REJECTED = Rejected()


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Users per class and cell in one slot, as `Roster.count` makes them.

    Attributes:
        matrix: int64, one row per class of the population, one column per cell.
        reasons: numbers of events that did not count. Private: sum them over a run before anyone sees them.
    """

    matrix: IntArray
    reasons: Rejected = NONE_REJECTED

    @property
    def rejected(self) -> int:
        """Number of events that did not count."""
        return sum(self.reasons)

    def __repr__(self) -> str:
        return f"<Counts of {self.matrix.shape[0]} classes × {self.matrix.shape[1]} cells>"  # never a value


def checked_matrix(counts: Any, sizes: IntArray, cells: int, cells_per_user: int) -> IntArray:
    """Return the counts as an int64 matrix (classes, cells) that is possible for these class sizes.

    Raises:
        InvalidCounts: naming shape, type, class and cell, never a value; nothing has been spent.
    """
    try:
        matrix = np.asarray(counts.matrix if isinstance(counts, Counts) else counts)
    except (ValueError, TypeError):  # ragged: numpy's own message is not repeated, it may show entries
        raise _invalid("rows of different lengths", "Give a full matrix.", np.empty(0)) from None
    if matrix.shape != (len(sizes), cells):
        wanted = f"shape {matrix.shape} instead of ({len(sizes)}, {cells})"
        raise _invalid(wanted, "Row order is population.classes, column order the cells.", matrix)
    if matrix.dtype != np.int64:
        matrix = _as_integers(matrix)
    outside = matrix.view(np.uint64) > sizes.view(np.uint64)[:, None]  # read as unsigned, a negative entry is huge
    full = np.add.reduce(matrix, axis=1) > (sizes if cells_per_user == 1 else sizes * cells_per_user)
    if any_true(outside):
        fix = "Count each registered user once per cell; the class sizes come from the registry."
        raise _invalid("a negative entry, or one above the class size", fix, matrix, outside)
    if any_true(full):
        fix = "Keep a user's last event of the slot only (the last k with max_cells_per_user=k)."
        raise _invalid("a row with more records than its users may have", fix, matrix, full)
    return matrix


def _as_integers(matrix: npt.NDArray[Any]) -> IntArray:
    if matrix.dtype.kind == "f":
        whole = np.isfinite(matrix) & (matrix == np.floor(matrix)) & (np.abs(matrix) < 2.0**53)
        if not whole.all():
            raise _invalid("a fractional or non-finite entry", "Counts are whole numbers of users.", matrix, ~whole)
    elif matrix.dtype.kind not in "iu" or (matrix.dtype.kind == "u" and matrix.size and matrix.max() > 2**62):
        raise _invalid(f"type {matrix.dtype}", "Give an array of whole numbers.", matrix)
    return matrix.astype(np.int64)


def _invalid(what: str, fix: str, matrix: npt.NDArray[Any], bad: BoolArray | None = None) -> InvalidCounts:
    """Return the error for counts, whose first `bad` row or entry is named."""
    row, cell = (None, None) if bad is None else (*np.argwhere(bad)[0].tolist(), None)[:2]
    place = "" if row is None else f" (class {row})" if cell is None else f" (class {row}, cell {cell})"
    facts = {"shape": matrix.shape, "dtype": str(matrix.dtype), "class_index": row, "cell_index": cell}
    return InvalidCounts(f"The counts have {what}{place}.", fix, **facts)
