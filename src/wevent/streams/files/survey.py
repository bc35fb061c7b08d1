"""Sizes of slots in an input, for planning; they never leave the source that asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import InputFile
from wevent.streams.records.decoding import EventColumns
from wevent.streams.uncounted import Uncounted

_SHOWN = 3


@dataclass
class Survey:
    """Events per slot.

    Attributes:
        uncounted: totals of events outside the clock and of malformed records.
        sizes: well-formed events of each slot.
        places: places of the first malformed records, without their content.
    """

    uncounted: Uncounted
    sizes: Counter[int] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    def note(self, place: str) -> bool:
        """Add the place of a malformed record; return whether another one is wanted."""
        if len(self.places) < _SHOWN:
            self.places.append(place)
        return len(self.places) < _SHOWN


class Reader(Protocol):
    """Files of one kind, or a frame."""

    @property
    def files(self) -> tuple[InputFile, ...]:
        """The files, in input order."""
        ...

    def survey(self, clock: SlotClock, last: int, found: Survey) -> None:
        """Add the sizes of slots 1 to `last`, and the records that no slot has."""
        ...

    def batches(self, low_us: int, high_us: int, *, in_parts: bool) -> Iterator[EventColumns]:
        """Return the events in [low, high), in input order among equal times; called after `survey`.

        Args:
            low_us, high_us: times.
            in_parts: whether there are more of them than fit in memory.
        """
        ...

    def span(self) -> tuple[int, int] | None:
        """Return the first and last time; None without events."""
        ...
