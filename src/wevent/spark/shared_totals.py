"""Why events of a stream were not counted: one sum for the thread of the query, the loop's, and whoever asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wevent.streams.uncounted import Uncounted


class SharedTotals:
    """`Uncounted`, which one thread at a time changes or reads."""

    def __init__(self) -> None:
        self._uncounted = Uncounted()
        self._lock = threading.RLock()  # a signal handler may ask in the thread that has it

    @contextmanager
    def changing(self) -> Iterator[Uncounted]:
        """What is added up, and nobody else at it."""
        with self._lock:
            yield self._uncounted

    def totals(self) -> dict[str, int]:
        """As of `Uncounted.totals`."""
        with self._lock:
            return self._uncounted.totals()
