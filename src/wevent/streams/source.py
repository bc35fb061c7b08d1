"""The seam between events and publishing: a source counts closed slots, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from wevent.counts import Counts
from wevent.roster import Roster


class SlotCounts(NamedTuple):
    """One slot, counted.

    Attributes:
        slot: its number; the first is 1.
        counts: the class × cell matrix in the order of `roster.population.classes`.
        position: where the input stands after this slot, JSON-able; what resuming needs and nothing more.
    """

    slot: int
    counts: Counts
    position: Any


class Source(Protocol):
    """Where counted slots come from."""

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count the closed slots first, first + 1, … (at most `most`), every one exactly once, empty ones too.

        Ends early when no further slot is closed and none will be. Live sources block until the next slot closes.
        """

    def resume(self, position: Any) -> None:
        """Continue after a stored position; called once, before `count`."""

    def totals(self) -> dict[str, int]:
        """Totals of the run, for the operator only: events, rejected, malformed, late."""
