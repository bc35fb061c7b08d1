"""What publishes beside the calls of a service: a thread that keeps what it came to, and can be asked to end."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from wevent.publishing.configuration import Settings
from wevent.publishing.intent import Intent
from wevent.publishing.session import RunReport, Watch
from wevent.service.publisher_state import PublisherState


class Stoppable(Protocol):
    """What slots are counted from."""

    def stop(self) -> None:
        """Make it end; from any thread."""


class PublishingThread(threading.Thread, ABC):
    """Publishes what a service receives until it is told to stop.

    Args:
        settings: of the stream.
        intent: what the operator says for this run alone.
        read: files that the settings were read from, and what each is.
        state: what all calls see of it.
        watch: who is told.
        over: called when it has ended, in this thread.
        waits: called when it cannot begin yet, and waits until it can.

    Attributes:
        report: what the run came to, once it is over.
        error: what ended it, None if nothing did.
    """

    def __init__(
        self,
        settings: Settings,
        intent: Intent,
        read: Iterable[tuple[str, Path]],
        state: PublisherState,
        *,
        watch: Watch,
        over: Callable[[], None],
        waits: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="publisher", daemon=True)
        self._settings, self._intent, self._read = settings, intent, list(read)
        self._state, self._watch, self._over, self._waits = state, watch, over, waits
        self._asked = threading.Event()
        self._source: Stoppable | None = None
        self.report: RunReport | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Publish; what goes wrong is kept for who started this."""
        try:
            self.report = self._publish()
            self._state.phase = "ended"
        except BaseException as error:  # noqa: BLE001
            self.error = error
            self._state.phase = "failed"
        finally:
            try:
                self._stop_parts()
            finally:
                self._over()  # whoever waits for the end would wait for ever

    def stop(self) -> None:
        """Let it end: events of slots that are not committed stay where they are. From any thread."""
        self._asked.set()
        source = self._source  # its own thread may leave it at any time
        if source is not None:
            source.stop()

    @abstractmethod
    def _publish(self) -> RunReport:
        """Publish until the last slot is out, or it is asked to end."""

    @abstractmethod
    def _stop_parts(self) -> None:
        """Close what is open, however it ended."""

    def _progress(self, slot: int, last: int | None) -> None:
        self._state.advance(slot)
        self._watch.progress(slot, last)
