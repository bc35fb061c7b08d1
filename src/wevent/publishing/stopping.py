"""Stopping by signal: the source stops waiting, the open transaction is finished; and a crash leaves no memory."""

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


class Stopped(BaseException):
    """A signal came while nothing was under way that has to be finished; not an error, as KeyboardInterrupt is none."""


class Stop:
    """Takes SIGINT and SIGTERM over while in use, in the main thread.

    Args:
        *tell: as of `tells`.

    Attributes:
        asked: whether one has come.
    """

    def __init__(self, *tell: Callable[[], None]) -> None:
        self.asked = False
        self._tell = tell
        self._before: dict[int, Any] = {}
        self._at_once = False

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def tells(self, *tell: Callable[[], None]) -> None:
        """Whom to tell when one comes, at once if it has, and at every further one: the source ends its waiting by itself."""
        self._tell = tell
        if self.asked:
            for told in tell:
                told()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A stretch that may take long and need not be finished.

        Raises:
            Stopped: if a signal comes meanwhile, or has come.
        """
        self._at_once = True
        try:
            if self.asked:
                raise Stopped
            yield
        finally:
            self._at_once = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._at_once:
            self._at_once = False  # one is enough: what is torn down is not torn again
            raise Stopped
        for tell in self._tell:
            tell()
