"""Stopping by signal: at once while waiting for input, after the open transaction otherwise; and leaving no memory."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


class Stopped(Exception):
    """A signal came while waiting for input; nothing was lost."""


class Stop:
    """Takes SIGINT and SIGTERM over while in use, in the main thread.

    Args:
        tell: called when one comes, for a source that can end its waiting by itself; without it a wait is broken off.

    Attributes:
        asked: whether one has come.
    """

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        self.asked = False
        self._tell = tell
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A stretch of waiting: a signal ends it with `Stopped`, unless the source was told."""
        self._waiting = True
        try:
            if self.asked:
                raise Stopped
            yield
        finally:
            self._waiting = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._tell is not None:
            self._tell()
        elif self._waiting:
            self._waiting = False
            raise Stopped
