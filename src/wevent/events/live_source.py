"""Counts of live events: each slot is read from the event store when it closes, by the wall clock or by close lines.

An event never closes a slot. Slots close in order and never reopen, whatever the wall clock does.

Standard input is stored by a thread before its slot closes, so slots close on time however little arrives. A process that is
killed loses the last moment of its input, never an open slot.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

from wevent.counting.labels import Labels
from wevent.counting.roster import NONE_REJECTED, Counts, Rejected, Roster, last_events
from wevent.errors import InvalidEvents, InvalidInput, JournalUnreachable, StorageFailed
from wevent.events.records import NO_NAME, EventStore, RecordCodec, note_sorted, sort_events
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock, SlotDeadlines, wall_clock_us
from wevent.streams.decoding import PIECE_BYTES, PROBLEMS, EventColumns, LineSplitter, explain, time_reader
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.source import SlotCounts, Source

_log = logging.getLogger("wevent.events.live_source")
_LOOK_S = 0.2  # between looks at the wall clock
_AGAIN_S = 0.5  # between attempts while a fault lasts
_TEXT_WEIGHT = 64  # bytes of ids that take as much room as an event
_COMPACT_ABOVE = 1_000_000  # events of an open slot
_PIPE_BYTES = 1 << 20  # a pipe gives 64 KiB at once unless the system grants more
_PIECES = 4  # that may have arrived before a slot closes
_GATHER_S = 0.03  # input of so long shares a write
_SHOWN = 3  # malformed lines that are reported


class LiveSource(Source):
    """Source over an event store that other threads or processes fill.

    `stop` may be called by any thread; the other methods by the one that publishes. Without a last slot it has no end.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        store: EventStore,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        super().__init__(settings, last)
        self._clock, self._store = clock, store
        self._deadlines = SlotDeadlines(clock, settings.grace_us, now_us)
        self._codec = RecordCodec(settings.cells, clock)
        self._stopping = threading.Event()
        self._changed = threading.Condition()  # of totals, and what else threads share
        self._done = 0  # slots up to this one are counted
        self._forgotten = 0  # and nothing of these is left

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as they close, at most `most`; ends with the input, or after `stop`.

        Raises:
            JournalUnreachable: if the database does not answer in time.
            StorageFailed: if the first of them cannot be closed; at a later one it ends.
        """
        if self._done < first - 1:
            self._skip(first - 1)
        for slot in self._slots(first, most):
            if not self._wait_for(slot):
                return
            try:
                self._close(slot)
                counts = self._count(slot, roster)
            except StorageFailed:
                if slot == first:
                    raise
                return  # draws of the slots before are committed: nothing undoes a draw (spec 10)
            if counts is None:
                return
            with self._changed:
                self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        return max(self._done, self._deadlines.closed(self._deadlines.now()))

    def idle(self, wait_s: float) -> bool:
        return self._stopping.wait(wait_s)

    def destroy(self, through: int) -> None:
        self._store.destroy(through)

    def forget(self, through: int) -> None:
        if through > self._forgotten:
            self._store.forget(through)
            self._forgotten = through

    def resume(self, position: Any) -> None:
        super().resume(position)
        self._skip(int(position["slot"]))

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self._stopping.set()
        self._store.close()

    def _skip(self, through: int) -> None:
        """Close slots that are committed, and delete what is left of them."""
        self._close(through)
        self.forget(through)

    def _wait_for(self, slot: int) -> bool:
        """Wait until a slot is closed; returns whether it is, False after `stop` and at the end of the input."""
        while not self._stopping.is_set() and (left_s := self._deadlines.left_s(slot)) > 0:
            self._stopping.wait(min(_LOOK_S, left_s))
        return not self._stopping.is_set()

    def _close(self, slot: int) -> None:
        self._store.close_slot(slot)
        self._done = slot

    def _count(self, slot: int, roster: Roster) -> Counts | None:
        """Count a closed slot; waits for a disk that refuses for a while. None if `stop` was called meanwhile."""
        is_waiting = False
        while True:
            try:
                buffer = self._store.read(slot, lambda records: self._fill(roster, records))
                return buffer.count(len(self._settings.cells))
            except StorageFailed as fault:
                if not fault.passing or isinstance(fault, JournalUnreachable):
                    raise
                if not is_waiting:
                    _log.warning("publishing waits until the fault is over: %s", fault)
                is_waiting = True
            if self.idle(_AGAIN_S):
                return None

    def _fill(self, roster: Roster, records: Iterator[bytes]) -> SlotBuffer:
        """Return the events of records."""
        buffer = SlotBuffer(self._settings.max_cells_per_user, roster)
        for record in records:
            events = self._codec.decode(record)
            if events is not None and len(events.times):
                buffer.add(events)
        return buffer


class SlotBuffer:
    """Events of one slot, reduced to those that can still count: the last cells of each user.

    Order of arrival does not matter: of a user's events the latest counts, of those at the same microsecond the one
    in the cell declared last.

    Args:
        limit: number of cells of a user that count.
        roster: users of the slot.
    """

    def __init__(self, limit: int, roster: Roster) -> None:
        self._limit, self._roster = limit, roster
        self._rejected = NONE_REJECTED
        self._parts: list[EventColumns] = []
        self._size = 0
        self._full = _COMPACT_ABOVE  # above this size events that cannot count are dropped

    def add(self, batch: EventColumns) -> None:
        """Add events of this slot."""
        self._parts.append(batch)
        self._size += _weight(batch)
        if self._size > self._full:
            self._compact()

    def count(self, cells: int) -> Counts:
        """Return the counts of the slot."""
        batch = self._sorted()
        counts = self._roster.count_rows(
            self._roster.find(batch.users),
            batch.cells,
            cells,
            max_cells_per_user=self._limit,
            unknown=batch.users.__getitem__,
        )
        return Counts(counts.matrix, counts.reasons.plus(self._rejected))

    def _sorted(self) -> EventColumns:
        self._parts = [EventColumns.joined(self._parts)]
        batch = self._parts[0]
        if (batch.times[1:] <= batch.times[:-1]).any():
            batch = batch.where(np.lexsort((batch.cells, batch.times)))
        return batch

    def _compact(self) -> None:
        """Keep of every id the last `limit` distinct declared cells: what else there is cannot count any more."""
        batch = self._sorted()
        declared = batch.cells >= 0  # first: an event in an undeclared cell takes nobody's place
        batch = batch.where(declared)
        batch = batch.where(self._roster.countable(batch.users))
        self._rejected = self._rejected.plus(Rejected.of(declared, len(batch.times)))
        kept = batch.where(last_events(batch.users.codes(), batch.cells, self._limit))
        self._parts = [kept._replace(users=Labels.joined([kept.users]))]
        self._size = _weight(self._parts[0])
        self._full = max(_COMPACT_ABOVE, 2 * self._size)


def _weight(batch: EventColumns) -> int:
    """Return the room that events take, in events with short ids."""
    return len(batch.times) + int(batch.users.texts.sizes.sum()) // _TEXT_WEIGHT


def standard_input() -> BinaryIO:
    """Return standard input; raise `InvalidInput` if it is closed: its number may belong to another file of this process."""
    if sys.stdin is None:
        raise InvalidInput("Standard input is closed.", "Pipe the live lines in, or redirect it.", path="-")
    return sys.stdin.buffer


class PipeInbox:
    """A pipe, read when something is in it: a slow reader holds the sender back.

    It reads the file descriptor itself: a thread that waits inside a buffered reader would abort the process at its end, with
    events in the core dump.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        self._file = pipe.fileno()
        with suppress(ImportError, AttributeError, OSError):  # where the system allows it, a pipe holds a whole piece
            import fcntl

            fcntl.fcntl(self._file, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def get(self) -> bytes:
        """Return what has arrived, b"" at the end of the input."""
        with suppress(OSError):  # closed under the reader: the input has ended
            return os.read(self._file, _PIPE_BYTES)
        return b""

    def waiting(self, timeout_s: float = 0.0) -> bool:
        """Return whether `get` returns without waiting, as soon as it does or after a while."""
        with suppress(OSError):
            return bool(select.select([self._file], [], [], timeout_s)[0])
        return True


class PipeSource(LiveSource):
    """Source that stores the events of a pipe in a thread, and closes slots by the wall clock or by its close lines."""

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        inbox: PipeInbox,
        store: EventStore,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        super().__init__(settings, clock, last, store=store, now_us=now_us)
        self._inbox = inbox
        self._decoder = ObjectDecoder(settings.columns, settings.cells, time_reader(settings))
        self._splitter = LineSplitter()
        self._thread: threading.Thread | None = None
        self._gathered: dict[int, list[EventColumns]] = defaultdict(list)  # events that are not stored yet
        self._fault: StorageFailed | None = None  # that keeps them from being stored
        self._error: BaseException | None = None  # that ended the thread
        self._closed = 0  # slots up to this one are closed
        self._begun = 0  # the last slot that has begun, by the wall clock or by close lines
        if settings.close_slots_by == "lines":
            self._allow_through(clock.origin_us)
        self._has_ended = False
        self._line = 0

    def closed_through(self) -> int:
        return self._closed

    def idle(self, wait_s: float) -> bool:
        if not self._stopping.is_set():
            with self._changed:
                self._rest(wait_s)
        return self._stopping.is_set()

    def resume(self, position: Any) -> None:
        super().resume(position)
        self._begun = max(self._begun, int(position.get("begun", 0)))

    def close(self) -> None:
        """Store what has arrived, and end the thread; raise `StorageFailed` if it cannot be stored."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        try:
            with self._changed:
                if self._error is None:
                    self._take_waiting()
            if self._fault is not None:
                raise self._fault
        finally:
            super().close()

    def _position(self, slot: int) -> dict[str, Any]:
        return {**super()._position(slot), "begun": self._begun}

    def _skip(self, through: int) -> None:
        with self._changed:
            self._closed = max(self._closed, through)  # events of these slots are late
            if self._settings.close_slots_by == "lines":
                self._allow_through(self._clock.start_of(self._closed + 1))
        super()._skip(through)

    def _wait_for(self, slot: int) -> bool:
        """Wait until a slot is closed and its events are stored; return False after `stop` and at the end of the input.

        Raise `InvalidEvents` for a malformed line, if the settings are strict.
        """
        self._start()
        while True:
            with self._changed:
                if self._error is not None:
                    raise self._error
                if self._closed >= slot and not self._gathered:
                    return True
                if self._stopping.is_set() or (self._has_ended and not self._gathered):
                    return False
                wait_s = _LOOK_S
                if self._settings.close_slots_by == "clock" and not self._gathered:
                    wait_s = min(_LOOK_S, max(0.0, self._deadlines.left_s(self._closed + 1)))
                self._rest(wait_s)

    def _start(self) -> None:
        """Start the thread; not before the slots that are committed are known."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="wevent-pipe", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set() and not (self._has_ended and not self._gathered):
            self._inbox.waiting(_LOOK_S)
            with self._changed:
                try:
                    self._take_waiting()
                except BaseException as error:  # noqa: BLE001  raised again by `_wait_for`
                    self._error = error
                    return
                finally:
                    self._changed.notify_all()
            if self._fault is not None:
                self._stopping.wait(_AGAIN_S)
            elif not self._inbox.waiting():
                self._stopping.wait(_GATHER_S)

    def _rest(self, wait_s: float) -> None:
        """Wait; input is stored meanwhile. Then close slots that are due by the wall clock.

        Input that arrived before is stored first, though it was not read yet.
        """
        self._changed.wait(wait_s)
        if self._settings.close_slots_by == "clock" and self._error is None:
            due = self._deadlines.closed(self._deadlines.now())
            if due > self._closed:
                self._take_waiting()
                if not self._gathered:
                    self._closed = due

    def _take_waiting(self) -> None:
        """Store what has arrived; events that cannot be stored hold the input back."""
        self._write()
        for _ in range(_PIECES):
            if not self._gathered and not self._has_ended and self._inbox.waiting():
                self._take(self._inbox.get())

    def _take(self, piece: bytes) -> None:
        """Take a piece of input in, and store its events."""
        if self._settings.close_slots_by == "clock":
            self._begun = max(self._begun, self._deadlines.begun(self._deadlines.now()))
        try:
            if not piece:
                self._has_ended = True
                self._take_lines(self._splitter.finish())
            for start in range(0, len(piece), PIECE_BYTES):
                self._take_lines(self._splitter.feed(piece[start : start + PIECE_BYTES]))
        finally:
            self._write()

    def _take_lines(self, lines: bytes) -> None:
        """Take events and close lines in, in their order; a line with the word may still be an event."""
        start = place = 0
        while self._settings.close_slots_by == "lines" and (place := lines.find(b'"close"', place)) >= 0:
            line_start = lines.rfind(b"\n", 0, place) + 1
            line_end = lines.find(b"\n", place) + 1 or len(lines)
            time_us = self._decoder.close(lines[line_start:line_end])
            if time_us is not None:
                self._take_events(lines[start:line_start])
                self._line += 1
                start = line_end
                self._closed = max(self._closed, self._clock.slot_of(time_us) - 1)
                self._allow_through(time_us)
            place = line_end
        self._take_events(lines[start:])

    def _take_events(self, lines: bytes) -> None:
        if not lines:
            return
        decoded = self._decoder.decode(lines)
        for row, problem in zip(decoded.malformed.tolist(), decoded.problems.tolist(), strict=True):
            self._note_malformed(self._line + row + 1, problem)
        self._line += lines.count(b"\n")
        last = self._begun if self._last is None else min(self._begun, self._last)
        slots, rejected = sort_events(decoded.batch, self._clock, last, self._closed)
        note_sorted(self._uncounted, len(decoded.batch.times), rejected)
        for slot, part in slots.items():
            self._gathered[slot].append(part)

    def _allow_through(self, time_us: int) -> None:
        """Accept events of the slot that a close line opens, and within the grace after it."""
        self._begun = max(self._begun, self._clock.slot_of(time_us + self._settings.grace_us))

    def _write(self) -> None:
        """Store events; a disk that refuses for a while is tried again later, for another fault raise `StorageFailed`."""
        if not self._gathered:
            return
        records = {slot: self._codec.encode(EventColumns.joined(parts)) for slot, parts in self._gathered.items()}
        try:
            is_stored, closed = self._store.put([(NO_NAME, records)])
        except StorageFailed as fault:
            if not fault.passing:
                raise
            if self._fault is None:
                _log.warning("input waits until the fault is over: %s", fault)
            self._fault = fault
            return
        assert is_stored, f"slot {closed} was closed before its input was stored"
        self._gathered.clear()
        self._fault = None

    def _note_malformed(self, number: int, problem: int) -> None:
        self._uncounted.malform(int(problem == kind) for kind in PROBLEMS)
        if len(self._malformed) < _SHOWN:
            self._malformed.append(f"line {number} of this run's input ({explain(problem, self._settings)})")
        if self._settings.strict:
            raise InvalidEvents(
                f"A line is malformed (strict): {self._malformed[0]}.",
                "Repair the sender, or leave strict out to count and skip such lines.",
                line=number,
            )
