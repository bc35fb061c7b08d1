"""Positions of sources, and the conditions under which a later run resumes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.streams import settings
from wevent import InvalidInput, InvalidSettings, Roster
from wevent.streams import SlotCounts, Source


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
