"""The publisher of a service, in a thread of its own: the same session as `wevent publish` runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wevent.outputs import KeptOutput
from wevent.publishing.configuration import Settings
from wevent.publishing.session import RunReport, run
from wevent.service.publishing_thread import PublishingThread
from wevent.service.storage_probe import ProbeThread, StorageProbe
from wevent.streams.clock import SlotClock
from wevent.streams.live.spool import spool_folder
from wevent.streams.live.spool_source import SpoolSource


class PublisherThread(PublishingThread):
    """The only publisher of a journal in a file; see `PublishingThread`."""

    _spool: SpoolSource | None = None
    _probe: ProbeThread | None = None

    def _publish(self) -> RunReport:
        output = KeptOutput() if self._settings.out is None else None
        watch = replace(self._watch, begun=self._begun, progress=self._progress)
        report = run(self._settings, self._intent, self._read, watch, output, self._open, enrolling=True)
        return replace(report, summary=report.summary._replace(interrupted=self._asked.is_set()))

    def _stop_parts(self) -> None:
        if self._probe is not None:
            self._probe.stop()
            self._probe.join()
        if self._spool is not None:
            self._spool.close()

    def _open(self, settings: Settings, clock: SlotClock, last: int | None) -> SpoolSource:
        assert isinstance(settings.journal, Path)
        source = SpoolSource(settings, clock, last, folder=spool_folder(settings.journal))
        self._state.clock, self._state.last, self._state.receiver = clock, last, source
        self._source = self._spool = source
        self._probe = ProbeThread(StorageProbe(self._state, source.probe))
        self._probe.start()
        if self._asked.is_set():
            source.stop()
        return source

    def _begun(self, first: int, last: int | None) -> None:
        self._state.committed = first - 1
        self._state.phase = "running"
        self._watch.begun(first, last)
