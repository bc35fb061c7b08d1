"""How much is in an input, slot by slot: what fits in memory together. It never leaves the source that asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wevent.core.arrays import IntArray
from wevent.streams.records.decoding import PROBLEMS

_SHOWN = 3


@dataclass
class Survey:
    """Events per slot, and how many there are that no slot has.

    Attributes:
        sizes: well-formed events of each slot.
        before, after: well-formed events before the first slot, and after the last.
        problems: how many lines or rows are no event, for each problem of `PROBLEMS`.
        places: where the first of these are, without anything of their content.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    before: int = 0
    after: int = 0
    problems: list[int] = field(default_factory=lambda: [0] * len(PROBLEMS))
    places: list[str] = field(default_factory=list)

    @property
    def malformed(self) -> int:
        """Lines or rows that are no event."""
        return sum(self.problems)

    def add(self, slots: IntArray, sizes: IntArray) -> None:
        """More events in some slots."""
        for slot, size in zip(slots.tolist(), sizes.tolist(), strict=True):
            self.sizes[slot] = self.sizes.get(slot, 0) + size

    def malform(self, problems: IntArray) -> None:
        """More lines that are no event, by what is wrong with each."""
        if len(problems):
            self._malform(np.bincount(problems, minlength=len(PROBLEMS)).tolist())

    def note(self, place: str) -> bool:
        """Where a malformed line is; whether another one is wanted."""
        if len(self.places) < _SHOWN:
            self.places.append(place)
        return len(self.places) < _SHOWN

    def include(self, other: Survey) -> None:
        """What another input has, too."""
        for slot, size in other.sizes.items():
            self.sizes[slot] = self.sizes.get(slot, 0) + size
        self.before += other.before
        self.after += other.after
        self._malform(other.problems)
        for place in other.places:
            self.note(place)

    def _malform(self, problems: list[int]) -> None:
        self.problems = [mine + more for mine, more in zip(self.problems, problems, strict=True)]
