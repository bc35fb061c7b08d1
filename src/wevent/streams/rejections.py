"""Events that do not count, by reason: totals of a run for the operator only; and masks of values for messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from wevent.counting.roster import Rejected
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

_COLUMNS = 20  # in a message
_NUMERIC = frozenset("0123456789 .:+-TZ")
_SHOWN = 48  # characters
_SIGNS = frozenset(" \t-_:./+,;|@#\"'{}[]()=")


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


def outline(text: str) -> str:
    """Return the mask of a value for the operator: a or A for a letter, 9 for a digit, ? for a rare sign.

    >>> outline("u-4711"), outline("2026-01-31 08:15")
    ('a-9999', '9999-99-99 99:99')
    """
    characters = "".join(map(_mask, text[:_SHOWN]))
    return characters + "…" if len(text) > _SHOWN else characters


def listed_columns(names: Sequence[str]) -> str:
    """Return the columns of a file for a message; masked if they look like a record of a file without a header.

    >>> listed_columns(["time", "user"]), listed_columns(["4711", "Harbour"])
    ("'time', 'user'", "'9999', 'Aaaaaaa' (they look like a record: is the header line missing?)")
    """
    if looks_like_record(names):
        shown, end = [outline(name) for name in names], " (they look like a record: is the header line missing?)"
    else:
        shown, end = list(names), ""
    return (", ".join(map(repr, shown[:_COLUMNS])) or "none") + (", …" if len(names) > _COLUMNS else "") + end


def looks_like_record(names: Sequence[str]) -> bool:
    """Return whether one of the names of columns looks like a value."""
    return any(_is_value(name) for name in names)


def _is_value(name: str) -> bool:
    """Return whether a name has a number or a time, also between other delimiters, or is an address or a level."""
    parts = re.split(r"[;,|\t]", name)
    return "@" in name or "/" in name or any(set(part) <= _NUMERIC and any(map(str.isdigit, part)) for part in parts)


def _mask(character: str) -> str:
    if character.isalpha():
        return "A" if character.isupper() else "a"
    if character.isdigit():
        return "9"
    return character if character in _SIGNS else "?"


assert len(MALFORMED) == len(PROBLEMS)
