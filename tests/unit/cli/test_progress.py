"""What long commands say where there is no terminal: a line a minute, from slot numbers and the clock alone."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wevent.cli.console import progress_bar


class Seconds:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("usual", "said"),
    [
        (0.0, ["slot 1000: 1,000 of 5,000 slots done", "slot 1001: 1,001 of 5,000 slots done"]),
        (1.0, ["slot 1000: 1,000 of 5,000 slots done"]),
    ],
)
def test_a_line_a_minute(usual: float, said: list[str]) -> None:
    """A live stream that keeps up (the second minute) says nothing, one that catches up does."""
    text, clock = io.StringIO(), Seconds()
    with progress_bar(Console(file=text), "slots", usual=usual, now_s=clock) as show:
        for slot, second in ((1, 1.0), (500, 30.0), (1000, 61.0), (1001, 125.0)):
            clock.now = second
            show(f"slot {slot}", slot, 5000)
    assert text.getvalue().splitlines() == said


def test_without_an_end() -> None:
    text, clock = io.StringIO(), Seconds()
    with progress_bar(Console(file=text), "slots", now_s=clock) as show:
        clock.now = 60.0
        show("slot 7", 7, None)
    assert text.getvalue() == "slot 7: 7 slots done\n"


def test_a_quiet_console_says_nothing() -> None:
    text, clock = io.StringIO(), Seconds()
    with progress_bar(Console(file=text, quiet=True), "runs", now_s=clock) as show:
        clock.now = 99.0
        show("pft", 1, 2)
    assert text.getvalue() == ""
