"""The pipe that live lines come through."""

import os
import threading
from pathlib import Path

import pytest

from tests.support.commands import PATIENCE_S
from wevent.errors import InvalidInput
from wevent.events.pipe import PipeInbox, standard_input


def test_a_pipe_is_read_ahead_and_its_end_is_told() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        inbox = PipeInbox(pipe)
        assert inbox.get(0.01) is None
        os.write(writing, b"one\ntwo\n")
        assert inbox.get(PATIENCE_S) == b"one\ntwo\n"
        os.close(writing)
        assert inbox.get(PATIENCE_S) == b""
        inbox.close()


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"x" * 600_000)
    with (tmp_path / "lines").open("rb") as file:
        inbox = PipeInbox(file)
        pieces = list(iter(lambda: inbox.get(PATIENCE_S), b""))
        inbox.close()
    assert b"".join(piece or b"" for piece in pieces) == b"x" * 600_000


def test_no_thread_is_left_waiting_in_an_open_pipe() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        inbox = PipeInbox(pipe)
        inbox.close()
        assert "wevent-input" not in {thread.name for thread in threading.enumerate()}
    os.close(writing)


def test_a_slow_reader_holds_the_sender_back(tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        inbox = PipeInbox(endless)
        while inbox.waiting() < 4:
            pass
        assert inbox.waiting() == 4
        inbox.close()
        assert "wevent-input" not in {thread.name for thread in threading.enumerate()}


def test_a_closed_standard_input_is_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidInput, match="a closed one"):
        standard_input()
