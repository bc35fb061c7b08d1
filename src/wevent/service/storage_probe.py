"""A small write of the service itself, every few seconds, where batches go: readiness states whether batches can be stored.

A refused batch changes nothing here: its refusal may depend on one user's record.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from wevent.errors import JournalUnreachable, StorageFailed
from wevent.service.publisher_state import PublisherState
from wevent.service.role_log import NAME

EVERY_S = 2.0
"""Seconds between two writes."""

_log = logging.getLogger(NAME)


class StorageProbe:
    """The result of the last write, kept in the state; each change is logged once.

    Args:
        state: state of the publisher, which all calls see.
        write: the write; raises `StorageFailed` if batches cannot be stored.
    """

    def __init__(self, state: PublisherState, write: Callable[[], None]) -> None:
        self._state, self._write = state, write
        self._next_s = 0.0

    def check(self) -> None:
        """Write, if it is time to.

        Raises:
            JournalUnreachable: if the database does not answer.
        """
        now_s = self._state.monotonic_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        try:
            self._write()
        except JournalUnreachable:
            raise
        except StorageFailed as fault:
            if self._state.storing:
                _log.warning("batches cannot be stored: %s", fault)
            self._state.storing = False
        else:
            if not self._state.storing:
                _log.info("batches can be stored again")
            self._state.storing = True


class ProbeThread(threading.Thread):
    """A thread that checks a probe until `stop`."""

    def __init__(self, probe: StorageProbe) -> None:
        super().__init__(name="probe", daemon=True)
        self._probe, self._over = probe, threading.Event()

    def run(self) -> None:
        """Check again and again."""
        while not self._over.is_set():
            self._probe.check()
            self._over.wait(EVERY_S)

    def stop(self) -> None:
        """End the thread; from any thread."""
        self._over.set()
