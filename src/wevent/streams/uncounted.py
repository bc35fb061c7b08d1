"""Events that were not counted, by reason: totals of a whole run, for the operator only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wevent.counting.counts import Rejected
from wevent.streams.records.decoding import PROBLEMS

REJECTED = {
    "unknown_user": "unknown user",
    "unknown_cell": "unknown cell",
    "before": "before the first slot",
    "after": "after the last slot or in one that had not begun",
}
"""Why a well-formed event is rejected, in words."""
MALFORMED = {
    "no_record": "not a record",
    "no_user": "no user",
    "no_cell": "no cell",
    "no_time": "no time",
    "no_offset": "time without an offset",
}
"""Why a line is no event, in words; in the order of `PROBLEMS`."""


class Uncounted:
    """Adds up why events were not counted.

    Attributes:
        events: well-formed events that were looked at.
        late: those whose slot had closed before they came.
    """

    def __init__(self) -> None:
        self.events = 0
        self.late = 0
        self._reasons = dict.fromkeys((*REJECTED, *MALFORMED), 0)

    @property
    def malformed(self) -> int:
        """Lines or rows that are no event."""
        return sum(self._reasons[name] for name in MALFORMED)

    def reject(self, reasons: Rejected) -> None:
        """Events of one slot."""
        for name, number in reasons._asdict().items():
            self._reasons[name] += number

    def outside(self, before: int, after: int) -> None:
        """Events that no slot has, or none yet."""
        self._reasons["before"] += before
        self._reasons["after"] += after

    def malform(self, problems: Iterable[int]) -> None:
        """Lines or rows that are no event: how many have each problem of `PROBLEMS`."""
        for name, number in zip(MALFORMED, problems, strict=True):
            self._reasons[name] += number

    def totals(self) -> dict[str, int]:
        """Everything by name: events, the sums rejected and malformed, late, and each reason."""
        sums = {"events": self.events, "rejected": sum(self._reasons[name] for name in REJECTED)}
        return {**sums, "malformed": self.malformed, "late": self.late, **self._reasons}


def in_words(totals: Mapping[str, int]) -> str:
    """Totals in one clause: `3 rejected (2 unknown user, 1 unknown cell), 0 malformed, 0 late`."""
    parts = []
    for name, reasons in (("rejected", REJECTED), ("malformed", MALFORMED)):
        why = ", ".join(f"{totals[reason]} {words}" for reason, words in reasons.items() if totals[reason])
        parts.append(f"{totals[name]} {name}" + (f" ({why})" if why else ""))
    return ", ".join((*parts, f"{totals['late']} late"))


assert len(MALFORMED) == len(PROBLEMS)
