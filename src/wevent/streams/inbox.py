"""Bytes of a pipe, read by a thread so that slots close on time however little arrives."""

from __future__ import annotations

import queue
import threading
from typing import BinaryIO

_PIECE = 1 << 18
_PIECES = 16


class PipeInbox:
    """Reads ahead of whoever counts, a few pieces at most: a slow reader holds the sender back."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._pieces: queue.Queue[bytes] = queue.Queue(_PIECES)
        threading.Thread(target=self._read, name="wevent-input", daemon=True).start()

    def get(self, timeout_s: float) -> bytes | None:
        """What arrived next, None if nothing did in time, b"" at the end of the input."""
        try:
            return self._pieces.get(timeout=timeout_s) if timeout_s > 0 else self._pieces.get_nowait()
        except queue.Empty:
            return None

    def waiting(self) -> int:
        """How many pieces can be had without waiting."""
        return self._pieces.qsize()

    def _read(self) -> None:
        read = getattr(self._pipe, "read1", self._pipe.read)
        try:
            while piece := read(_PIECE):
                self._pieces.put(piece)
        except (OSError, ValueError):  # closed under the reader: the input has ended
            pass
        self._pieces.put(b"")
