"""Positions of sources, the conditions under which a later run resumes, and totals of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.streams import settings
from wevent import InvalidInput, InvalidSettings, Roster
from wevent.counting.roster import Rejected
from wevent.streams import SlotCounts, Source
from wevent.streams.decoding import NO_OFFSET, NO_USER, PROBLEMS
from wevent.streams.source import Rejections, in_words


class Nothing(Source):
    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        yield from ()


def test_a_later_run_has_as_many_files_and_the_same_unit() -> None:
    position = Nothing(settings(["a.csv", "b.csv"]), 9, files=2)._position(7)
    assert position == {"slot": 7, "files": 2, "time_unit": "s"}
    for number in (2, 3):
        Nothing(settings(["a.csv"]), 9, files=number).resume(position)
    with pytest.raises(InvalidInput, match="The earlier run had 2 input files"):
        Nothing(settings(["a.csv"]), 9, files=1).resume(position)
    with pytest.raises(InvalidSettings, match="it was s in the earlier run"):
        Nothing(settings(["a.csv"], time_unit="ms"), 9, files=2).resume(position)


def test_what_no_files_were_read_for_needs_none() -> None:
    Nothing(settings(["a.csv"]), 9, files=0).resume({"slot": 7, "time_unit": "s"})  # live lines
    Nothing(settings(["a.csv"]), 9).resume({"slot": 7, "files": 9, "time_unit": "s"})  # a frame


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
