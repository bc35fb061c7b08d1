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
