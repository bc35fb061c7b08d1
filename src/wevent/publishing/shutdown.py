"""Orderly and forced ends of a run: signals, a database that does not answer, and no core dumps."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self

from wevent.journal import JournalAddress, PostgresAddress, share_journal

END_S = 20.0
"""Time for an orderly end after a signal. A second signal ends the wait, not the run."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ANSWER_S = 5.0  # time for the database to answer
_EXIT_CODE = 75  # the fault may pass: EX_TEMPFAIL


def forbid_core_dumps() -> None:
    """Forbid a crash of this process to write its memory, and the events in it, to a file."""
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


class Stopped(BaseException):
    """A signal during work that need not be finished. Not an error, like KeyboardInterrupt."""


class Stop:
    """Handler of SIGINT and SIGTERM while in use, in the main thread."""

    def __init__(self) -> None:
        self.asked = False  # whether a signal has come
        self._callbacks: list[Callable[[], None]] = []
        self._before: dict[int, Any] = {}
        self._at_once = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def call(self, callback: Callable[[], None]) -> None:
        """Call a function at every signal, and now if one has come."""
        self._callbacks.append(callback)
        if self.asked:
            callback()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Allow signals to interrupt work that need not be finished: raise `Stopped` if one comes, or has come."""
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
            self._at_once = False  # a second signal must not interrupt the clean-up
            raise Stopped
        for callback in self._callbacks:
            callback()


class ForcedShutdown:
    """End of the process some time after a signal, if the database of its journal does not answer; a context manager.

    A statement that waits for a frozen server waits for ever. A timeout must not end a slot that is being drawn or stored,
    since the next run would draw it again (spec 10). Therefore only a signal together with a database that does not answer
    ends the process, which no draw influences. The next run reads the outcome of an open commit before it draws. Nothing
    happens for a journal in a file.
    """

    def __init__(self, place: JournalAddress) -> None:
        self._place = place
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._hurry.set()

    def request(self) -> None:
        """Start the wait after a signal, or end it after a further one."""
        if self._thread is not None:
            self._hurry.set()
        elif not isinstance(self._place, Path):
            self._thread = threading.Thread(target=self._watch, name="wevent-shutdown", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        assert isinstance(self._place, PostgresAddress)
        shared = share_journal(self._place)
        while True:
            self._hurry.wait(END_S)
            self._hurry.clear()
            if self._is_over:
                return
            if not shared.answers(_ANSWER_S) and not self._is_over:
                self._end()

    def _end(self) -> NoReturn:
        """Exit at once: threads that wait for the database cannot be ended and would block the interpreter."""
        sentence = (
            f"Error: The database of the journal does not answer ({self._place}). The run ended as asked without it: what is "
            "committed is intact, and the next run reads the outcome of the last slot first."
        )
        logging.shutdown()
        sys.stdout.flush()
        os.write(2, f"{sentence}\n".encode())
        os._exit(_EXIT_CODE)
