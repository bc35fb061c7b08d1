"""Hostile lines and files: no traceback, nobody else's counts changed, memory bounded by settings and not by input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault.fuzzing import campaign

INPUTS = int(os.environ.get("WEVENT_FUZZ", "2500"))
SEED = int(os.environ.get("WEVENT_FUZZ_SEED", "1"))

_LIVE = """
import resource, sys, tempfile, threading, os
from pathlib import Path
import numpy as np
from wevent import Cells, Roster
from wevent.events.live_source import PipeInbox, PipeSource
from wevent.events.segment_log import SegmentLog
from wevent.streams import SlotClock
from wevent.settings import StreamSettings

chosen = StreamSettings(inputs=("-",), cells=Cells.of(4), slot_us=60_000_000, start_us=0, close_slots_by="lines")
people = Roster.from_columns(np.arange(100), np.full(100, 4), np.full(100, 1.0))
inbox, store = PipeInbox(sys.stdin.buffer), SegmentLog(Path(tempfile.mkdtemp()))
source = PipeSource(chosen, SlotClock(0, 60_000_000), 1, inbox=inbox, store=store)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counted = list(source.count(people, 1, 1))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(int(counted[0].counts.matrix.sum()), source.totals()["malformed"], (after - before) // 1024)
"""


def test_a_campaign_of_hostile_input(tmp_path: Path) -> None:
    tally = campaign(tmp_path, INPUTS, SEED)
    assert tally.lines + tally.files >= INPUTS
    assert 0 < tally.refused < tally.files  # hostile enough, and not all of it hopeless


@pytest.mark.parametrize("what", ["no newline", "long id", "many long ids"])
def test_memory_of_a_live_stream_is_bounded(what: str) -> None:
    """100 MB without a newline; one id of 200,000 characters among 20,000 events; ids that nobody has, without end."""
    process = subprocess.Popen([sys.executable, "-c", _LIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
    assert process.stdin is not None
    assert process.stdout is not None
    expected = {"no newline": "1 1", "long id": "100 1", "many long ids": "1 0"}[what]
    with process.stdin as pipe:
        if what == "no newline":
            for _ in range(100):
                pipe.write(b"x" * 2**20)
            pipe.write(b"\n")
        elif what == "long id":
            for number in range(20_000):
                user = '"' + "x" * 200_000 + '"' if number == 777 else str(number % 100)
                pipe.write(f'{{"time": 10, "user": {user}, "cell": 1}}\n'.encode())
        else:
            filler = "x" * 200
            for start in range(0, 700_000, 10_000):
                lines = (f'{{"time":10,"user":"{filler}{n}x","cell":1}}\n' for n in range(start, start + 10_000))
                pipe.write("".join(lines).encode())
        pipe.write(b'{"time": 10, "user": 1, "cell": 1}\n{"close": 60}\n')
    counted, malformed, grown_mb = process.stdout.read().decode().split()
    assert process.wait() == 0
    assert f"{counted} {malformed}" == expected
    assert int(grown_mb) < 200, grown_mb
