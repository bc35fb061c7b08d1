"""Signals while the program is still being loaded: one word and the documented exit code, wherever they come."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # as shells say it
_RUNS = ("publish", "serve")  # commands that end with exit code 0 when SIGTERM stops them


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """End the process at once on SIGINT, while nothing is held or written.

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


@contextmanager
def stopped_at_once(arguments: Sequence[str]) -> Iterator[None]:
    """End a run that SIGTERM stops before it has begun as orderly as a later one; nothing is held or written yet.

    The run takes the signal over when it opens the journal. Other commands die by the signal, since exit code 0 would mean
    that they are done.
    """
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    ours = threading.current_thread() is threading.main_thread()
    if command not in _RUNS or not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"Stopped.\n")
    os._exit(0)
