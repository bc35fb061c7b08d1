"""Bytes of a pipe, read by a thread so that slots close on time however little arrives."""

from __future__ import annotations

import atexit
import os
import queue
import select
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO

from wevent.errors import InvalidInput

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PIECE = 1 << 20  # at most so much is handed on at once; a pipe gives 64 KiB unless the system grants more
_PIECES = 16
_LOOK_S = 0.2  # how long the thread waits at most before it looks whether it is to end


def standard_input() -> BinaryIO:
    """Standard input, as bytes.

    Raises:
        InvalidInput: if it is closed; its number may then belong to another file of this process.
    """
    if sys.stdin is None:
        raise InvalidInput(
            "live lines on standard input", "a closed one", "Pipe the lines in, or redirect it.", path="-"
        )
    return sys.stdin.buffer


class PipeInbox:
    """Reads ahead of whoever counts, a few pieces at most: a slow reader holds the sender back.

    The thread reads the file descriptor itself and ends before the interpreter does: one that waits inside a buffered
    reader would abort the process at its end, with events in the core dump.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        self._file = pipe.fileno()
        self._pieces: queue.Queue[bytes] = queue.Queue(_PIECES)
        self._ended = False  # the end was found behind a piece that is handed on first
        _widen(self._file)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._read, name="wevent-input", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def get(self, timeout_s: float) -> bytes | None:
        """What arrived next, None if nothing did in time, b"" at the end of the input."""
        if self._ended:
            return b""
        try:
            parts = [self._pieces.get(timeout=timeout_s) if timeout_s > 0 else self._pieces.get_nowait()]
        except queue.Empty:
            return None
        size = len(parts[0])
        with suppress(queue.Empty):  # what else is there: many lines at once take less time than few
            while parts[-1] and size < _PIECE:
                parts.append(self._pieces.get_nowait())
                size += len(parts[-1])
        self._ended = not parts[-1] and size > 0
        return b"".join(parts)

    def waiting(self) -> int:
        """How many pieces can be had without waiting, at most."""
        return self._pieces.qsize() + self._ended

    def close(self) -> None:
        """End the thread; what was not read stays in the pipe."""
        atexit.unregister(self.close)
        self._closing.set()
        self._thread.join(timeout=5 * _LOOK_S)

    def _read(self) -> None:
        try:
            while not self._closing.is_set():
                if not _readable(self._file):
                    continue
                piece = os.read(self._file, _PIECE)
                self._put(piece)
                if not piece:
                    return
        except OSError:  # closed under the reader: the input has ended
            self._put(b"")

    def _put(self, piece: bytes) -> None:
        while not self._closing.is_set():
            with suppress(queue.Full):
                self._pieces.put(piece, timeout=_LOOK_S)
                return


def _widen(file: int) -> None:
    """Let a pipe hold a whole piece, where the system allows it: the thread then wakes less often."""
    if fcntl is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _PIECE)


def _readable(file: int) -> bool:
    """Whether reading would not wait; elsewhere than on POSIX systems reading waits."""
    if not hasattr(select, "poll"):
        return True
    poll: Any = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(_LOOK_S * 1000))
