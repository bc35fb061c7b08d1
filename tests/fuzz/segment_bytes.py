"""A segment of an event store, as a run that was stopped left it: damage takes no other record with it and raises nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.fuzz.oracles import MARKER
from tests.support.live_events import pipe_source
from tests.support.streams import DAY, SECOND, ScriptedInbox, Wall, settings
from wevent import Roster
from wevent.events.segment_log import SegmentLog
from wevent.streams.clock import SlotClock

LAST = 3
PEOPLE = Roster.from_columns(["u", MARKER], [4, 6], [1, 0.5])
KEY = bytes(range(32))
SEGMENT = "0000000001.events"


def _folder(folder: str) -> Path:
    for slot in range(1, LAST + 1):
        (Path(folder) / f"{slot}.key").write_bytes(KEY)
    return Path(folder)


def _written() -> bytes:
    wall = Wall(DAY + 70 * SECOND)
    pieces = [
        b'{"time":1767225610,"user":"u","cell":1}\n{"time":1767225665,"user":"Zq7Marker","cell":3}\n',
        b'{"time":1767225611,"user":"u","cell":2}\n',
    ]
    with tempfile.TemporaryDirectory() as folder:
        log = SegmentLog(_folder(folder))
        inbox = ScriptedInbox(pieces, wall)
        chosen, clock = settings(grace_us=600 * SECOND), SlotClock(DAY, 60 * SECOND)
        list(pipe_source(chosen, clock, LAST, inbox=inbox, now_us=wall, store=log).count(PEOPLE, 1, 1))
        log.close()
        return (Path(folder) / SEGMENT).read_bytes()


SEEDS = (_written(), b"")
WORDS = (b"wEv1",)


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (_folder(folder) / SEGMENT).write_bytes(data)
        log = SegmentLog(Path(folder))
        inbox, wall = ScriptedInbox([3_600.0], Wall(DAY)), Wall(DAY + 3_600 * SECOND)
        source = pipe_source(settings(), SlotClock(DAY, 60 * SECOND), LAST, inbox=inbox, now_us=wall, store=log)
        matrices = [one.counts.matrix for one in source.count(PEOPLE, 1, LAST)]
        source.close()
    assert len(matrices) == LAST
    assert all((matrix >= 0).all() and matrix.sum() <= 2 for matrix in matrices), "somebody counted twice"
