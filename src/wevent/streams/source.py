"""Base class of sources: slot after slot, each counted exactly once; and totals of events that do not count."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from wevent.counting.roster import Counts, Rejected, Roster
from wevent.errors import InvalidInput, InvalidSettings
from wevent.settings import StreamSettings
from wevent.streams.decoding import PROBLEMS

REJECTED = {
    "unknown_user": "unknown user",
    "unknown_cell": "unknown cell",
    "before": "before the first slot",
    "after": "after the last slot or in one that had not begun",
}
"""Reasons to reject a well-formed event, in words."""
MALFORMED = {
    "no_record": "not a record",
    "no_user": "no user",
    "no_cell": "no cell",
    "no_time": "no time",
    "no_offset": "time without an offset",
}
"""Reasons why a line is malformed, in words; in the order of `PROBLEMS`."""
assert len(MALFORMED) == len(PROBLEMS)


class SlotCounts(NamedTuple):
    """One slot, counted.

    Attributes:
        slot: 1, 2, 3, …
        counts: the class × cell matrix, for `Publisher.step`.
        position: state of the input after this slot, as JSON: all that resuming needs.
    """

    slot: int
    counts: Counts
    position: Any


class Rejections:
    """Totals of events that did not count.

    Attributes:
        events: well-formed events that were read.
        late: those whose slot had closed before they came.
    """

    def __init__(self) -> None:
        self.events = 0
        self.late = 0
        self._reasons = dict.fromkeys((*REJECTED, *MALFORMED), 0)

    @property
    def malformed(self) -> int:
        """Malformed lines or rows."""
        return sum(self._reasons[name] for name in MALFORMED)

    def reject(self, reasons: Rejected) -> None:
        """Add events of one slot."""
        for name, number in reasons._asdict().items():
            self._reasons[name] += number

    def outside(self, before: int, after: int) -> None:
        """Add events before the first slot, and after the last one or too early."""
        self._reasons["before"] += before
        self._reasons["after"] += after

    def malform(self, problems: Iterable[int]) -> None:
        """Add malformed lines: the number of each problem of `PROBLEMS`."""
        for name, number in zip(MALFORMED, problems, strict=True):
            self._reasons[name] += number

    def totals(self) -> dict[str, int]:
        """Return all totals by name: events, the sums rejected and malformed, late, and each reason."""
        sums = {"events": self.events, "rejected": sum(self._reasons[name] for name in REJECTED)}
        return {**sums, "malformed": self.malformed, "late": self.late, **self._reasons}


def in_words(totals: Mapping[str, int]) -> str:
    """Return totals in one clause: `3 rejected (2 unknown user, 1 unknown cell), 0 malformed, 0 late`."""
    parts = []
    for name, reasons in (("rejected", REJECTED), ("malformed", MALFORMED)):
        why = ", ".join(f"{totals[reason]} {words}" for reason, words in reasons.items() if totals[reason])
        parts.append(f"{totals[name]} {name}" + (f" ({why})" if why else ""))
    return ", ".join((*parts, f"{totals['late']} late"))


class Source(ABC):
    """A stream of counted slots; the defaults suit an input that stays where it is, such as files.

    Without a last slot it has no end. `files` is the number of input files, None without such files.
    """

    def __init__(self, settings: StreamSettings, last: int | None, files: int | None = None) -> None:
        self._settings = settings
        self._last = last
        self._files = files
        self._stopped = False
        self._uncounted = Rejections()
        self._malformed: list[str] = []

    @abstractmethod
    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count closed slots first, first + 1, …, at most `most`, with this roster; empty ones too.

        Ends early when no further slot is closed and none will be. A live source blocks until the next slot closes.
        """

    def resume(self, position: Any) -> None:
        """Continue after a stored position; called once, before `count`.

        Fewer files than before are refused: events may be missing. So is another unit of times: every event would lie
        outside the clock.
        """
        earlier, unit = position["time_unit"], self._settings.time_unit
        if earlier != unit:
            raise InvalidSettings(
                f"The time unit is {unit}, but it was {earlier} in the earlier run of this journal.",
                f"Give --time-unit {earlier}; convert times that are in another unit.",
                key="time_unit",
            )
        if self._files is not None and self._files < position.get("files", 0):
            raise InvalidInput(
                f"The earlier run had {position['files']} input files; now there are {self._files}.",
                "Give the same or a longer list of inputs.",
                path=None,
            )

    def closed_through(self) -> int | None:
        """Return the last closed slot of a live source; None if no slot has to be waited for."""
        return None

    def idle(self, wait_s: float) -> bool:
        """Wait so long before a slot that is counted is committed; a live source may take in what arrives meanwhile.

        Return True to give the slot up: `stop` was called, and the next run counts it again.
        """
        time.sleep(wait_s)
        return False

    def destroy(self, through: int) -> None:  # noqa: B027
        """Make events of slots up to this one, which are committed, unreadable.

        The time it takes depends on no event (spec 10).
        """

    def forget(self, through: int) -> None:  # noqa: B027  # sources without a copy of events have none to delete
        """Delete all events of slots up to this one, which are committed (spec 1)."""

    def stop(self) -> None:
        """Make `count` end with the slots that have closed; safe from signal handlers."""
        self._stopped = True

    def close(self) -> None:
        """Stop, and release files and threads; called once, after the last `count`."""
        self.stop()

    def totals(self) -> dict[str, int]:
        """Return totals of this run by name, for the operator only."""
        return self._uncounted.totals()

    def first_malformed(self) -> list[str]:
        """Return the places of the first malformed records, for the operator only; free of event content."""
        return list(self._malformed)

    def _slots(self, first: int, most: int) -> range:
        """Return the slots from `first` on, at most `most` and none after the last."""
        end = first + most - 1
        return range(first, (end if self._last is None else min(self._last, end)) + 1)

    def _position(self, slot: int) -> dict[str, Any]:
        """Return the position after a slot."""
        position = {"slot": slot, "time_unit": self._settings.time_unit}
        return position if self._files is None else {**position, "files": self._files}
