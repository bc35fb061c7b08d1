"""The declared cells, which are never discovered from events (spec 1)."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.counting.label_index import LabelIndex, Labels, all_below
from wevent.errors import InvalidCells

_MOST = 10_000_000
_LABEL = re.compile(r'\s*(?:"((?:[^"]|"")*)"|(?!")([^,]*?))\s*(?:,|$)')


def split_labels(text: str) -> list[str]:
    """Return the labels of one line: `a,b,c`; a label with a comma is in double quotes, empty ones are left out.

    Raises:
        InvalidCells: for a quote that does not end, or is followed by something else.

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
        if number > _MOST:
            fix = f"Declare at most {_MOST:,}: every release has a value for every cell."
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
