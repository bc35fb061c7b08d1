"""A journal that is gone: its witness shows slots that no journal here has (spec 10).

A missing, empty or foreign journal beside the witness of another one must not begin at slot 1 with a full budget: those
slots went out already.
"""

from __future__ import annotations

from typing import NamedTuple

from wevent.errors import InvalidOption, StaleJournal
from wevent.journal.witness import WitnessRecord

STARTED_OVER = "started over"
"""What the privacy statement says of a journal that replaced a lost one."""


class Home(NamedTuple):
    """Where a journal is, or was, and how a backup of it is put back: what comes before --released-through."""

    place: str
    restoring: str


def is_lost(record: WitnessRecord, identity: str | None) -> bool:
    """Return whether a witness shows slots of another journal than the one that is here (None: none is)."""
    if not record.is_readable:
        return identity is None
    journal, committed = record.last_drawn
    return committed > 0 and journal != identity


def check_lost(home: Home, record: WitnessRecord, identity: str | None, *, start_over: bool) -> None:
    """Refuse a journal that was lost, unless the operator says to start over; and starting over without a loss.

    Raises:
        StaleJournal: with both ways out.
        InvalidOption: if there is nothing to start over from.
    """
    lost = is_lost(record, identity)
    if lost and not start_over:
        raise _lost(home, record, identity)
    if start_over and not lost:
        raise InvalidOption(
            "a journal that was lost, to start over",
            "one that was not" if identity is not None else "no sign of an earlier one",
            "Leave --start-over out.",
            option="start_over",
        )


def refuse_lost(home: Home, record: WitnessRecord) -> None:
    """Refuse to read a missing journal whose witness shows slots.

    Raises:
        StaleJournal: with both ways out.
    """
    if record.is_readable and is_lost(record, None):
        raise _lost(home, record, None)


def _lost(home: Home, record: WitnessRecord, identity: str | None) -> StaleJournal:
    released = record.last_drawn[1] if record.is_readable else None
    known = "some slot" if released is None else f"slot {released}"
    through = "SLOT" if released is None else f"{released}"
    return StaleJournal(
        f"the journal that committed {known} at {home.place}, as its witness shows",
        "no journal, or an empty one" if identity is None else "another journal",
        f"Restore its backup ({home.restoring} --released-through {through}, or later). Or say "
        "--start-over: a new journal over the same people. Epsilons then add up, and slots that went out go out again "
        "with other numbers.",
        committed=0,
        released=released,
    )
