"""Ctrl-C while the program is still being loaded: one word and the documented exit code, wherever it comes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # as shells say it


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """A stretch in which nothing is held or written and SIGINT may end the process on the spot.

    As an exception it would go through other libraries' half-done imports, which turn it into errors of their own. Where
    SIGINT is ignored, or belongs to somebody else, it stays as it is.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)
