"""Standard input: lines of events and close lines, stored before their slot closes.

A thread reads the pipe, so slots close on time however little arrives. A second thread stores what was read: a process that
is killed loses the last moment of its input, never an open slot.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from wevent.errors import InvalidEvents, InvalidInput, StorageFailed
from wevent.events.event_store import EventIntake, StoredRecord
from wevent.events.receiver import sort_events
from wevent.events.records import NO_NAME, BatchPart, RecordCodec
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import PIECE_BYTES, PROBLEMS, EventColumns, LineSplitter, explain, time_reader
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.rejections import Rejections
from wevent.streams.steady_clock import SlotDeadlines, wall_clock_us

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("wevent.events.pipe")
_PIECE = 1 << 20  # a pipe gives 64 KiB at once unless the system grants more
_PIECES = 4
_LOOK_S = 0.2
_GATHER_S = 0.03  # input of so long shares a write
_AGAIN_S = 0.5  # between attempts while a fault lasts
_SHOWN = 3  # malformed lines that are reported


def standard_input() -> BinaryIO:
    """Return standard input, as bytes.

    Raises:
        InvalidInput: if it is closed; its number may then belong to another file of this process.
    """
    if sys.stdin is None:
        raise InvalidInput(
            "live lines on standard input", "a closed one", "Pipe the lines in, or redirect it.", path="-"
        )
    return sys.stdin.buffer


class Inbox(Protocol):
    """Input that arrives in pieces."""

    def get(self, timeout_s: float) -> bytes | None:
        """Return the next piece, None if none arrives in time, b"" at the end of the input."""

    def waiting(self) -> int:
        """Return the number of pieces that `get` returns without waiting, at most."""

    def wait(self, timeout_s: float) -> None:
        """Wait until a piece is there."""


class PipeInbox:
    """Reads a pipe ahead, a few pieces at most: a slow reader holds the sender back.

    The thread reads the file descriptor itself and ends before the interpreter does: one that waits inside a buffered
    reader would abort the process at its end, with events in the core dump.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        self._file = pipe.fileno()
        self._ready = threading.Condition()
        self._pieces: deque[bytes] = deque()
        self._has_ended = self._is_closed = False
        _widen(self._file)
        self._thread = threading.Thread(target=self._read, name="wevent-input", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def get(self, timeout_s: float) -> bytes | None:
        self.wait(timeout_s)
        parts, size = [], 0
        with self._ready:
            while self._pieces and size < _PIECE:  # many lines at once take less time than few
                parts.append(self._pieces.popleft())
                size += len(parts[-1])
            self._ready.notify_all()
            return b"".join(parts) if parts or self._has_ended else None

    def waiting(self) -> int:
        with self._ready:
            return len(self._pieces) + self._has_ended

    def wait(self, timeout_s: float) -> None:
        with self._ready:
            self._ready.wait_for(lambda: self._pieces or self._has_ended, timeout_s)

    def close(self) -> None:
        """End the thread; input that was not read stays in the pipe."""
        atexit.unregister(self.close)
        self._is_closed = True
        self._thread.join(timeout=5 * _LOOK_S)

    def _read(self) -> None:
        try:
            while not self._is_closed:
                if _is_readable(self._file):
                    piece = os.read(self._file, _PIECE)
                    if not piece:
                        break
                    self._put(piece)
        except OSError:  # closed under the reader: the input has ended
            pass
        with self._ready:
            self._has_ended = not self._is_closed
            self._ready.notify_all()

    def _put(self, piece: bytes) -> None:
        with self._ready:
            while len(self._pieces) >= _PIECES and not self._is_closed:
                self._ready.wait(_LOOK_S)
            self._pieces.append(piece)
            self._ready.notify_all()


class PipeReader:
    """Stores the events of a pipe, and closes its slots.

    Args:
        settings: grace, what closes slots, names and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        inbox: where bytes arrive.
        intake: where events are stored.
        now_us: the wall clock.
        in_thread: store input in a thread of its own after `start`; otherwise `wait_for` and `rest` store it.

    Attributes:
        begun: the last slot that has begun, by the wall clock or by close lines.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        inbox: Inbox,
        intake: EventIntake,
        now_us: Callable[[], int] = wall_clock_us,
        in_thread: bool = False,
    ) -> None:
        self._settings, self._clock, self._last = settings, clock, last
        self._inbox, self._intake, self._in_thread = inbox, intake, in_thread
        self._deadlines = SlotDeadlines(clock, settings.grace_us, now_us)
        self._codec = RecordCodec(settings.cells, clock)
        self._decoder = ObjectDecoder(settings.columns, settings.cells, time_reader(settings))
        self._splitter = LineSplitter()
        self._changed = threading.Condition()  # of everything below
        self._thread: threading.Thread | None = None
        self._is_closing = threading.Event()
        self._gathered: dict[int, list[EventColumns]] = defaultdict(list)  # events that are not stored yet
        self._fault: StorageFailed | None = None  # that keeps them from being stored
        self._error: BaseException | None = None  # that ended the thread
        self._closed = 0  # slots up to this one are closed
        self.begun = clock.slot_of(clock.origin_us + settings.grace_us) if settings.close == "lines" else 0
        self._has_ended = self._is_declared = False
        self._line = 0
        self._malformed: list[str] = []
        self._uncounted = Rejections()

    def start(self) -> None:
        """Start to store input, once the slots that are committed are known."""
        if self._in_thread and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="wevent-pipe", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Store what has arrived, and end the threads.

        Raises:
            StorageFailed: if it cannot be stored.
        """
        self._is_closing.set()
        if self._thread is not None:
            self._thread.join()
        with self._changed:
            if self._error is None:
                self._take_waiting()
        if isinstance(self._inbox, PipeInbox):
            self._inbox.close()
        if self._fault is not None:
            raise self._fault

    def closed_through(self) -> int:
        """Return the last closed slot."""
        return self._closed

    def skip(self, through: int) -> None:
        """Close slots that are committed: their events are late."""
        with self._changed:
            self._closed = max(self._closed, through)
            if self._settings.close == "lines":
                self._allow_through(self._clock.start_of(self._closed + 1))

    def wait_for(self, slot: int, stopping: threading.Event) -> bool:
        """Wait until a slot is closed and its events are stored; returns False after `stopping`, and at the end of the input.

        Raises:
            InvalidEvents: for a malformed line, if the settings are strict.
        """
        while True:
            with self._changed:
                if self._error is not None:
                    raise self._error
                if self._closed >= slot and not self._gathered:
                    return True
                if stopping.is_set() or (self._has_ended and not self._gathered):
                    return False
                self._rest(self._left_s())
                self._look_at_clock()

    def rest(self, wait_s: float) -> None:
        """Wait; input is stored meanwhile, and slots close."""
        with self._changed:
            self._rest(wait_s)
            self._look_at_clock()

    def totals(self) -> dict[str, int]:
        """Return totals of the input, for the operator only."""
        with self._changed:
            return self._uncounted.totals()

    def first_malformed(self) -> list[str]:
        """Return the places of the first malformed lines, for the operator only."""
        return list(self._malformed)

    def _run(self) -> None:
        while not self._is_closing.is_set() and not (self._has_ended and not self._gathered):
            self._inbox.wait(_LOOK_S)
            with self._changed:
                try:
                    self._take_waiting()
                except BaseException as error:  # noqa: BLE001  raised again by `wait_for`
                    self._error = error
                    return
                finally:
                    self._changed.notify_all()
            if self._fault is not None:
                self._is_closing.wait(_AGAIN_S)
            elif not self._inbox.waiting():
                self._is_closing.wait(_GATHER_S)

    def _rest(self, wait_s: float) -> None:
        if self._thread is None and not self._has_ended and not self._gathered:
            self._take(self._inbox.get(wait_s))
            return
        self._changed.wait(wait_s)
        if self._thread is None:
            self._store()

    def _left_s(self) -> float:
        if self._settings.close == "lines" or self._gathered:
            return _LOOK_S
        return min(_LOOK_S, max(0.0, self._deadlines.left_s(self._closed + 1)))

    def _look_at_clock(self) -> None:
        """Close slots that are due; input that arrived before is stored first, though it was not read yet."""
        if self._settings.close != "clock":
            return
        due = self._deadlines.closed(self._deadlines.now())
        if due > self._closed and self._error is None:
            self._take_waiting()
            if not self._gathered:
                self._closed = due

    def _take_waiting(self) -> None:
        """Store what has arrived; events that cannot be stored hold the input back."""
        self._store()
        for _ in range(self._inbox.waiting()):
            if not self._gathered:
                self._take(self._inbox.get(0.0))

    def _take(self, piece: bytes | None) -> None:
        """Take a piece of input in, and store its events."""
        if piece is None or self._has_ended:
            return
        if self._settings.close == "clock":
            self.begun = max(self.begun, self._deadlines.begun(self._deadlines.now()))
        try:
            if not piece:
                self._has_ended = True
                self._take_lines(self._splitter.finish())
            for start in range(0, len(piece), PIECE_BYTES):
                self._take_lines(self._splitter.feed(piece[start : start + PIECE_BYTES]))
        finally:
            self._store()

    def _take_lines(self, lines: bytes) -> None:
        if self._settings.close == "lines" and b'"close"' in lines:
            self._read_with_closes(lines)
        elif lines:
            self._read(lines)

    def _read(self, lines: bytes) -> None:
        decoded = self._decoder.decode(lines)
        for row, problem in zip(decoded.malformed.tolist(), decoded.problems.tolist(), strict=True):
            self._note_malformed(self._line + row + 1, problem)
        self._line += lines.count(b"\n")
        last = self.begun if self._last is None else min(self.begun, self._last)
        events = sort_events(decoded.batch, self._clock, last, self._closed)
        events.note(self._uncounted)
        for slot, part in events.parts.items():
            self._gathered[slot].append(part)

    def _read_with_closes(self, lines: bytes) -> None:
        """Read events and close lines in their order; a line with the word may still be an event."""
        start = place = 0
        while (place := lines.find(b'"close"', place)) >= 0:
            line_start = lines.rfind(b"\n", 0, place) + 1
            line_end = lines.find(b"\n", place) + 1 or len(lines)
            time_us = self._decoder.close(lines[line_start:line_end])
            if time_us is not None:
                if line_start > start:
                    self._read(lines[start:line_start])
                self._line += 1
                start = line_end
                self._closed = max(self._closed, self._clock.slot_of(time_us) - 1)
                self._allow_through(time_us)
            place = line_end
        if start < len(lines):
            self._read(lines[start:])

    def _allow_through(self, time_us: int) -> None:
        """Accept events of the slot that a close line opens, and within the grace after it."""
        self.begun = max(self.begun, self._clock.slot_of(time_us + self._settings.grace_us))

    def _store(self) -> None:
        """Store events; a disk that refuses for a while is tried again later.

        Raises:
            StorageFailed: for a fault that does not pass.
        """
        if not self._gathered:
            return
        try:
            if not self._is_declared:
                self._intake.declare(self._codec.digest, self._codec.meaning)
                self._is_declared = True
            is_stored, closed = self._intake.put([[self._record(*one) for one in self._gathered.items()]])
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

    def _record(self, slot: int, parts: list[EventColumns]) -> StoredRecord:
        part = BatchPart(b"", BatchResult(0, {}), EventColumns.joined(parts))
        return StoredRecord(slot, NO_NAME, self._codec.encode(part))

    def _note_malformed(self, number: int, problem: int) -> None:
        self._uncounted.malform(int(problem == kind) for kind in PROBLEMS)
        if len(self._malformed) < _SHOWN:
            self._malformed.append(f"line {number} of this run's input ({explain(problem, self._settings)})")
        if self._settings.strict:
            raise InvalidEvents(
                "only well-formed events (strict)",
                f"a malformed line: {self._malformed[0]}",
                "Repair the sender, or leave strict out to count and skip such lines.",
                line=number,
            )


def _widen(file: int) -> None:
    """Let a pipe hold a whole piece, where the system allows it: the thread then wakes less often."""
    if fcntl is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _PIECE)


def _is_readable(file: int) -> bool:
    """Return whether reading would not wait; elsewhere than on POSIX systems reading waits."""
    if not hasattr(select, "poll"):
        return True
    poll: Any = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(_LOOK_S * 1000))
