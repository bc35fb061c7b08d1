"""What every source of counts has in common: slot after slot, each exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.errors import InvalidSettings


class SlotCounts(NamedTuple):
    """One slot, counted.

    Attributes:
        slot: 1, 2, 3, …
        counts: the class × cell matrix, for `Publisher.step`.
        position: where the input stands after this slot, as JSON: all that resuming needs.
    """

    slot: int
    counts: Counts
    position: Any


class Source(Protocol):
    """A stream of counted slots: files, lines, a buffer."""

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count closed slots first, first + 1, …, at most `most`, with this roster; empty ones too.

        Ends early when no further slot is closed and none will be. A live source blocks until the next slot closes.
        """
        ...

    def resume(self, position: Any) -> None:
        """Continue after a stored position; called once, before `count`."""
        ...

    def closed_through(self) -> int | None:
        """The last slot of a live source that has closed: up to it nothing has to be waited for. None: nothing ever has."""
        ...

    def pending(self) -> bytes:
        """Events of slots that are still open, for the journal to keep until these close; b"" if the input is still there."""
        ...

    def restore_pending(self, pending: bytes) -> None:
        """Take back what `pending` gave; called after `resume`.

        Raises:
            InvalidInput: if these are other bytes.
        """
        ...

    def idle(self, wait_s: float) -> bool:
        """Wait so long before a slot that is counted is committed; a live source may take in what arrives meanwhile.

        Returns:
            whether to give the slot up: `stop` was called, and the next run counts it again.
        """
        ...

    def forget(self, through: int) -> None:
        """Slots up to this one are committed: no event of theirs may be kept anywhere (spec 1)."""
        ...

    def stop(self) -> None:
        """Make `count` end with what has closed; safe from signal handlers."""
        ...

    def totals(self) -> dict[str, int]:
        """Totals of this run by name (`wevent.streams.uncounted`), for the operator only."""
        ...

    def first_malformed(self) -> list[str]:
        """Where the first malformed records were, for the operator only; free of event content."""
        ...


def check_time_unit(position: Any, time_unit: str) -> None:
    """Refuse to go on with numbers as times in another unit: every event would lie outside the clock.

    Raises:
        InvalidSettings: naming the unit of the earlier run.
    """
    earlier = position.get("time_unit", time_unit)  # not stored before version 0.2
    if earlier != time_unit:
        raise InvalidSettings(
            f"time_unit to stay {earlier}, as in the earlier run of this journal",
            f"{time_unit}",
            f"Give --time-unit {earlier}; convert times that are in another unit.",
            key="time_unit",
        )
