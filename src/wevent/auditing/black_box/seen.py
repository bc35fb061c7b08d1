"""What everybody sees of many runs on one stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray

FRESH = "fresh"
STOPPED = "stopped"
HUNG = "hung"


@dataclass(frozen=True)
class Seen:
    """The outputs of runs, one run after the other.

    Attributes:
        values: published values: runs × slots × cells; not a number where nothing was published.
        dissimilarity: runs × slots; not a number where none was told.
        words: per run the outcome of every slot.
        marks: further things that were seen of each run, by name: exit code, number of lines, text of standard error, ….
    """

    values: FloatArray
    dissimilarity: FloatArray
    words: Sequence[tuple[str, ...]]
    marks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.words)

    def fresh(self) -> BoolArray:
        """Which slots were measured anew: runs × slots."""
        result: BoolArray = np.array([[word == FRESH for word in run] for run in self.words], dtype=bool)
        return result.reshape(self.values.shape[:2])

    def part(self, first: int, last: int | None) -> Seen:
        """Some of the runs."""
        marks = {name: all_of[first:last] for name, all_of in self.marks.items()}
        return Seen(self.values[first:last], self.dissimilarity[first:last], self.words[first:last], marks)

    @classmethod
    def together(cls, parts: Iterable[Seen]) -> Seen:
        """Runs on the same stream, made one batch after the other."""
        all_of = list(parts)
        marks = {name: [mark for part in all_of for mark in part.marks[name]] for name in all_of[0].marks}
        return cls(
            np.concatenate([part.values for part in all_of]),
            np.concatenate([part.dissimilarity for part in all_of]),
            [words for part in all_of for words in part.words],
            marks,
        )
