"""The event log of one process: what it stores, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from wevent.errors import ServiceStopping
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
    log.declare(bytes(16), b"meaning")
    assert log.put([(NO_NAME, {1: b"event"})]) == (True, 0)
    log.close()
    assert {path.name for path in tmp_path.iterdir()} == {name, "0000000001.events", "1.key"}
