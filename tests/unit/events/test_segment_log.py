"""The event log of one process: what it stores, and when."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wevent.errors import ServiceStopping, StorageFailed
from wevent.events.records import NO_NAME
from wevent.events.segment_log import SegmentLog


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    """Another process may load the folder from then on, and would never count what comes later."""
    log = SegmentLog(tmp_path / "log")
    log.close()
    with pytest.raises(ServiceStopping):
        log.put([(NO_NAME, {1: b"late"})])
    assert not list((tmp_path / "log").glob("*.events"))


@pytest.mark.parametrize("name", ["1.events", "٣.events", "0000000001.events.old", "notes.txt"])
def test_a_stray_file_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    log = SegmentLog(tmp_path)
    assert log.put([(NO_NAME, {1: b"event"})]) == (True, 0)
    log.close()
    assert {path.name for path in tmp_path.iterdir()} == {name, "0000000001.events", "1.key"}


@pytest.mark.parametrize("name", ["0000000001.events", "1.key"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_named(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / name)
    with pytest.raises(StorageFailed, match=rf"{name} is a pipe, .*not a file\. Remove it\.") as caught:  # and no wait
        SegmentLog(tmp_path).put([(NO_NAME, {1: b"event"})])
    assert not caught.value.passing
