"""The publisher of a service, in a thread of its own: the same session as `wevent publish` runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from wevent.outputs import KeptOutput
from wevent.publishing.configuration import Settings
from wevent.publishing.session import Intent, RunReport, Watch, run
from wevent.service.publisher_state import PublisherState
from wevent.streams.clock import SlotClock
from wevent.streams.live.spool import spool_folder
from wevent.streams.live.spool_source import SpoolSource


class PublisherThread(threading.Thread):
    """Publishes what a service receives until it is told to stop.

    Args:
        settings: of the stream.
        intent: what the operator says for this run alone.
        read: files that the settings were read from, and what each is.
        state: what all calls see of it.
        watch: who is told.
        over: called when it has ended, in this thread.

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
    ) -> None:
        super().__init__(name="publisher", daemon=True)
        self._settings, self._intent, self._read = settings, intent, list(read)
        self._state, self._watch, self._over = state, watch, over
        self._asked = threading.Event()
        self._source: SpoolSource | None = None
        self.report: RunReport | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Publish; what goes wrong is kept for who started this."""
        settings = self._settings
        output = KeptOutput() if settings.out is None else None
        watch = replace(self._watch, begun=self._begun, progress=self._progress)
        try:
            report = run(settings, self._intent, self._read, watch, output, self._open, enrolling=True)
            summary = report.summary._replace(interrupted=self._asked.is_set())
            self.report = replace(report, summary=summary)
            self._state.phase = "ended"
        except BaseException as error:  # noqa: BLE001
            self.error = error
            self._state.phase = "failed"
        finally:
            try:
                if self._source is not None:
                    self._source.close()
            finally:
                self._over()  # whoever waits for the end would wait for ever

    def stop(self) -> None:
        """Let it end: the events of slots that are not committed stay in their files. From any thread."""
        self._asked.set()
        if self._source is not None:
            self._source.stop()

    def _open(self, settings: Settings, clock: SlotClock, last: int | None) -> SpoolSource:
        assert settings.journal is not None
        source = SpoolSource(settings, clock, last, folder=spool_folder(settings.journal))
        self._state.clock, self._state.last, self._state.receiver = clock, last, source
        self._source = source
        if self._asked.is_set():
            source.stop()
        return source

    def _begun(self, first: int, last: int | None) -> None:
        self._state.committed = first - 1
        self._state.phase = "running"
        self._watch.begun(first, last)

    def _progress(self, slot: int, last: int | None) -> None:
        self._state.committed = slot
        self._watch.progress(slot, last)
