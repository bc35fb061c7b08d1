"""The loop: read → step → commit → emit. Exactly one release per slot, ever (spec 10).

The order is the guarantee. A slot is computed, a live one is held until it is due (`DueMoments`), then one transaction stores
its charges, its release and the input position, then it is emitted; last, the source forgets its events: how long that takes
depends on how many they are. A crash before the transaction ends loses a draw that nobody saw, logs included; a crash after
it sends the stored release again, byte for byte. Nothing ever draws a committed slot again.

A live run waits for a disk that is full or fails for a while. The process keeps what it drew and commits the same draw again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from wevent.core.mechanism import NoiseSource
from wevent.counting.roster import Roster
from wevent.errors import InvalidOption, JournalUnreachable, StorageFailed
from wevent.journal import Journal, Registry
from wevent.journal.rebuild import rebuild_publisher
from wevent.journal.record import Batch, Group, Hook, Record, no_hook, of_release
from wevent.journal.terms import SEEDED, Epoch, Terms, class_history
from wevent.outputs import Output
from wevent.people.membership import KnownIds, Rosters
from wevent.publisher.publisher import Publisher
from wevent.publishing.shutdown import Stop
from wevent.settings import StreamSettings
from wevent.settings.values import SECOND_US
from wevent.streams.clock import TOLERANCE_US, SlotClock, wall_clock_us
from wevent.streams.source import SlotCounts, Source

_log = logging.getLogger("wevent.publishing.loop")
_BATCH_S = 0.25  # a transaction gathers slots for at most this long
_HOLD_S = 0.2  # how long to wait at most before looking at the clock again
_AGAIN_S = 0.5  # between attempts while a fault lasts
_BEHIND = 256  # slots that a live source may commit at once when they closed long ago
_SHARE = 4  # releases are due a quarter of a slot after the grace by default, at most a second
_FAR = 1 << 62
_CHANGES_PER_MINUTE = 1 << 13
_LATE_US = 5 * SECOND_US  # a process that is later was frozen; a busy machine wakes up sooner

Progress = Callable[[int, int | None], None]
"""Takes the last committed slot and the last slot there will be, if that is known."""


class DueMoments:
    """The grid of due moments of live slots, fixed before any event is counted: `offset` after their ends (spec 10).

    The time that a slot takes to count and draw depends on counts. Therefore a release is held until its due moment and only
    then committed. A release that misses its moment waits for the next one of the same grid.

    The distance of the moments for late releases is the slot length, or `step_us`.
    """

    def __init__(
        self,
        clock: SlotClock,
        offset_us: int,
        now_us: Callable[[], int] = wall_clock_us,
        *,
        step_us: int | None = None,
    ) -> None:
        self._clock, self.offset_us, self._now_us = clock, offset_us, now_us
        self._step_us = step_us or clock.length_us

    def own(self, slot: int) -> int:
        """Return the due moment of a slot."""
        return self._clock.start_of(slot + 1) + self.offset_us

    def of(self, slot: int) -> int:
        """Return the first moment for the release of a slot that is ready now: its own, or the next one of the grid."""
        own_us = self.own(slot)
        missed = max(0, -((own_us - self._now_us()) // self._step_us))
        return own_us + missed * self._step_us

    def come_through(self) -> int:
        """Return the last slot whose due moment has come; below 1 if none has."""
        return self._clock.slot_of(self._now_us() - self.offset_us) - 1

    def left_s(self, moment_us: int) -> float:
        """Return the seconds until a moment; 0 or less if it has come."""
        return (moment_us - self._now_us()) / SECOND_US

    def is_missed(self, moment_us: int) -> bool:
        """Return whether a moment has passed and a release that was held for it must wait for the next one."""
        return self._now_us() - moment_us > min(_LATE_US, self._step_us // 2)

    def ahead_s(self, slot: int) -> float:
        """Return the seconds until a slot begins; 0 if it has begun or is about to."""
        ahead_us = self._clock.start_of(slot) - self._now_us()
        return ahead_us / SECOND_US if ahead_us > TOLERANCE_US else 0.0


def due_moments(settings: StreamSettings, clock: SlotClock) -> DueMoments | None:
    """Return the due moments of a stream; None where the wall clock does not close slots: files, and close lines."""
    if not settings.is_live or settings.close_slots_by != "clock":
        return None
    return DueMoments(clock, due_offset_us(settings))


def due_offset_us(settings: StreamSettings) -> int:
    """Return the time from the end of a slot to its release."""
    default_us = settings.grace_us + min(SECOND_US, settings.slot_us // _SHARE)
    return default_us if settings.release_delay_us is None else settings.release_delay_us


def limit_changes(terms: Terms) -> int:
    """Return how many changes of the registry a boundary of live slots applies, from the slot length alone."""
    return _CHANGES_PER_MINUTE * max(1, terms.length_us // (60 * SECOND_US))


class SlotRoster(NamedTuple):
    """Roster of a slot."""

    roster: Roster
    slots: int  # number of slots, from this one on, for which it is valid if no user changes
    turnover: int  # registered users who joined plus users who left at its first slot
    unregistered: tuple[int, int, int, int] | None  # their class, as the journal stores it (`Group.of`)


class MemberView:
    """Rosters of consecutive slots, from a registry that is open for writing.

    Raises:
        InvalidJournal: if memberships are not what was stored.
    """

    def __init__(self, registry: Registry, epochs: list[Epoch]) -> None:
        registry.check()
        self._registry = registry
        self._classes = class_history(epochs, registry.restores())
        self._limit = epochs[-1].terms.unknown_users
        self._known = 0  # ids that are never counted as unregistered
        self._rosters: Rosters | None = None
        self._standing: SlotRoster | None = None
        self._until = 0  # the roster is valid before this slot
        self._expiry = 0  # rows that are no longer kept are dropped in this slot

    def at(self, slot: int, most: int | None = None) -> SlotRoster:
        """Return the roster of a slot. Queued changes take effect at the boundary before it.

        At most `most` changes, and rows that are dropped; the others wait for the next boundary.
        """
        standing, rosters = self._standing, self._rosters
        self._standing = self._rosters = None  # after a failure the next call reads the registry again
        changed = self._registry.pending() > 0
        if changed or slot >= self._expiry:
            changed = self._registry.apply(slot, self._classes, most) > 0 or changed
            first = self._registry.next_expiry(self._classes) or _FAR
            # soon after rows may be dropped, and not in every slot; the next slot if this boundary left some
            self._expiry = slot + 1 if first <= slot else max(first, slot + 1 + self._classes.max_window // 8)
            if self._limit and self._expiry > slot + 1:  # ids whose rows were dropped may be counted as unregistered
                rosters = None
        if changed or rosters is None:
            known = KnownIds(self._registry.former_ids(), self._registry.salt) if self._limit else KnownIds()
            self._known = len(known)
            members, tails = self._registry.rows(), self._registry.tails(slot)
            rosters = Rosters(members, tails, classes=self._classes, limit=self._limit, known=known)
            standing = None
        if changed:
            _log.info("changes of the registry take effect in slot %d", slot)
        if standing is None or slot >= self._until:
            roster = rosters.at(slot)
            self._until = rosters.next_change(slot) or _FAR
            unregistered = None
            if roster.unknown_row is not None:
                counted = roster.population.classes[roster.unknown_row]
                unregistered = (*counted.key, self._limit, self._known)
            standing = SlotRoster(roster, 0, self._registry.turnover(slot), unregistered)
        self._standing, self._rosters = standing, rosters
        return standing._replace(slots=min(self._until, self._expiry) - slot)


@dataclass(frozen=True, kw_only=True)
class Running:
    """Options of the loop. None of them is pinned."""

    last: int | None = None  # last slot to publish; None: until the source ends
    batch: int = 1  # maximum of slots per transaction; live input uses 1, and more only for slots that have closed
    keep: int | None = None  # number of slots that the journal keeps; None: all
    due: DueMoments | None = None  # due moments of live releases; None: as soon as they are stored
    # called with the last committed slot, before anything of it goes out; must not take time that depends on events
    committed: Callable[[int], None] = lambda slot: None
    progress: Progress = lambda slot, last: None  # called after every commit, when it is out
    at: Hook = no_hook  # called at each labelled step


class Summary(NamedTuple):
    """Result of a run: public numbers only."""

    first: int
    last: int  # below the first if no slot was published
    sent_again: int  # releases that were missing in the output and were sent from the journal
    interrupted: bool  # whether a signal ended the run
    # Of one of several replicas: the slots that it published itself, first and last of each time that it was the writer. The
    # last slot may then be another replica's.
    turns: tuple[tuple[int, int], ...] | None = None


class Publication:
    """One run over a journal that has terms and is not stale (see `wevent.publishing.staleness`).

    The noise is secure unless a simulation or test passes another one, whatever earlier runs drew; seeded noise is written
    down as unsafe.
    """

    def __init__(
        self,
        journal: Journal,
        source: Source,
        output: Output,
        *,
        running: Running | None = None,
        noise: NoiseSource | None = None,
    ) -> None:
        self._journal, self._source, self._output = journal, source, output
        self._running = running or Running()
        loaded = journal.load()
        self._epoch = loaded.head.epoch
        self.publisher = rebuild_publisher(loaded, journal.epochs(), noise)
        if self.publisher.seeded:
            journal.note_unsafe((SEEDED,))
        self._emitted = loaded.head.emitted
        self._last: Record | None = None  # of this epoch
        if loaded.last is not None and loaded.last.epoch.number == self._epoch.number:
            self._last = loaded.last
        self._roster: Roster | None = None
        self._group = Group.of(self.publisher.population, self.publisher.turnover)
        self._turnover = self.publisher.turnover  # through the last slot that was stepped
        self._since_state = len(loaded.since)
        self._members = MemberView(journal.registry, journal.epochs())
        if loaded.head.position is not None:
            source.resume(loaded.head.position)
        self._committed = loaded.head.committed
        self._is_ahead = False
        self._stop = Stop()

    def run(self, stop: Stop | None = None) -> Summary:
        """Publish until the last slot, the end of the input, or a signal."""
        self._stop = stop = stop or Stop()
        first = self.publisher.slot
        sent_again = self._send_again()
        ahead_s = 0.0 if self._running.due is None else self._running.due.ahead_s(self._committed + 1)
        self._is_ahead = (
            self._committed > 0 and ahead_s > 0
        )  # by a wrong clock, of this machine or of an earlier writer
        if self._is_ahead:
            _log.warning(
                "slot %d is released and slot %d begins in %.0f s: slots are ahead of the clock, and events are late until "
                "then; check the clock of this machine",
                self._committed,
                self._committed + 1,
                ahead_s,
            )
        stop.call(self._source.stop)
        while self._wanted() and not stop.asked and self._transact(self._read()):
            pass
        self._journal.commit(Batch((), None, None, self._emitted))
        return Summary(first, self._committed, sent_again, stop.asked)

    def _send_again(self) -> int:
        """0. Emit committed releases that are missing in the output; return their number."""
        number = self._output.repair(self._journal, self._committed, self._emitted)
        self._emitted = max(self._emitted, self._committed)
        return number

    def _wanted(self) -> int:
        """Return the maximum number of slots of the next transaction."""
        slot, batch = self.publisher.slot, self._running.batch
        closed = self._source.closed_through()
        if self._running.due is not None:  # which of them go out together is a matter of their moments
            batch = _BEHIND
        elif closed is not None:  # none of them waits for one that is still open
            batch = max(batch, min(_BEHIND, closed - slot + 1))
        if self._journal.epoch_waits:  # what comes with an epoch follows at once
            batch = 1
        last = self._running.last
        return max(0, batch if last is None else min(batch, last - slot + 1))

    def _read(self) -> Iterator[SlotCounts]:
        """1. Read: yield counted slots under the roster of the next slot, up to its next change."""
        slot = self.publisher.slot
        portion = None if self._source.closed_through() is None else limit_changes(self._epoch.terms)
        found: list[SlotRoster] = []
        if not self._outlast(lambda: found.append(self._members.at(slot, portion))):
            return
        roster, most, joined_or_left, unregistered_class = found[0]
        if roster is not self._roster:
            unregistered = 0 if self._roster is None else abs(roster.unknown_limit - self._roster.unknown_limit)
            turnover = max(0, self._turnover + joined_or_left + unregistered - self.publisher.turnover)
            if turnover or roster.population != self.publisher.population:
                self.publisher.update(roster.population, turnover=turnover)
            self._roster = roster
            self._group = Group.of(roster.population, self.publisher.turnover, unregistered_class)
        most = min(self._wanted(), most)
        counting = self._source.count(roster, slot, most)
        due, begun, moment_us, took_s = self._running.due, time.monotonic(), 0, 0.0
        for number in range(most):
            # Slots share a transaction if they are there within a moment, or go out at the same moment. A slot that missed
            # its moment is held until the next one of the grid; slots that are due by then go out with it, or they would
            # miss theirs because of it, and so on for ever.
            if due is None:
                is_over = time.monotonic() - begun >= _BATCH_S
            else:
                is_over = due.left_s(moment_us) <= 2 * took_s or due.own(slot + number) > moment_us
            if self._stop.asked or (number and is_over):
                return
            counted = next(counting, None)
            if counted is None:
                return
            stepped = time.monotonic()
            yield counted
            took_s = max(took_s, time.monotonic() - stepped)
            if due is not None and not number:
                moment_us = due.of(slot)

    def _transact(self, slots: Iterator[SlotCounts]) -> bool:
        """Do steps 2 to 5 for the slots of one transaction; return whether there may be more."""
        records, position, state = [], None, None
        for counted in slots:
            records.append(self._step(counted))
            position = counted.position
        if not records:
            return False
        self._since_state += len(records)
        if self._since_state >= state_interval(self.publisher):
            self._since_state, state = 0, self.publisher.state()
        self._running.at("stepped")
        if not self._hold(records[-1].slot):
            return False
        batch = Batch(records, position, state, self._emitted)
        if not self._commit(batch):
            return False
        if self._is_ahead:
            self._is_ahead = False
            _log.warning("slots are no longer ahead of the clock")
        try:
            if self._emit(records):
                self._running.progress(self._committed, self._running.last)
        finally:
            # 5. Forget: no event outlives the commit of its slot
            self._outlast(lambda: self._source.forget(self._committed))
        if self._running.keep is not None and records[-1].slot % 256 < len(records):
            self._outlast(lambda: self._journal.compact(self._running.keep or 0))
        return True

    def _step(self, counted: SlotCounts) -> Record:
        """2. Step: the release and its charges; known to this process alone."""
        if counted.slot != self.publisher.slot:
            problem = f"The source counted slot {counted.slot} instead of slot {self.publisher.slot}."
            raise InvalidOption(problem, "Sources count every slot once.")
        release = self.publisher.step(counted.counts)
        record = of_release(release, self.publisher.measured, self._epoch, self._group, self._last)
        self._last = record
        self._turnover = self.publisher.turnover
        return record

    def _hold(self, slot: int) -> bool:
        """Wait for the due moment of the slot, so that the time to count and draw it shows nowhere.

        Returns False if the run ends before. The draw, which is not public, is then dropped and the next run counts the slot
        again. The end of a run does not depend on what was drawn (spec 10).
        """
        if self._running.due is None:
            return True
        moment_us = self._running.due.of(slot)
        while (left_s := self._running.due.left_s(moment_us)) > 0:
            if self._source.idle(min(left_s, _HOLD_S)):
                return False
            if self._running.due.is_missed(moment_us):  # the process was frozen
                moment_us = self._running.due.of(slot)
        self._running.at("due")
        return True

    def _commit(self, batch: Batch) -> bool:
        """3. Commit: nothing is public before this returns, and nothing is drawn again after it.

        Returns False if the run is stopped while the disk refuses it.
        """
        if not self._outlast(lambda: self._journal.commit(batch, self._running.at)):
            return False
        self._running.at("committed")
        self._committed = batch.records[-1].slot
        if not self._outlast(lambda: self._source.destroy(self._committed)):
            return False
        return self._outlast(lambda: self._running.committed(self._committed))

    def _emit(self, records: list[Record]) -> bool:
        """4. Emit: idempotent by slot; sent again after a crash.

        Returns False if the run is stopped while the output cannot be written.
        """

        def emit() -> None:
            self._output.emit(records)
            self._emitted = records[-1].slot

        def emit_again() -> None:
            self._output.abandon()
            self._send_again()

        attempts = chain([emit], repeat(emit_again))
        if not self._outlast(lambda: next(attempts)(), lambda fault: fault.facts.get("path") != "-"):
            return False
        self._running.at("emitted")
        _log.debug("committed and emitted slots %d to %d", records[0].slot, records[-1].slot)
        return True

    def _outlast(
        self, work: Callable[[], object], may_repeat: Callable[[StorageFailed], bool] = lambda fault: True
    ) -> bool:
        """Do some work, in a live run again and again while a fault lasts that may pass.

        Returns False if the run was stopped meanwhile. `may_repeat` is asked whether the work may be done after a fault.

        Raises:
            StorageFailed: a fault that does not pass, or that this run does not wait for.
        """
        waited = False
        while True:
            try:
                work()
            except StorageFailed as fault:
                waits = self._running.due is not None and fault.passing and not isinstance(fault, JournalUnreachable)
                if not waits or not may_repeat(fault):
                    raise
                if not waited:
                    _log.warning("publishing waits until the fault is over: %s", fault)
                waited = True
            else:
                if waited:
                    _log.info("publishing continues")
                return True
            if self._source.idle(_AGAIN_S) or self._stop.asked:
                return False


def state_interval(publisher: Publisher) -> int:
    """Return how many slots may pass between two stored states: larger ledgers are stored less often.

    A state has two charges per slot of every window, eight bytes each. So the bytes written per slot stay below about
    128 for all windows. Replaying a slot takes microseconds.
    """
    return max(512, sum(row.window for row in publisher.ledger.rows) // 8)
