"""Events of open slots, as a run that was stopped left them: taken back alike, or refused in one sentence."""

from __future__ import annotations

from tests.fuzz.oracles import MARKER, taken
from tests.support.streams import DAY, SECOND, ScriptedInbox, Wall, settings
from wevent import Roster
from wevent.streams.clock import SlotClock
from wevent.streams.live.line_source import LineSource

LAST = 3
PEOPLE = Roster.from_columns(["u", MARKER], [4, 6], [1, 0.5])


def _source(pieces: list[bytes]) -> LineSource:
    wall = Wall(DAY + 70 * SECOND)
    inbox = ScriptedInbox([*pieces, 3_600.0], wall)
    return LineSource(settings(grace_us=600 * SECOND), SlotClock(DAY, 60 * SECOND), LAST, inbox=inbox, now_us=wall)


def _pending() -> bytes:
    source = _source([b'{"time":1767225610,"user":"u","cell":1}\n{"time":1767225665,"user":"Zq7Marker","cell":3}\n'])
    source.idle(0.001)
    source.stop()
    return source.pending()


SEEDS = (_pending(), _source([]).pending())
WORDS = (b"meaning", b"begun", b"slots", b"\xc4", b"\x93")


def check(data: bytes) -> None:
    source = _source([])
    if taken(lambda: source.restore_pending(data) or source, MARKER) is None:
        return
    again = _source([])
    again.restore_pending(source.pending())
    assert again.pending() == source.pending(), "taken back otherwise"
    matrices = [one.counts.matrix for one in source.count(PEOPLE, 1, LAST)]
    assert len(matrices) == LAST
    assert all((matrix >= 0).all() and matrix.sum() <= 2 for matrix in matrices), "somebody counted twice"
