"""How much is in an input, slot by slot: what fits in memory together. It never leaves the source that asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from wevent.core.arrays import IntArray

_SHOWN = 3


@dataclass
class Survey:
    """Events per slot, and how many there are that no slot has.

    Attributes:
        sizes: well-formed events of each slot.
        outside: well-formed events before the first slot or after the last.
        malformed: lines or rows that are no event.
        places: where the first of these are, without anything of their content.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    outside: int = 0
    malformed: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, slots: IntArray, sizes: IntArray) -> None:
        """More events in some slots."""
        for slot, size in zip(slots.tolist(), sizes.tolist(), strict=True):
            self.sizes[slot] = self.sizes.get(slot, 0) + size

    def note(self, place: str) -> bool:
        """Where a malformed line is; whether another one is wanted."""
        if len(self.places) < _SHOWN:
            self.places.append(place)
        return len(self.places) < _SHOWN

    def include(self, other: Survey) -> None:
        """What another input has, too."""
        for slot, size in other.sizes.items():
            self.sizes[slot] = self.sizes.get(slot, 0) + size
        self.outside += other.outside
        self.malformed += other.malformed
        for place in other.places:
            self.note(place)
