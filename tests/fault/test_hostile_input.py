"""Hostile files and lines: no traceback, memory bounded by settings and not by input."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.fuzz.oracles import refusals
from tests.support.streams import DAY, SECOND, roster, settings
from wevent.settings.values import format_time
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource

FILES = int(os.environ.get("WEVENT_FUZZ", "300"))
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


def test_a_damaged_file_is_counted_or_refused_in_a_sentence(tmp_path: Path) -> None:
    """Hostile lines are in tests/property/test_isolation.py; here whole files are damaged, Parquet and gzip among them."""
    sound, chance, refused = _sound_files(tmp_path), random.Random(SEED), 0
    for _ in range(FILES):
        name = chance.choice(list(sound))
        content = bytearray(sound[name])
        for _ in range(chance.choice((0, 1, 1, 3, 20))):
            place = chance.randrange(len(content))
            end = chance.choice((place + 1, place + chance.randrange(40), len(content)))
            content[place:end] = chance.randbytes(chance.randrange(20)) or b"\n"
        path = tmp_path / name
        path.write_bytes(content)
        with refusals() as found:
            list(FileSource(settings([str(path)]), SlotClock(DAY, 60 * SECOND), 3).count(roster(), 1, 3))
        refused += len(found)
    assert 0 < refused < FILES, "hostile enough, and not all of it hopeless"


def _sound_files(folder: Path) -> dict[str, bytes]:
    """The same few records in every format."""
    events = [(format_time(DAY + time * SECOND), time % 5, time % 4) for time in range(0, 170, 7)]
    csv = "time,user,cell\n" + "".join(f"{time},{user},{cell}\n" for time, user, cell in events)
    ndjson = "".join(f'{{"time":"{time}","user":{user},"cell":{cell}}}\n' for time, user, cell in events)
    (folder / "sound.csv").write_text(csv)
    query = f"SELECT time::TIMESTAMPTZ AS time, user, cell FROM read_csv('{folder}/sound.csv')"
    duckdb.execute(f"COPY ({query}) TO '{folder}/sound.parquet' (FORMAT parquet)")
    return {
        "events.parquet": (folder / "sound.parquet").read_bytes(),
        **{f"events.{kind}": text.encode() for kind, text in (("csv", csv), ("ndjson", ndjson))},
        **{f"events.{kind}.gz": gzip.compress(text.encode()) for kind, text in (("csv", csv), ("ndjson", ndjson))},
    }


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
