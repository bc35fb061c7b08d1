"""Where files stand, and what a later run needs to go on."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.support.streams import settings
from wevent import InvalidInput, InvalidSettings
from wevent.streams.files.resting_files import RestingFiles


def test_a_later_run_has_as_many_files_and_the_same_unit() -> None:
    position = RestingFiles(settings(["a.csv", "b.csv"]), 2).position(7)
    assert position == {"slot": 7, "files": 2, "time_unit": "s"}
    for number in (2, 3):
        RestingFiles(settings(["a.csv"]), number).resume(position)
    with pytest.raises(InvalidInput, match="the 2 input files of the earlier run, or more"):
        RestingFiles(settings(["a.csv"]), 1).resume(position)
    with pytest.raises(InvalidSettings, match="time_unit to stay s"):
        RestingFiles(settings(["a.csv"], time_unit="ms"), 2).resume(position)


def test_what_no_files_were_read_for_needs_none() -> None:
    RestingFiles(settings(["a.csv"]), 0).resume({"slot": 7, "time_unit": "s"})  # live lines
    RestingFiles(settings(["a.csv"], frame=cast(Any, object())), 1).resume({"slot": 7, "files": 9, "time_unit": "s"})
