"""Counts from live lines: slots close by the wall clock after a grace, or by close lines; never by an event.

An event of a slot that has not begun, or never will, is rejected; one of a slot that has closed is late and dropped.
Slots close in order and never reopen, whatever the wall clock does.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
import numpy as np

from wevent.counting.roster import Roster
from wevent.errors import InvalidEvents, InvalidInput
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import PIECE_BYTES, PROBLEMS, EventColumns, LineSplitter, explain, time_reader
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.live.open_slot import OpenSlot
from wevent.streams.live.steady_clock import opening_us, wall_clock_us
from wevent.streams.source import SlotCounts, Source

_POLL_S = 0.2  # how long to wait at most before looking at the wall clock again
_SHOWN = 3  # malformed lines that are reported


class Inbox(Protocol):
    """Where bytes arrive."""

    def get(self, timeout_s: float) -> bytes | None:
        """What arrived next, None if nothing did in time, b"" at the end of the input."""
        ...

    def waiting(self) -> int:
        """How many pieces can be had without waiting."""
        ...


class LineSource(Source):
    """Counts a live stream of lines `{"time": …, "user": …, "cell": …}`.

    Args:
        settings: grace, what closes slots, names and cells.
        clock: when slots begin.
        last: the last slot; None: no end.
        inbox: where the bytes arrive.
        now_us: the wall clock.
    """

    def __init__(
        self,
        settings: StreamSettings,
        clock: SlotClock,
        last: int | None,
        *,
        inbox: Inbox,
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        super().__init__(settings, last)
        self._clock = clock
        self._inbox = inbox
        self._now_us = now_us
        self._decoder = ObjectDecoder(settings.columns, settings.cells, time_reader(settings))
        self._splitter = LineSplitter()
        self._meaning = _meaning(settings, clock)
        self._open: dict[int, OpenSlot] = {}
        self._awaited: tuple[int, Roster | None] = 0, None  # the slot that is counted next, and who can count in it
        self._closed = 0  # slots up to this one are closed
        self._begun = 0  # slots up to this one have begun
        self._line = 0
        self._malformed: list[str] = []
        self._ended = False
        if settings.close == "lines":
            self._begun = clock.slot_of(clock.origin_us + settings.grace_us)

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, … as they close, at most `most`; ends with the input, or after `stop`."""
        for slot in [slot for slot in self._open if slot < first]:
            del self._open[slot]
        self._closed = max(self._closed, first - 1)
        for slot in self._slots(first, most):
            self._awaited = slot, roster
            if slot in self._open:
                self._open[slot].belongs_to(roster)
            while self._closed < slot:
                if self._ended or self._stopped:
                    return
                self._wait()
            opened = self._open.pop(slot, None) or OpenSlot(self._settings.max_cells_per_user)
            counts = opened.count(roster, len(self._settings.cells))
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def closed_through(self) -> int:
        """The last slot that has closed; by the clock that is looked at again when the next one is waited for."""
        return self._closed

    def resume(self, position: Any) -> None:
        """Continue after a stored position: what arrives for slots up to it is late.

        Raises:
            InvalidSettings: if numbers as times meant something else.
        """
        super().resume(position)
        self._closed = max(self._closed, int(position["slot"]))
        if self._settings.close == "lines":
            self._allow_through(self._clock.start_of(self._closed + 1))

    def first_malformed(self) -> list[str]:
        return list(self._malformed)

    def pending(self) -> bytes:
        """The events of open slots, to be kept until these close and no longer; nothing else holds them.

        After `stop` that includes what has arrived and was not looked at yet. Never nothing: which slots have begun is
        kept with or without events, and whether there are any shows nowhere.
        """
        for _ in range(self._inbox.waiting() if self._stopped else 0):
            self._take(self._inbox.get(0.0))
        slots = {slot: opened.dump() for slot, opened in self._open.items()}
        return msgspec.msgpack.encode({"meaning": self._meaning, "begun": self._begun, "slots": slots})

    def restore_pending(self, pending: bytes) -> None:
        """Take back what `pending` gave; call it after `resume`.

        Raises:
            InvalidInput: if these are other bytes, or were counted for other slots or cells.
        """
        if not pending:
            return
        try:
            saved = msgspec.msgpack.decode(pending, strict=False)
            if saved["meaning"] != self._meaning:
                raise ValueError("slots or cells of another meaning")
            limit = self._settings.max_cells_per_user
            cells = len(self._settings.cells)
            opened = {int(slot): OpenSlot.load(limit, events, cells) for slot, events in saved["slots"].items()}
            begun = int(saved["begun"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise InvalidInput(
                "pending events as this version writes them", "other bytes", "Drop them and resume.", path=None
            ) from None
        self._open.update({slot: events for slot, events in opened.items() if slot > self._closed})
        self._begun = max(self._begun, begun)

    def idle(self, wait_s: float) -> bool:
        """Take in what arrives for so long; slots that close meanwhile are closed when they do.

        Never to be given up: what is counted is nowhere else.
        """
        if self._ended:
            time.sleep(wait_s)
        else:
            self._take(self._inbox.get(wait_s))
            self._look_at_the_clock()
        return False

    def _wait(self) -> None:
        """Take in what arrives until a slot may have closed."""
        wait_s = _POLL_S
        if self._settings.close == "clock":
            due_us = self._clock.start_of(self._closed + 2) + self._settings.grace_us
            wait_s = min(_POLL_S, max(0.0, (due_us - self._now_us()) / 1e6))
        self._take(self._inbox.get(wait_s))
        self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        """Close what has to be closed by now."""
        if self._settings.close != "clock":
            return
        due = self._clock.slot_of(self._now_us() - self._settings.grace_us) - 1
        if due > self._closed:
            for _ in range(self._inbox.waiting()):  # it arrived in time, though it was not read yet
                self._take(self._inbox.get(0.0))
            self._closed = due

    def _take(self, piece: bytes | None) -> None:
        if piece is None:
            return
        if self._settings.close == "clock":
            self._begun = max(self._begun, self._clock.slot_of(max(self._now_us(), opening_us(self._now_us))))
        if not piece:
            self._ended = True
            self._take_lines(self._splitter.finish())
        for start in range(0, len(piece), PIECE_BYTES):
            self._take_lines(self._splitter.feed(piece[start : start + PIECE_BYTES]))

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
        self._sort_in(decoded.batch)

    def _read_with_closes(self, lines: bytes) -> None:
        """Events and close lines in their order; a line with the word may still be an event."""
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
        """After a close line an event may lie in the slot it opens, or within the grace after it."""
        self._begun = max(self._begun, self._clock.slot_of(time_us + self._settings.grace_us))

    def _sort_in(self, batch: EventColumns) -> None:
        if not len(batch.times):
            return
        self._uncounted.events += len(batch.times)
        slots = (batch.times - self._clock.origin_us) // self._clock.length_us + 1
        low, high = int(slots.min()), int(slots.max())
        if low <= self._closed or high > self._begun:
            late, early = slots <= self._closed, slots > self._begun
            before = int(np.count_nonzero(slots < 1))
            self._uncounted.late += int(np.count_nonzero(late)) - before
            self._uncounted.outside(before, int(np.count_nonzero(early & ~late)))
            inside = ~(late | early)
            slots, batch = slots[inside], batch.where(inside)
        if self._last is not None and high > self._last:  # kept all the same: the next run may have a later end
            self._uncounted.outside(0, int(np.count_nonzero(slots > self._last)))
        for slot in [low] if low == high and len(slots) else np.unique(slots).tolist():
            opened = self._open.get(slot)
            if opened is None:
                opened = self._open[slot] = OpenSlot(self._settings.max_cells_per_user)
                if slot == self._awaited[0] and self._awaited[1] is not None:
                    opened.belongs_to(self._awaited[1])
            opened.add(batch if low == high else batch.where(slots == slot))

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


def _meaning(settings: StreamSettings, clock: SlotClock) -> bytes:
    """What slot numbers and cell columns stand for: kept events have nothing else."""
    parts = [clock.origin_us, clock.length_us, settings.cells.declaration()]
    return hashlib.sha256(msgspec.json.encode(parts, enc_hook=str)).digest()
