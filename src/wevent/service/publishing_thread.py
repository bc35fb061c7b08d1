"""The publisher of a service, in a thread that runs the same session as `wevent publish`, and its progress.

A journal in a file has one publisher. Over a journal in a database one replica at a time is the writer: it has the lease of
the journal, closes slots and publishes them. The other replicas stand by: they receive events, follow the journal, and one
of them becomes the writer when the former one is gone. A writer that loses the lease, or whose database is away, stands by
again. The next writer stores the draws that it had written ahead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from wevent.errors import JournalLocked, JournalUnreachable, ReaderGone, StorageFailed, WeventError
from wevent.events.live_source import LiveSource
from wevent.events.receiver import BatchReceiver
from wevent.events.records import EventStore
from wevent.events.segment_log import SegmentLog
from wevent.journal import Journal, PostgresAddress, is_begun, open_journal
from wevent.outputs import KeptOutput
from wevent.publishing.event_stores import ReplicaStores, open_event_log
from wevent.publishing.loop import DueMoments, Summary
from wevent.publishing.resolve import resolve
from wevent.publishing.session import RunCallbacks, RunReport, SourceFactory, run
from wevent.schemas import Condition, Role
from wevent.service.problems import not_running
from wevent.settings import RestoreOptions, RunOptions, Settings
from wevent.settings.values import utc_time
from wevent.streams.clock import TOLERANCE_US, SlotClock, wall_clock_us
from wevent.streams.source import Rejections

if TYPE_CHECKING:
    from wevent.events.postgres_store import PostgresStore

MAX_BEHIND = 3  # number of releases that may be due and not out while a service still counts as ready
SILENT_S = 5.0  # seconds without an answer after which a database is away: it is asked twice a second, but may hang
PROBE_S = 2.0  # seconds between two writes that check the storage
ROLE_LOG = "wevent.service.role"
"""Log of takeovers for the operator, at every level but `--quiet` and `--log warning`; nothing of events."""

_log = logging.getLogger(ROLE_LOG)
_INTAKE_PATIENCE_S = 3.0  # of a sender with a database that does not answer
_TRY_S = 0.5  # between looks for a writer, and for commits without news
_OF_THIS_START: dict[str, Any] = {"start_over": False, **asdict(RestoreOptions())}


@dataclass
class PublisherState:
    """Progress of the publisher."""

    grace_us: int  # after the end of a slot, in which its events are taken
    due_us: int  # from the end of a slot to its release
    clock: SlotClock | None = None  # None before it has begun
    last: int | None = None  # slot of the stream; None: no end
    committed: int = 0  # last released slot
    phase: Literal["starting", "running", "ended", "failed"] = "starting"
    role: Role = "writer"  # closes slots; "standby" waits for the process that does
    away: bool = False  # whether the database of the journal refuses or does not answer
    storing: bool = True  # whether batches can be stored
    heard_s: float | None = None  # monotonic time of the database's last answer; None without a database
    receiver: BatchReceiver | None = field(default=None, repr=False)
    _logged: dict[str, object] = field(default_factory=dict, repr=False, compare=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def advance(self, slot: int) -> None:
        """Note a released slot; from any thread, in any order."""
        with self._guard:
            self.committed = max(self.committed, slot)

    def log(
        self, topic: str, value: object, sentence: str = "", level: int = logging.INFO, error: Exception | None = None
    ) -> None:
        """Log a sentence if the value of a topic is another one than before; None is its first value."""
        with self._guard:
            is_new, self._logged[topic] = self._logged.get(topic) != value, value
        if is_new and sentence:
            _log.log(level, "%s", sentence, exc_info=error)

    def hear(self) -> None:
        """Note that the database answers."""
        self.away, self.heard_s = False, time.monotonic()
        self.log("database", None, "the database answers again")

    def lose(self, error: Exception) -> None:
        """Note that the database does not answer, or cannot be followed."""
        self.away = True
        if isinstance(error, WeventError):
            self.log("database", type(error), f"the database is away, retrying: {error}", logging.WARNING)
        else:  # a defect, with its traceback
            self.log("database", type(error), "the journal cannot be followed, retrying", logging.ERROR, error)

    def probe(self, write: Callable[[], None]) -> None:
        """Note whether a small write where batches go succeeds; a refused batch may depend on one user's record.

        Raises JournalUnreachable if the database does not answer.
        """
        try:
            write()
        except JournalUnreachable:
            raise
        except StorageFailed as fault:
            self.storing = False
            self.log("storage", "failed", f"batches cannot be stored: {fault}", logging.WARNING)
        else:
            self.storing = True
            self.log("storage", None, "batches can be stored again")

    @property
    def behind(self) -> int:
        """Number of releases that are due and not out; negative if releases are ahead of the clock."""
        behind = self.due_through() - self.committed
        if self.clock is not None and self.committed not in (0, self.last):
            ahead_us = self.clock.start_of(self.committed + 1) - wall_clock_us()
            if ahead_us > TOLERANCE_US:  # the slot after the last release has not begun: events of now are late
                return behind
        return max(0, behind)

    def due_through(self) -> int:
        """Return the last slot whose release is due by the clock, out or not; below 1 if none is."""
        if self.clock is None:
            return 0
        due = DueMoments(self.clock, self.due_us, wall_clock_us).come_through()
        return due if self.last is None else min(due, self.last)

    @property
    def condition(self) -> Condition:
        """Readiness, or the reason against it."""
        if self.phase == "starting" and self.away:
            return "away"
        if self.phase != "running":
            return self.phase
        if self.away or (self.heard_s is not None and time.monotonic() - self.heard_s > SILENT_S):
            return "away"
        if not self.storing:
            return "unwritable"
        behind = self.behind
        if behind < 0:
            return "ahead"
        return "behind" if behind > MAX_BEHIND else "ready"

    @property
    def next_due(self) -> datetime | None:
        """Time of the next release; None if there is none."""
        if self.clock is None or self.phase in ("ended", "failed"):
            return None
        if self.last is not None and self.committed >= self.last:
            return None
        return utc_time(DueMoments(self.clock, self.due_us, wall_clock_us).of(self.committed + 1))

    def take(self) -> BatchReceiver:
        """Return the receiver of batches; refuse if no publisher runs (503)."""
        if self.receiver is None or self.phase != "running":
            raise not_running()
        return self.receiver


class PublishingThread(threading.Thread):
    """Publishes events of a service until it is stopped; the only publisher of a journal in a file.

    Args:
        settings, options: as of `wevent.publishing.session.run`.
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
        state: PublisherState,
        *,
        watch: RunCallbacks,
        over: Callable[[], None],
        waits: Callable[[], None],
    ) -> None:
        super().__init__(name="publisher", daemon=True)
        self._settings, self._options = settings, options
        self._state, self._watch, self._over, self._waits = state, watch, over, waits
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._source: LiveSource | None = None
        self._parts = ExitStack()  # closed however the run ends
        self._totals: Counter[str] = Counter(Rejections().totals())
        self.report: RunReport | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Publish; an error is kept for the thread that started this one."""
        try:
            report = self._publish()
            self._parts.close()
            summary = report.summary._replace(interrupted=self._stopping.is_set())
            self.report = replace(report, summary=summary, totals=dict(self._totals))
            self._state.phase = "ended"
        except BaseException as error:  # noqa: BLE001
            self.error = error
            self._state.phase = "failed"
        finally:
            try:
                self._parts.close()
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

        def opened(settings: Settings, clock: SlotClock, last: int | None) -> LiveSource:
            log = self._parts.enter_context(closing(open_event_log(settings, clock)))
            self._receive(settings, clock, last, log)
            prober = threading.Thread(target=self._probe, args=(log,), name="probe", daemon=True)
            prober.start()
            self._parts.callback(prober.join)
            self._parts.callback(self._ended.set)
            return self._use(LiveSource(settings, clock, last, store=log))

        return self._run_session(opened)

    def _run_session(self, opened: SourceFactory, committed: Callable[[int], None] = lambda slot: None) -> RunReport:
        watch = replace(self._watch, begun=self._begun, committed=committed, progress=self._progress)
        output = KeptOutput() if self._settings.out is None else None
        try:
            return run(self._settings, self._options, watch, output, opened, enrolling=True)
        finally:
            if self._source is not None:
                self._totals.update(self._source.totals())
                self._source = None

    def _use(self, source: LiveSource) -> LiveSource:
        self._source = source
        if self._stopping.is_set():
            source.stop()
        return source

    def _receive(self, settings: Settings, clock: SlotClock, last: int | None, intake: EventStore) -> None:
        state = self._state
        state.clock, state.last = clock, last
        state.receiver = BatchReceiver(settings, clock, last, intake=intake)
        self._parts.callback(self._stop_receiving)

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

    def _stop_receiving(self) -> None:
        """Refuse further batches, answer those that are being written."""
        receiver, self._state.receiver = self._state.receiver, None
        if receiver is not None:
            receiver.close()
            self._totals.update(receiver.totals())


class ReplicaThread(PublishingThread):
    """Publishes events of all replicas while it is the writer, and stands by while another one is."""

    def __init__(self, settings: Settings, *arguments: Any, **more: Any) -> None:
        super().__init__(settings, *arguments, **more)
        assert isinstance(settings.journal, PostgresAddress)
        self._place = settings.journal
        self._stores = ReplicaStores(self._place)
        self._store: PostgresStore | None = None  # of events that it counts as the writer
        self._intake: PostgresStore | None = None
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
        turns = tuple((first, last) for first, last in self._turns if first <= last)
        if report is None:
            committed = self._state.committed
            return RunReport(Summary(committed + 1, committed, 0, True, turns), None, {}, [], self._place)
        return replace(report, summary=report.summary._replace(turns=turns))

    def _write(self) -> RunReport:
        """Publish as the writer; raises as `wevent.publishing.session.run`."""
        store = self._store = self._stores.open("counting", is_writers=True)

        def opened(settings: Settings, clock: SlotClock, last: int | None) -> LiveSource:
            self._resolved = settings, clock, last
            return self._use(LiveSource(settings, clock, last, store=store))

        try:
            return self._run_session(opened, lambda slot: self._stores.announce(store))
        finally:
            self._state.role = "standby"
            store.close()

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
            state.log("role", None)  # the next role is logged in any case
            sentence = f"stands by until the journal can be written again: {error}"
            state.log("failure", str(error), sentence, logging.WARNING)
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
                        self._state.log("role", "waits", "stands by until another process has begun the journal")
                        continue
                    self._join()
                with open_journal(self._place, patience_s=0.0) as journal:
                    writer = journal.writer()
                if writer is None:
                    return
                sentence = f"stands by: process {writer.pid} on {writer.host} writes, since {writer.since}"
                self._state.log("role", sentence, sentence)
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
                self._options = replace(self._options, **_OF_THIS_START)
        self._resolved = resolved.settings, resolved.clock, resolved.last
        committed = self._stores.join()
        self._take_part(committed)
        self._watch.begun(committed + 1, resolved.last)

    def _begun(self, first: int, last: int | None) -> None:
        # the operator's options were for this start: a later one of this process is a restart
        self._options = replace(self._options, **_OF_THIS_START)
        self._state.role = "writer"
        self._state.log("failure", None)
        self._state.log("role", first, f"writes from slot {first} on")
        self._turns.append((first, first - 1))
        self._take_part(first - 1)
        self._watch.begun(first, last)
        assert self._store is not None
        self._store.let_in()

    def _progress(self, slot: int, last: int | None) -> None:
        self._turns[-1] = self._turns[-1][0], slot
        self._options = replace(self._options, reconfigure=False)  # not before: a version is stored with its first slot
        self._rest_s = 0.0
        super()._progress(slot, last)

    def _take_part(self, committed: int) -> None:
        """Receive events under the active settings, and follow the journal."""
        assert self._resolved is not None
        settings, clock, last = self._resolved
        state = self._state
        state.advance(committed)
        if (state.clock, state.last) != (clock, last) or state.receiver is None:
            self._stop_receiving()
            self._intake = self._stores.open("intake", _INTAKE_PATIENCE_S)
            self._receive(settings, clock, last, self._intake)
        if self._follower is None:
            self._follower = JournalFollower(self._stores, state, lambda slot: self._watch.progress(slot, state.last))
            self._follower.start()
            self._parts.callback(self._follower.join)
            self._parts.callback(self._follower.stop)
        state.phase = "running"

    def _stop_receiving(self) -> None:
        super()._stop_receiving()
        if self._intake is not None:
            self._intake.close()
            self._intake = None


def _is_sound(journal: Journal) -> bool:
    """Return whether a journal that is open for reading is not behind its witness, and is no backup."""
    record, head = journal.witnessed(), journal.head()  # in this order: it goes on meanwhile
    is_whole = record.committed <= head.committed or record.follows(head.digest)
    return record.journal == journal.identity and is_whole and not head.copied


class JournalFollower(threading.Thread):
    """Reports every commit of a journal that this process shares with others, and has been begun.

    A slot is reported only once the key of its events is destroyed: its writer may have died before that.
    """

    def __init__(self, stores: ReplicaStores, state: PublisherState, told: Callable[[int], None]) -> None:
        super().__init__(name="follower", daemon=True)
        self._state, self._told = state, told
        self._over = threading.Event()
        self._news = stores.shared.news()
        self._events = stores.open("following", patience_s=0.0)

    def run(self) -> None:
        """Follow until it is stopped; a database that does not answer is asked again and again."""
        self._state.hear()  # the journal was just read
        next_probe_s = 0.0
        while not self._over.is_set():
            try:
                committed = self._news.wait(_TRY_S)
                if committed > self._state.committed:
                    self._events.destroy(committed)
                    self._state.advance(committed)
                    self._told(committed)
                if time.monotonic() >= next_probe_s:
                    next_probe_s = time.monotonic() + PROBE_S
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
