"""One slot's truth: the class × cell matrix, checked before anything is spent. It never outlives its slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray, any_true
from wevent.errors import InvalidCounts


class Rejected(NamedTuple):
    """Why events of a slot did not count, each under one reason; private like the counts.

    Attributes:
        unknown_cell: their cell is not declared, whoever they are of.
        unknown_user: nobody is registered under their id.
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
        """These and others."""
        return Rejected(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


NONE_REJECTED = Rejected()


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Users per class and cell in one slot, as `Roster.count` makes them.

    Attributes:
        matrix: int64, one row per class of the population, one column per cell.
        reasons: how many events did not count, and why. Private: sum it over a run before anyone sees it.
    """

    matrix: IntArray
    reasons: Rejected = NONE_REJECTED

    @property
    def rejected(self) -> int:
        """How many events did not count."""
        return sum(self.reasons)

    def __repr__(self) -> str:
        return f"<Counts of {self.matrix.shape[0]} classes × {self.matrix.shape[1]} cells>"  # never a value


def checked_matrix(counts: Any, sizes: IntArray, cells: int, cells_per_user: int) -> IntArray:
    """The counts as an int64 matrix (classes, cells) that can be true for these class sizes.

    Raises:
        InvalidCounts: naming shape, type, class and cell, never a value; nothing has been spent.
    """
    matrix = _as_array(counts.matrix if isinstance(counts, Counts) else counts, sizes, cells)
    if matrix.shape != (len(sizes), cells):
        raise _invalid(
            f"shape {matrix.shape}",
            matrix,
            "Row order is population.classes, column order the cells.",
            sizes,
            cells,
        )
    if matrix.dtype != np.int64:
        matrix = _as_integers(matrix, sizes, cells)
    outside = matrix.view(np.uint64) > sizes.view(np.uint64)[:, None]  # seen as unsigned, a negative entry is huge
    rows = np.add.reduce(matrix, axis=1)
    if any_true(outside) or any_true(rows > (sizes if cells_per_user == 1 else sizes * cells_per_user)):
        _explain(matrix, rows, sizes, cells_per_user)
    return matrix


def _as_array(counts: Any, sizes: IntArray, cells: int) -> npt.NDArray[Any]:
    try:
        return np.asarray(counts)
    except (ValueError, TypeError):  # ragged: numpy's own message is not repeated, it may show entries
        nothing = np.empty(0)
        raise _invalid("rows of different lengths", nothing, "Give a full matrix.", sizes, cells) from None


def _as_integers(matrix: npt.NDArray[Any], sizes: IntArray, cells: int) -> IntArray:
    if matrix.dtype.kind == "f":
        whole = np.isfinite(matrix) & (matrix == np.floor(matrix)) & (np.abs(matrix) < 2.0**53)
        if not whole.all():
            row, cell = np.argwhere(~whole)[0].tolist()
            raise _invalid(
                f"a fractional or non-finite entry (class {row}, cell {cell})",
                matrix,
                "Counts are whole numbers of users.",
                sizes,
                cells,
                class_index=row,
                cell_index=cell,
            )
    elif matrix.dtype.kind not in "iu" or (matrix.dtype.kind == "u" and matrix.size and matrix.max() > 2**62):
        raise _invalid(f"type {matrix.dtype}", matrix, "Give an array of whole numbers.", sizes, cells)
    return matrix.astype(np.int64)


def _explain(matrix: IntArray, rows: IntArray, sizes: IntArray, cells_per_user: int) -> None:
    shape = (len(sizes), matrix.shape[1])
    for problem, bad in (
        ("a negative entry", matrix < 0),
        ("an entry above the class size", matrix > sizes[:, None]),
    ):
        if bad.any():
            row, cell = np.argwhere(bad)[0].tolist()
            raise _invalid(
                f"{problem} (class {row}, cell {cell})",
                matrix,
                "Count each registered user once per cell; n_g comes from the registry.",
                sizes,
                shape[1],
                class_index=row,
                cell_index=cell,
            )
    row = int((rows > sizes * cells_per_user).argmax())
    raise _invalid(
        f"a row (class {row}) with more records than its users may have",
        matrix,
        "Keep a user's last event of the slot only (the last k with max_cells_per_user=k).",
        sizes,
        shape[1],
        class_index=row,
    )


def _invalid(
    received: str, matrix: npt.NDArray[Any], remedy: str, sizes: IntArray, cells: int, **facts: Any
) -> InvalidCounts:
    return InvalidCounts(
        f"whole counts of shape ({len(sizes)}, {cells}) (classes, cells), none above what the class sizes allow",
        received,
        remedy,
        shape=matrix.shape,
        dtype=str(matrix.dtype),
        **{"class_index": None, "cell_index": None, **facts},
    )
