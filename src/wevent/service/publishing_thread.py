"""The publisher of a service, in a thread: the same session as `wevent publish` runs.

A journal in a file has one publisher. Over a journal in a database one replica at a time is the writer: it has the lock of
the journal, closes slots and publishes them. The other replicas stand by: they take events in, follow the journal, and one
of them becomes the writer when the former one is gone. A writer that loses the lock, or whose database is away, stands by
again; the next writer stores the draws that it had written down.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wevent.errors import JournalLocked, JournalUnreachable, ReaderGone, StorageFailed
from wevent.events.live_source import LiveSource
from wevent.events.receiver import BatchReceiver
from wevent.events.segment_log import SegmentLog
from wevent.journal import Journal, PostgresPlace, is_begun, open_journal
from wevent.outputs import KeptOutput
from wevent.publishing.configuration import Settings
from wevent.publishing.event_stores import ReplicaStores, open_event_log
from wevent.publishing.loop import Summary
from wevent.publishing.resolve import RunOptions, resolve
from wevent.publishing.session import RunReport, Watch, run
from wevent.service.feed import JournalFollower
from wevent.service.publisher_state import PROBE_S, PublisherState, RoleLog, StorageProbe
from wevent.streams.clock import SlotClock
from wevent.streams.uncounted import Uncounted

_TAKEN_IN_S = 3.0  # so long a sender waits for a database that does not answer
_TRY_S = 0.5  # between looks whether there is a writer
_ABOUT_A_LOSS: dict[str, Any] = {"released_through": None, "widest_window": None, "start_over": False}


class PublishingThread(threading.Thread):
    """Publishes events of a service until it is stopped; the only publisher of a journal in a file.

    Args:
        settings: of the stream.
        options: options for this run alone.
        read: files that the settings were read from, and what each is.
        state: progress of the publisher, which all calls see.
        watch: callbacks.
        over: called when it has ended, in this thread.
        waits: called when it cannot begin yet, and waits until it can.

    Attributes:
        report: result of the run, once it is over.
        error: what ended it, None if nothing did.
    """

    def __init__(
        self,
        settings: Settings,
        options: RunOptions,
        read: Iterable[tuple[str, Path]],
        state: PublisherState,
        *,
        watch: Watch,
        over: Callable[[], None],
        waits: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="publisher", daemon=True)
        self._settings, self._options, self._read = settings, options, list(read)
        self._state, self._watch, self._over, self._waits = state, watch, over, waits
        self._asked, self._ended = threading.Event(), threading.Event()
        self._source: LiveSource | None = None
        self._receiver: BatchReceiver | None = None
        self._log: SegmentLog | None = None
        self._totals: Counter[str] = Counter(Uncounted().totals())
        self._prober: threading.Thread | None = None
        self.report: RunReport | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Publish; an error is kept for the thread that started this one."""
        try:
            self.report = self._publish()
            self._state.phase = "ended"
        except BaseException as error:  # noqa: BLE001
            self.error = error
            self._state.phase = "failed"
        finally:
            try:
                self._close()
            finally:
                self._over()  # the process waits for the end

    def stop(self) -> None:
        """End the run: events of slots that are not committed stay where they are. From any thread."""
        self._asked.set()
        source = self._source  # its own thread may leave it at any time
        if source is not None:
            source.stop()

    def _publish(self) -> RunReport:
        """Publish until the last slot is out, or it is stopped."""
        report = self._run_session(replace(self._watch, begun=self._begun, progress=self._progress), self._open_source)
        self._close()
        summary = report.summary._replace(interrupted=self._asked.is_set())
        self._totals.update(report.totals)
        return replace(report, summary=summary, totals=dict(self._totals))

    def _run_session(self, watch: Watch, opened: Callable[[Settings, SlotClock, int | None], LiveSource]) -> RunReport:
        output = KeptOutput() if self._settings.out is None else None
        return run(self._settings, self._options, self._read, watch, output, opened, enrolling=True)

    def _open_source(self, settings: Settings, clock: SlotClock, last: int | None) -> LiveSource:
        self._log = log = open_event_log(settings, clock)
        self._source = source = LiveSource(settings, clock, last, store=log)
        self._receiver = BatchReceiver(settings, clock, last, intake=log)
        self._state.clock, self._state.last, self._state.receiver = clock, last, self._receiver
        probe = StorageProbe(self._state, log.probe)
        self._prober = threading.Thread(target=self._check_storage, args=(probe,), name="probe", daemon=True)
        self._prober.start()
        if self._asked.is_set():
            source.stop()
        return source

    def _check_storage(self, probe: StorageProbe) -> None:
        while not self._ended.is_set():
            probe.check()
            self._ended.wait(PROBE_S)

    def _begun(self, first: int, last: int | None) -> None:
        self._state.committed = first - 1
        self._state.phase = "running"
        self._watch.begun(first, last)

    def _progress(self, slot: int, last: int | None) -> None:
        self._state.advance(slot)
        self._watch.progress(slot, last)

    def _close(self) -> None:
        """Close all parts, however the run ended."""
        self._ended.set()
        if self._prober is not None:
            self._prober.join()
        self._stop_receiving()
        if self._log is not None:
            self._log.close()

    def _stop_receiving(self) -> None:
        """Refuse further batches, answer those that are being written."""
        if self._receiver is not None:
            self._receiver.close()
            self._totals.update(self._receiver.totals())
            self._receiver = None


class ReplicaThread(PublishingThread):
    """Publishes events of all replicas while it is the writer, and stands by while another one is.

    Raises:
        InvalidJournal: if the address names no side folder.
    """

    def __init__(self, settings: Settings, *arguments: Any, **more: Any) -> None:
        super().__init__(settings, *arguments, **more)
        assert isinstance(settings.journal, PostgresPlace)
        self._place = settings.journal
        self._stores = ReplicaStores(self._place)
        self._leave_intake: Callable[[], None] = _nothing
        self._follower: JournalFollower | None = None
        self._role = RoleLog()
        self._rest_s = 0.0  # before the next attempt, after one that failed
        self._turns: list[tuple[int, int]] = []  # slots that it published, each time that it was the writer
        self._settled: tuple[Settings, SlotClock, int | None] | None = None  # what events are taken in under

    def _publish(self) -> RunReport:
        """Be the writer whenever that is possible, until the last slot is out or it is stopped."""
        self._state.role = "standby"
        report: RunReport | None = None
        while report is None and not self._asked.is_set():
            try:
                report = self._write()
            except JournalLocked:
                pass
            except StorageFailed as error:  # the database is away, is a standby, or has no room: that may change
                if isinstance(error, ReaderGone):
                    raise
                self._bear(error)
            if report is None:
                self._stand_by()
        self._close()
        turns = tuple((first, last) for first, last in self._turns if first <= last)
        if report is None:
            stood_by = Summary(self._state.committed + 1, self._state.committed, 0, True, turns)
            return RunReport(stood_by, None, dict(self._totals), [], self._place)
        summary = report.summary._replace(interrupted=self._asked.is_set(), turns=turns)
        return replace(report, summary=summary, totals=dict(self._totals))

    def _write(self) -> RunReport:
        """Publish as the writer; raises as `wevent.publishing.session.run`."""
        store = self._stores.open("counting", is_writers=True)
        sources: list[LiveSource] = []

        def opened(settings: Settings, clock: SlotClock, last: int | None) -> LiveSource:
            source = LiveSource(settings, clock, last, store=store)
            sources.append(source)
            self._source = source
            self._settled = settings, clock, last
            if self._asked.is_set():
                source.stop()
            return source

        def committed(slot: int) -> None:
            self._stores.announce(store)

        def begun(first: int, last: int | None) -> None:
            self._begun(first, last)
            store.let_in()

        watch = replace(self._watch, begun=begun, committed=committed, progress=self._progress)
        try:
            return self._run_session(watch, opened)
        finally:
            self._state.role = "standby"
            store.close()
            self._source = None
            for source in sources:
                self._totals.update(source.totals())

    def _bear(self, error: StorageFailed) -> None:
        """Wait before the journal is tried again, the longer the more often it failed: each attempt of a writer costs a
        fence, and ends the sessions of the one before.

        Raises:
            StorageFailed: this one, before the journal was ever used, if it does not pass: an address that is wrong.
        """
        if self._follower is None:
            if not error.passing:
                raise error
            self._state.away = isinstance(error, JournalUnreachable)
            self._waits()
        if self._state.away:
            self._role.away(error)
        else:
            self._role.stops_writing(error)
        self._rest_s = min(max(2 * self._rest_s, _TRY_S), self._place.lease_s)
        self._asked.wait(self._rest_s)

    def _stand_by(self) -> None:
        """Wait until it may be worth while to try again: nobody writes, or whoever does may be standing still."""
        waited_s = 0.0
        while waited_s < self._place.lease_s / 2 and not self._asked.wait(_TRY_S):
            waited_s += _TRY_S
            try:
                if self._follower is None:
                    if not is_begun(self._place):
                        self._role.waits()
                        continue
                    self._join()
                with open_journal(self._place, patience_s=0.0) as journal:
                    writer = journal.writer()
                if writer is None:
                    return
                self._role.stands_by(writer)
            except JournalUnreachable as error:
                waited_s = 0.0
                if self._follower is None:
                    self._bear(error)
            except StorageFailed as error:
                self._bear(error)

    def _join(self) -> None:
        """Take events in, and follow the journal, which another replica has begun."""
        with open_journal(self._place) as journal:
            resolved = resolve(journal, self._settings, self._options, enrolling=True)
            is_settled = journal.head().committed >= (self._options.released_through or 0)
            if is_settled and _is_sound(journal):  # whoever writes it has done what was said
                self._options = replace(self._options, **_ABOUT_A_LOSS)
        self._settled = resolved.settings, resolved.clock, resolved.last
        committed = self._stores.join()
        self._take_part(committed)
        self._watch.begun(committed + 1, resolved.last)

    def _begun(self, first: int, last: int | None) -> None:
        # the operator's options were for this start: a later one of this process is a restart
        self._options = replace(self._options, **_ABOUT_A_LOSS)
        self._state.role = "writer"
        self._role.writes(first)
        self._turns.append((first, first - 1))
        self._take_part(first - 1)
        self._watch.begun(first, last)

    def _progress(self, slot: int, last: int | None) -> None:
        self._turns[-1] = self._turns[-1][0], slot
        self._options = replace(self._options, new_epoch=False)  # not before: an epoch is stored with its first slot
        self._rest_s = 0.0
        super()._progress(slot, last)

    def _take_part(self, committed: int) -> None:
        """Take events in under the settings that are in force, and follow the journal."""
        assert self._settled is not None
        settings, clock, last = self._settled
        state = self._state
        state.advance(committed)
        if (state.clock, state.last) != (clock, last) or self._receiver is None:
            self._stop_receiving()
            intake = self._stores.open("intake", _TAKEN_IN_S)
            self._leave_intake = intake.close
            self._receiver = BatchReceiver(settings, clock, last, intake=intake)
            state.clock, state.last, state.receiver = clock, last, self._receiver
        if self._follower is None:
            self._follower = JournalFollower(
                self._stores, state, lambda slot: self._watch.progress(slot, state.last), self._role
            )
            self._follower.start()
        state.phase = "running"

    def _close(self) -> None:
        """Follow no more, and take nothing in; all threads end."""
        if self._follower is not None:
            self._follower.stop()
            self._follower.join()
            self._follower = None
        self._stop_receiving()

    def _stop_receiving(self) -> None:
        super()._stop_receiving()
        self._leave_intake()
        self._leave_intake = _nothing


def _nothing() -> None:
    """Stand in for the intake before there is one."""


def _is_sound(journal: Journal) -> bool:
    """Whether a journal that is open for reading knows what is known outside of it, and is no copy."""
    marked, head = journal.marked(), journal.head()  # in this order: it goes on meanwhile
    return marked.journal == journal.identity and marked.committed <= head.committed and not head.copied
