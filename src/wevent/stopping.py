"""Stopping by signal: at once while waiting for input, after the open transaction otherwise."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """A signal came while waiting for input; nothing was lost."""


class Stop:
    """Takes SIGINT and SIGTERM over while in use, in the main thread.

    Attributes:
        asked: whether one has come.
    """

    def __init__(self) -> None:
        self.asked = False
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
        """A stretch that a signal ends with `Stopped`."""
        self._waiting = True
        try:
            if self.asked:
                raise Stopped
            yield
        finally:
            self._waiting = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._waiting:
            self._waiting = False
            raise Stopped
