"""The pipe that live lines come through."""

import os
import threading
from pathlib import Path

import pytest

from tests.support.commands import PATIENCE_S, wait_for
from tests.support.live_events import MemoryStore
from tests.support.streams import DAY, SECOND, Wall, roster, settings
from wevent.errors import InvalidInput
from wevent.events.live_source import PipeInbox, PipeSource, standard_input
from wevent.streams import SlotClock


def test_a_pipe_is_read_and_its_end_is_told() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        inbox = PipeInbox(pipe)
        assert not inbox.waiting(0.01)
        os.write(writing, b"one\ntwo\n")
        assert inbox.waiting(PATIENCE_S)
        assert inbox.get() == b"one\ntwo\n"
        os.close(writing)
        assert inbox.get() == b""


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"x" * 3_000_000)
    with (tmp_path / "lines").open("rb") as file:
        inbox = PipeInbox(file)
        pieces = list(iter(inbox.get, b""))
    assert b"".join(pieces) == b"x" * 3_000_000


def test_a_pipe_that_is_closed_under_the_reader_has_ended() -> None:
    reading, writing = os.pipe()
    pipe = os.fdopen(reading, "rb")
    inbox = PipeInbox(pipe)
    pipe.close()
    assert inbox.get() == b""
    os.close(writing)


def test_no_thread_is_left_waiting_in_an_open_pipe_and_what_arrived_is_stored() -> None:
    reading, writing = os.pipe()
    store = MemoryStore()
    with os.fdopen(reading, "rb") as pipe:
        clock, wall = SlotClock(DAY, 60 * SECOND), Wall(DAY + 30 * SECOND)
        source = PipeSource(settings(), clock, None, inbox=PipeInbox(pipe), store=store, now_us=wall)
        counting = threading.Thread(target=lambda: list(source.count(roster(), 1, 1)))
        counting.start()
        os.write(writing, b'{"time":%d,"user":1,"cell":0}\n' % (DAY // SECOND))
        wait_for(lambda: bool(store.records), "an event of an open slot")
        source.stop()
        counting.join()
        os.write(writing, b'{"time":%d,"user":2,"cell":0}\n' % (DAY // SECOND))
        source.close()
        assert "wevent-pipe" not in {thread.name for thread in threading.enumerate()}
    assert len(store.records[1]) == 2
    os.close(writing)


def test_a_closed_standard_input_is_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidInput, match="Standard input is closed"):
        standard_input()
