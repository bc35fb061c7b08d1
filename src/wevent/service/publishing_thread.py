"""The publisher of a service, in a thread: the same session as `wevent publish` runs.

A journal in a file has one publisher. Over a journal in a database one replica at a time is the writer: it has the lease of
the journal, closes slots and publishes them. The other replicas stand by: they receive events, follow the journal, and one
of them becomes the writer when the former one is gone. A writer that loses the lease, or whose database is away, stands by
again. The next writer stores the draws that it had written ahead.
"""

from __future__ import annotations

import logging
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
from wevent.publishing.event_stores import ReplicaStores, open_event_log
from wevent.publishing.loop import Summary
from wevent.publishing.resolve import resolve
from wevent.publishing.session import RunReport, SourceFactory, Watch, run
from wevent.service.publisher_state import PROBE_S, PublisherState
from wevent.settings import RunOptions, Settings
from wevent.streams.clock import SlotClock
from wevent.streams.rejections import Rejections

_INTAKE_PATIENCE_S = 3.0  # of a sender with a database that does not answer
_TRY_S = 0.5  # between looks for a writer, and for commits without news
_RESTORE_OPTIONS: dict[str, Any] = {"released_through": None, "widest_window": None, "start_over": False}


class PublishingThread(threading.Thread):
    """Publishes events of a service until it is stopped; the only publisher of a journal in a file.

    Args:
        settings: settings of the stream.
        options: options for this run alone.
        read: files that the settings were read from, and what each is.
        state: progress of the publisher, which all calls see.
        watch: callbacks.
        over: called when it has ended, in this thread.
        waits: called when it cannot begin yet, and waits until it can.

    Attributes:
        report: result of the run, once it is over.
        error: error that ended it, None if none did.
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
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._source: LiveSource | None = None
        self._receiver: BatchReceiver | None = None
        self._log: SegmentLog | None = None
        self._totals: Counter[str] = Counter(Rejections().totals())
        self._prober: threading.Thread | None = None
        self.report: RunReport | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Publish; an error is kept for the thread that started this one."""
        try:
            report = self._publish()
            summary = report.summary._replace(interrupted=self._stopping.is_set())
            self.report = replace(report, summary=summary)
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
        self._stopping.set()
        source = self._source  # its own thread may leave it at any time
        if source is not None:
            source.stop()

    def _publish(self) -> RunReport:
        """Publish until the last slot is released, or it is stopped."""
        report = self._run_session(replace(self._watch, begun=self._begun, progress=self._progress), self._open_source)
        self._close()
        self._totals.update(report.totals)
        return replace(report, totals=dict(self._totals))

    def _run_session(self, watch: Watch, opened: SourceFactory) -> RunReport:
        output = KeptOutput() if self._settings.out is None else None
        return run(self._settings, self._options, self._read, watch, output, opened, enrolling=True)

    def _open_source(self, settings: Settings, clock: SlotClock, last: int | None) -> LiveSource:
        self._log = log = open_event_log(settings, clock)
        source = LiveSource(settings, clock, last, store=log)
        self._receiver = BatchReceiver(settings, clock, last, intake=log)
        self._state.clock, self._state.last, self._state.receiver = clock, last, self._receiver
        self._prober = threading.Thread(target=self._probe, args=(log,), name="probe", daemon=True)
        self._prober.start()
        self._use(source)
        return source

    def _use(self, source: LiveSource) -> None:
        self._source = source
        if self._stopping.is_set():
            source.stop()

    def _probe(self, log: SegmentLog) -> None:
        while not self._ended.is_set():
            self._state.probe(log.probe)
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
        self._leave_intake: Callable[[], None] = lambda: None
        self._follower: JournalFollower | None = None
        self._rest_s = 0.0  # before the next attempt, after one that failed
        self._turns: list[tuple[int, int]] = []  # slots that it published, each time that it was the writer
        self._resolved: tuple[Settings, SlotClock, int | None] | None = None  # what events are received under

    def _publish(self) -> RunReport:
        """Be the writer whenever that is possible, until the last slot is released or it is stopped."""
        self._state.role = "standby"
        report: RunReport | None = None
        while report is None and not self._stopping.is_set():
            try:
                report = self._write()
            except JournalLocked:
                pass
            except ReaderGone:
                raise
            except StorageFailed as error:  # the database is away, is a standby, or has a full disk: that may change
                self._bear(error)
            if report is None:
                self._stand_by()
        self._close()
        turns = tuple((first, last) for first, last in self._turns if first <= last)
        if report is None:
            committed = self._state.committed
            return RunReport(
                Summary(committed + 1, committed, 0, True, turns), None, dict(self._totals), [], self._place
            )
        return replace(report, summary=report.summary._replace(turns=turns), totals=dict(self._totals))

    def _write(self) -> RunReport:
        """Publish as the writer; raises as `wevent.publishing.session.run`."""
        store = self._stores.open("counting", is_writers=True)
        sources: list[LiveSource] = []

        def opened(settings: Settings, clock: SlotClock, last: int | None) -> LiveSource:
            source = LiveSource(settings, clock, last, store=store)
            sources.append(source)
            self._resolved = settings, clock, last
            self._use(source)
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
        state = self._state
        if self._follower is None:
            if not error.passing:
                raise error
            state.away = isinstance(error, JournalUnreachable)
            self._waits()
        if state.away:
            state.lose(error)
        else:
            state.log.say("role", None)  # the next role is logged in any case
            sentence = f"stands by until the journal can be written again: {error}"
            state.log.say("failure", str(error), sentence, logging.WARNING)
        self._rest_s = min(max(2 * self._rest_s, _TRY_S), self._place.lease_s)
        self._stopping.wait(self._rest_s)

    def _stand_by(self) -> None:
        """Wait until another attempt may succeed: there is no writer, or the writer may have stopped."""
        waited_s = 0.0
        while waited_s < self._place.lease_s / 2 and not self._stopping.wait(_TRY_S):
            waited_s += _TRY_S
            try:
                if self._follower is None:
                    if not is_begun(self._place):
                        self._state.log.say("role", "waits", "stands by until another process has begun the journal")
                        continue
                    self._join()
                with open_journal(self._place, patience_s=0.0) as journal:
                    writer = journal.writer()
                if writer is None:
                    return
                sentence = f"stands by: process {writer.pid} on {writer.host} writes, since {writer.since}"
                self._state.log.say("role", sentence, sentence)
            except JournalUnreachable as error:
                waited_s = 0.0
                if self._follower is None:
                    self._bear(error)
            except StorageFailed as error:
                self._bear(error)

    def _join(self) -> None:
        """Receive events, and follow the journal, which another replica has begun."""
        with open_journal(self._place) as journal:
            resolved = resolve(journal, self._settings, self._options, enrolling=True)
            is_settled = journal.head().committed >= (self._options.released_through or 0)
            if is_settled and _is_sound(journal):  # its writer has done what the options say
                self._options = replace(self._options, **_RESTORE_OPTIONS)
        self._resolved = resolved.settings, resolved.clock, resolved.last
        committed = self._stores.join()
        self._take_part(committed)
        self._watch.begun(committed + 1, resolved.last)

    def _begun(self, first: int, last: int | None) -> None:
        # the operator's options were for this start: a later one of this process is a restart
        self._options = replace(self._options, **_RESTORE_OPTIONS)
        self._state.role = "writer"
        self._state.log.say("failure", None)
        self._state.log.say("role", first, f"writes from slot {first} on")
        self._turns.append((first, first - 1))
        self._take_part(first - 1)
        self._watch.begun(first, last)

    def _progress(self, slot: int, last: int | None) -> None:
        self._turns[-1] = self._turns[-1][0], slot
        self._options = replace(self._options, new_epoch=False)  # not before: a version is stored with its first slot
        self._rest_s = 0.0
        super()._progress(slot, last)

    def _take_part(self, committed: int) -> None:
        """Receive events under the active settings, and follow the journal."""
        assert self._resolved is not None
        settings, clock, last = self._resolved
        state = self._state
        state.advance(committed)
        if (state.clock, state.last) != (clock, last) or self._receiver is None:
            self._stop_receiving()
            intake = self._stores.open("intake", _INTAKE_PATIENCE_S)
            self._leave_intake = intake.close
            self._receiver = BatchReceiver(settings, clock, last, intake=intake)
            state.clock, state.last, state.receiver = clock, last, self._receiver
        if self._follower is None:
            self._follower = JournalFollower(self._stores, state, lambda slot: self._watch.progress(slot, state.last))
            self._follower.start()
        state.phase = "running"

    def _close(self) -> None:
        if self._follower is not None:
            self._follower.stop()
            self._follower.join()
            self._follower = None
        self._stop_receiving()

    def _stop_receiving(self) -> None:
        super()._stop_receiving()
        self._leave_intake()
        self._leave_intake = lambda: None


def _is_sound(journal: Journal) -> bool:
    """Return whether a journal that is open for reading is not behind its witness, and is no backup."""
    record, head = journal.witnessed(), journal.head()  # in this order: it goes on meanwhile
    is_whole = record.committed <= head.committed or record.follows(head.digest)
    return record.journal == journal.identity and is_whole and not head.copied


class JournalFollower(threading.Thread):
    """Reports every commit of a journal that this process shares with others.

    A slot is reported only once the key of its events is destroyed: its writer may have died before that.

    Args:
        stores: event stores of the journal, which has been begun.
        state: progress of the publisher, which all calls see.
        told: called with every new committed slot.
    """

    def __init__(self, stores: ReplicaStores, state: PublisherState, told: Callable[[int], None]) -> None:
        super().__init__(name="follower", daemon=True)
        self._state, self._told = state, told
        self._over = threading.Event()
        self._news = stores.shared.news()
        self._events = stores.open("following", patience_s=0.0)
        self._next_probe_s = 0.0

    def run(self) -> None:
        """Follow until it is stopped; a database that does not answer is asked again and again."""
        self._state.hear()  # the journal was just read
        while not self._over.is_set():
            try:
                self._see(self._news.wait(_TRY_S))
                if self._state.monotonic_s() >= self._next_probe_s:
                    self._next_probe_s = self._state.monotonic_s() + PROBE_S
                    self._state.probe(self._events.probe)
                self._state.hear()
            except Exception as error:  # noqa: BLE001  a replica that follows no more would only look like one
                self._state.lose(error)
                self._over.wait(_TRY_S)
        self._state.heard_s = None
        self._news.close()
        self._events.close()

    def stop(self) -> None:
        """End the thread; from any thread."""
        self._over.set()

    def _see(self, committed: int) -> None:
        if committed > self._state.committed:
            self._events.destroy(committed)
            self._state.advance(committed)
            self._told(committed)
