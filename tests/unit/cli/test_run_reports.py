"""What a run came to, in words."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wevent.cli.console import report_run
from wevent.publishing.configuration import load_settings
from wevent.publishing.loop import Summary


@pytest.mark.parametrize(
    ("turns", "last", "expected"),
    [
        (None, 4, "Published slots 3 to 4."),
        ((), 436, "Published no slot itself: slot 436 was the last one."),
        (((13, 238),), 238, "Published slots 13 to 238."),
        (((13, 238),), 436, "Published slots 13 to 238 as the writer, then stood by: slot 436 was the last one."),
        (((1, 2), (5, 6), (9, 9)), 9, "Published slots 1 to 2, 5 to 6 and 9 to 9."),
    ],
)
def test_what_a_replica_did_is_said(turns: tuple[tuple[int, int], ...] | None, last: int, expected: str) -> None:
    said = io.StringIO()
    summary = Summary(3 if turns is None else last + 1, last, 0, False, turns)
    settings = load_settings(None, {"slot": "1m", "cells": "2", "inputs": "-"}, ())
    report_run(Console(file=said), summary, settings)
    assert said.getvalue() == expected + "\n"
