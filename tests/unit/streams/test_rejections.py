"""Totals of a run, by reason and in words."""

from __future__ import annotations

from wevent.counting.roster import Rejected
from wevent.streams.decoding import NO_OFFSET, NO_USER, PROBLEMS
from wevent.streams.source import Rejections, in_words


def test_reasons_add_up() -> None:
    found = Rejections()
    found.events = 10
    found.late = 1
    found.reject(Rejected(unknown_cell=1, unknown_user=2))
    found.reject(Rejected(unknown_user=3))
    found.outside(before=0, after=4)
    found.malform([{NO_USER: 5, NO_OFFSET: 6}.get(problem, 0) for problem in PROBLEMS])
    totals = found.totals()
    assert (totals["events"], totals["rejected"], totals["malformed"], totals["late"]) == (10, 10, 11, 1)
    assert in_words(totals) == (
        "10 rejected (5 unknown user, 1 unknown cell, 4 after the last slot or in one that had not begun), "
        "11 malformed (5 no user, 6 time without an offset), 1 late"
    )


def test_without_reasons_there_are_no_brackets() -> None:
    assert in_words(Rejections().totals()) == "0 rejected, 0 malformed, 0 late"
