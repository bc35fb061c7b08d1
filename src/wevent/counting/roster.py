"""Registered users with their classes, and the class × cell counts of one slot's events, which never outlive the slot."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray, any_true
from wevent.core.requirements import Levels, Population, Requirement
from wevent.counting.labels import Cells, LabelIndex, Labels, all_below
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidCounts, InvalidEvents, InvalidOption, InvalidRoster


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


class Roster:
    """The registered users and their requirements.

    Build one with `from_columns` or `from_levels`.

    Args:
        users: the ids, each once.
        classes: for each user the row of their class in `population.classes`.
        population: the classes and how many users hold each.
        unknown_row: the class that unregistered users count in; None rejects their events.
        unknown_limit: number of them that may count in one slot, smallest ids first: a public number.
        is_stranger: returns which ids may count as unregistered; None: every id that is not on the roster.

    Attributes:
        ids: The ids as they are kept, texts in one buffer.
    """

    def __init__(
        self,
        users: npt.NDArray[Any] | StringColumn,
        classes: IntArray,
        population: Population,
        *,
        unknown_row: int | None = None,
        unknown_limit: int = 0,
        is_stranger: Callable[[list[str]], BoolArray] | None = None,
    ) -> None:
        self.population, self.classes = population, classes
        self.ids = users
        self.unknown_row, self.unknown_limit = unknown_row, unknown_limit
        self._is_stranger = is_stranger
        self._users = LabelIndex(users)
        self._starts: tuple[int, IntArray] = 0, classes  # of each user in a flat class × cell matrix of so many cells
        self._scratch: IntArray | None = None
        if self._users.duplicates:
            fix = "Keep one row per user: a user has one requirement at a time."
            raise InvalidRoster("Ids are repeated.", fix, duplicates=self._users.duplicates)

    @classmethod
    def from_columns(cls, users: Any, windows: Any, epsilons: Any) -> Roster:
        """Return a roster from columns of ids, windows and epsilons; anything `np.asarray` takes.

        Raises:
            InvalidRoster: for columns of different lengths, no rows, or a repeated user.
            InvalidRequirement: for a window or epsilon that no promise can be built on.
        """
        return cls._from_pairs(users, windows, epsilons, Requirement)

    @classmethod
    def from_levels(cls, users: Any, privacy: Any, window: Any, levels: Levels | None = None) -> Roster:
        """Return a roster from columns of ids, privacy levels and window levels."""
        chosen = Levels.default() if levels is None else levels
        if not isinstance(chosen, Levels):
            raise InvalidRoster(f"The levels are a {type(levels).__name__}.", "Write Levels(privacy=…, window=…).")
        return cls._from_pairs(users, privacy, window, lambda left, right: chosen.requirement(str(left), str(right)))

    @classmethod
    def _from_pairs(cls, users: Any, left: Any, right: Any, requirement: Any) -> Roster:
        columns = [_id_column(users), _column(left), _column(right)]
        lengths = tuple(column.shape for column in columns)
        if columns[0].ndim != 1 or len(set(lengths)) != 1 or not len(columns[0]):
            problem = f"The columns have the shapes {', '.join(map(str, lengths))}."
            raise InvalidRoster(problem, "Give three columns with a row per user, at least one.", lengths=lengths)
        pairs: dict[tuple[Any, Any], int] = {}
        each = zip(_plain(columns[1]), _plain(columns[2]), strict=True)
        codes = np.array([pairs.setdefault(pair, len(pairs)) for pair in each], dtype=np.int64)
        requirements = [requirement(first, second) for first, second in pairs]
        classes = sorted(set(requirements))
        rows = np.array([classes.index(requirement) for requirement in requirements], dtype=np.int64)[codes]
        sizes = np.bincount(rows, minlength=len(classes))
        return cls(columns[0], rows, Population(dict(zip(classes, sizes.tolist(), strict=True))))

    def reclassify(
        self, classes: IntArray, population: Population, *, unknown_row: int | None, unknown_limit: int
    ) -> Roster:
        """Return a roster of the same users in other classes; the look-up of ids is shared."""
        other = copy.copy(self)
        other.classes, other.population = classes, population
        other.unknown_row, other.unknown_limit = unknown_row, unknown_limit
        other._starts, other._scratch = (0, classes), None
        return other

    @property
    def users(self) -> npt.NDArray[Any]:
        """The ids as an array, which takes a while for millions of texts."""
        return np.array(self.ids.texts(), dtype=np.str_) if isinstance(self.ids, StringColumn) else self.ids

    @property
    def numbered(self) -> bool:
        """Whether every id is a whole number."""
        return not isinstance(self.ids, StringColumn) and self.ids.dtype.kind in "iu"

    def __len__(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        return f"<Roster of {len(self)} users in {len(self.population)} classes>"

    def count(
        self, users: Any, cells: Any, domain: int | Sequence[Any] | Cells, *, max_cells_per_user: int = 1
    ) -> Counts:
        """Return the counts of one slot: of a user's events the last k distinct cells count.

        Args:
            users: user id per event, in time order.
            cells: cell label per event (an index for a numbered domain).
            domain: the declared cells, as `publisher.cells`.
            max_cells_per_user: k.
        """
        if type(max_cells_per_user) is not int or max_cells_per_user < 1:
            raise InvalidOption(
                f"max_cells_per_user is {max_cells_per_user!r}.",
                "Give a whole number, at least 1, which keeps a user's last event.",
                option="max_cells_per_user",
                value=max_cells_per_user,
            )
        known = Cells.of(domain)
        shapes = tuple(
            (len(column),) if isinstance(column, (list, tuple)) else np.shape(column) for column in (users, cells)
        )
        if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
            problem = f"The columns have the shapes {shapes[0]} of users and {shapes[1]} of cells."
            raise InvalidEvents(problem, "Give one cell per event.", lengths=shapes)
        ids = Labels.of(users)
        return self.count_rows(self.find(ids), known.find(cells), len(known), max_cells_per_user, ids.__getitem__)

    def count_rows(
        self,
        user_rows: IntArray,
        cell_rows: IntArray,
        cells: int,
        max_cells_per_user: int = 1,
        unknown: Callable[[IntArray], Labels] | None = None,
    ) -> Counts:
        """Return the counts of events whose users and cells have been looked up.

        Args:
            user_rows: result of `find` per event, in time order.
            cell_rows: column per event, -1 for an undeclared cell.
            cells: the number of declared cells.
            max_cells_per_user: k.
            unknown: returns the ids of the events at some places, called for unregistered users only.
        """
        rejected, strangers = NONE_REJECTED, None
        if not all_below(user_rows, len(self)) or not all_below(cell_rows, cells):
            declared = cell_rows >= 0
            valid = (user_rows >= 0) & declared
            if self.unknown_row is not None and unknown is not None:
                places = np.flatnonzero((user_rows < 0) & declared)
                strangers = unknown(places), cell_rows[places]
            rejected = Rejected.of(declared, int(np.count_nonzero(valid)))
            user_rows, cell_rows = user_rows[valid], cell_rows[valid]
        if (user_rows[1:] <= user_rows[:-1]).any():  # ascending users are distinct: nothing to choose
            if self._scratch is None:
                self._scratch = np.empty(len(self), dtype=np.int64)
            kept = last_events(user_rows, cell_rows, max_cells_per_user, self._scratch)
            user_rows, cell_rows = user_rows[kept], cell_rows[kept]
        if self._starts[0] != cells:
            self._starts = cells, self.classes * cells
        flat = self._starts[1].take(user_rows) + cell_rows
        matrix = np.bincount(flat, minlength=len(self.population) * cells).reshape(-1, cells)
        counts = Counts(matrix, rejected)
        return counts if strangers is None else self._with_strangers(counts, *strangers, max_cells_per_user)

    def find(self, users: Labels | npt.NDArray[Any] | Sequence[Any]) -> IntArray:
        """Return the position of each id in `users`, -1 if it is not registered."""
        return self._users.find(users)

    def turnover(self, earlier: Roster) -> int:
        """Return how many users joined plus how many left since an earlier roster; a change of class is neither."""
        stayed = int((earlier._users.find(self.ids) >= 0).sum())
        return len(self) + len(earlier) - 2 * stayed

    def countable(self, users: Labels) -> BoolArray:
        """Return which of these ids can count in a slot with these and any other events.

        Of unregistered users these are the `unknown_limit` smallest ids: other events can only push some of them out.
        """
        registered = self.find(users) >= 0
        if self.unknown_row is None:
            return registered
        places = np.flatnonzero(~registered)
        texts = [None if value is None else str(value) for value in users[places].values()]
        smallest = set(self.strangers(sorted({text for text in texts if text is not None})))
        registered[places] = [text in smallest for text in texts]
        return registered

    def strangers(self, names: list[str]) -> list[str]:
        """Return those of sorted unregistered ids that count: the `unknown_limit` smallest that are admitted."""
        if self._is_stranger is not None and names:
            names = [name for name, admitted in zip(names, self._is_stranger(names).tolist(), strict=True) if admitted]
        return names[: self.unknown_limit]

    def _with_strangers(self, counts: Counts, ids: Labels, cells: IntArray, limit: int) -> Counts:
        """Return the counts with the unregistered users that count, in the class declared for them."""
        texts = [None if value is None else str(value) for value in ids.values()]
        names = sorted({text for text in texts if text is not None})
        chosen = {name: place for place, name in enumerate(self.strangers(names))}
        nobody = self.unknown_limit  # None and NaN are nobody's ids
        rows = np.array([nobody if text is None else chosen.get(text, nobody) for text in texts], dtype=np.int64)
        kept = rows < self.unknown_limit
        last = last_events(rows[kept], cells[kept], limit)
        counts.matrix[self.unknown_row] += np.bincount(cells[kept][last], minlength=counts.matrix.shape[1])
        return Counts(counts.matrix, counts.reasons.plus(Rejected(unknown_user=-int(np.count_nonzero(kept)))))


def last_events(owners: IntArray, cells: IntArray, limit: int, scratch: IntArray | None = None) -> IntArray:
    """Return the places of the events, given in time order, that hold the last `limit` distinct cells of their owner.

    Args:
        owners: a number for each owner.
        cells: column of each event, none negative.
        limit: k.
        scratch: an array with an entry for every owner, of any content; without one, owners may be any numbers.
    """
    if limit == 1 and scratch is not None:
        event = np.arange(len(owners))
        scratch[owners] = event  # of repeated indices numpy keeps the last assignment; no other entry is read
        return np.flatnonzero(scratch.take(owners) == event)
    last = len(owners) - 1
    owners, cells = owners[::-1], cells[::-1]  # latest first
    if limit == 1:
        return np.sort(last - np.unique(owners, return_index=True)[1])
    codes = np.unique(owners, return_inverse=True)[1] if scratch is None else owners
    _, first = np.unique(codes * (int(cells.max(initial=0)) + 1) + cells, return_index=True)
    first.sort()
    order = first[codes[first].argsort(kind="stable")]  # by owner, latest first within
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, lengths)
    return np.sort(last - order[rank < limit])


def _column(values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        problem = "The columns have rows of different lengths."
        raise InvalidRoster(problem, "Give one id, window and epsilon per user.") from None


def _id_column(users: Any) -> npt.NDArray[Any]:
    """Return ids as an array that keeps each as it is."""
    column = _column(users)
    if isinstance(users, (list, tuple)) and column.ndim == 1 and column.dtype.kind not in "biuU":
        column = np.array(users, dtype=object)  # numpy would make floats of large whole numbers
    is_clean = column is users and column.dtype.kind in "biuU"  # an array of texts has no NUL
    if column.ndim == 1 and not is_clean and not Labels.of(users).is_label().all():
        problem = "Rows have no id: None, NaN, or text with a NUL."
        raise InvalidRoster(problem, "Give each user an id.", lengths=(len(column),))
    return column


def _plain(values: npt.NDArray[Any]) -> list[Any]:
    """Return Python values that read as the user wrote them: a float32 of 0.6 is "0.6", not 0.6000000238."""
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        return [str(value) for value in values]
    return list(values.tolist())


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
