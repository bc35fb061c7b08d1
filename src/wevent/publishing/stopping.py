"""Stopping by signal: the source stops waiting, the open transaction is finished; and a crash leaves no memory."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def forbid_core_dumps() -> None:
    """Let no crash of this process write its memory, and the events in it, to a file."""
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


class Stop:
    """Takes SIGINT and SIGTERM over while in use, in the main thread.

    Args:
        tell: called when one comes: the source ends its waiting by itself.

    Attributes:
        asked: whether one has come.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self.asked = False
        self._tell = tell
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._tell()
