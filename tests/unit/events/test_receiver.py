"""A sender of a replica waits for a database that stands still no longer than it is told, and leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from tests.support.commands import PATIENCE_S
from wevent.counting.labels import Cells
from wevent.errors import JournalUnreachable
from wevent.events import receiver
from wevent.events.receiver import BatchReceiver
from wevent.events.records import StoredBatch
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock

SECOND = 1_000_000
LINES = b'{"time": 1, "user": 1, "cell": "north"}\n'


class StandingStill:
    """A store that answers when it is let; `patience_s` has no part in it, as with a server whose connections stay open."""

    patience_s = 0.0

    def __init__(self) -> None:
        self.let = threading.Event()
        self.entered = threading.Event()
        self.kept: list[tuple[bytes, bytes]] = []

    def find(self, batches: Sequence[StoredBatch]) -> list[tuple[int, bytes]]:
        self.entered.set()
        assert self.let.wait(PATIENCE_S)
        known = dict(self.kept)
        return [(place, known[name]) for place, (name, _) in enumerate(batches) if name in known]

    def put(self, batches: Sequence[StoredBatch]) -> tuple[bool, int]:
        self.kept += [(name, record) for name, records in batches for record in records.values()]
        return True, 0


@pytest.fixture
def store() -> Iterator[StandingStill]:
    intake = StandingStill()
    yield intake
    intake.let.set()


def test_a_sender_is_told_and_a_batch_that_waits_is_forgotten(
    store: StandingStill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_ANSWER_S", 0.2)
    settings = StreamSettings(inputs=("-",), cells=Cells.of(["north", "south"]), slot_us=10 * SECOND)
    first = BatchReceiver(settings, SlotClock(0, 10 * SECOND), None, intake=store, now_us=lambda: 2 * SECOND)
    while not store.entered.is_set():  # until the first one is being written
        with pytest.raises(JournalUnreachable, match="whether it was accepted shows then"):
            first.receive("bus", "first", LINES)
    for _ in range(3):
        with pytest.raises(JournalUnreachable):
            first.receive("bus", "second", LINES)
    store.let.set()
    monkeypatch.undo()
    first.close()
    assert len(store.kept) == 1, "what waited behind it was not accepted, however often it came"
    again = BatchReceiver(settings, SlotClock(0, 10 * SECOND), None, intake=store, now_us=lambda: 2 * SECOND)
    assert again.receive("bus", "first", LINES).accepted == 1
    again.close()
    assert len(store.kept) == 1, "it was accepted, and that shows when it is sent again"
