"""Counts from files and frames: every record is decoded once, and one range of slots is in memory at a time.

Of a user's events in a slot the latest counts, of equal times the later one in the input (with k > 1: the last k distinct
cells). Declared files and columns are checked when a source is made. No record stops, delays or shapes a run: slots without
events are empty, and a malformed line is counted and skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import duckdb
import numpy as np

from wevent.counting.labels import Labels
from wevent.counting.roster import NONE_REJECTED, Counts, Rejected, Roster, last_events
from wevent.errors import InvalidEvents, InvalidInput, InvalidSettings
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock, wall_clock_us
from wevent.streams.decoding import PROBLEMS, EventColumns, explain
from wevent.streams.duckdb_tables import Table, TableReader, connect
from wevent.streams.inputs import EventPiece, TextReader, event_bytes, find_files, open_input
from wevent.streams.source import SlotCounts, Source
from wevent.streams.spill import Spill

_RANGE_EVENTS = 2_000_000  # in memory: about 100 MB with the columns that counting needs
_LARGE_SLOT = 4 * _RANGE_EVENTS  # a slot with more is never in memory whole
_MOST_SLOTS = 4_096  # in one range
_SHOWN = 3  # malformed records

Reader = TableReader | TextReader


def open_readers(settings: StreamSettings) -> list[Reader]:
    """Open all input files, in input order, or the frame; declared columns are checked before a slot is counted.

    Raises:
        InvalidInput: for missing or damaged files, unknown formats, missing columns.
        InvalidEvents: for columns of times without an offset if none is declared.
    """
    if settings.frame is not None:
        return [TableReader(settings.frame, settings)]
    connection: duckdb.DuckDBPyConnection | None = None
    readers: list[Reader] = []
    for file in [open_input(path) for path in find_files(settings.inputs)]:
        if file.format == "parquet":
            connection = connection or connect()  # one for all files
            readers.append(TableReader(Table(file, connection), settings))
        else:
            readers.append(TextReader(file, settings))
    return readers


class FileSource(Source):
    """Counts of the slots 1 to `last` of a declared clock from the settings' files; errors as of `open_readers`."""

    def __init__(self, settings: StreamSettings, clock: SlotClock, last: int) -> None:
        self._readers = open_readers(settings)
        super().__init__(settings, last, None if settings.frame is not None else len(self._readers))
        self._clock = clock
        self._end = last
        self._sizes: Counter[int] | None = None  # well-formed events of each slot
        self._spill = Spill(
            sum(event_bytes(reader.file) for reader in self._readers), in_memory=settings.frame is not None
        )
        self._held, self._events = range(0), EventColumns.joined([])  # a range of slots; its events, in order of time

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in self._slots(first, most):
            if self._stopped:
                return
            size = self.survey()[slot]
            counts = self._count_large(roster, slot) if size > _LARGE_SLOT else self._count(roster, slot)
            self._uncounted.events += size
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def survey(self) -> Counter[int]:
        """Return the number of events of each slot; all files are decoded at the first call.

        Malformed records and those outside the clock are then in the totals.

        Raises:
            InvalidEvents: for a malformed record, if `strict`.
            StorageFailed: if there is no room for a temporary file.
        """
        if self._sizes is None:
            self._spill.check_room()
            sizes = Counter[int]()
            for reader in self._readers:
                for piece in reader.pieces():
                    self._note_malformed(reader, piece)
                    sizes.update(self._keep(piece.decoded.batch))
            self._sizes = sizes
            if self._uncounted.malformed and self._settings.strict:
                fix = "Repair the line, or leave strict out to count and skip such lines."
                raise InvalidEvents(f"A line is malformed (strict): {self._malformed[0]}.", fix)
        return self._sizes

    def _keep(self, batch: EventColumns) -> dict[int, int]:
        """Keep the events of slots 1 to the last; return the number of events of each slot."""
        if not len(batch.times):
            return {}
        slots = (batch.times - self._clock.origin_us) // self._clock.length_us + 1
        low, high = int(slots.min()), int(slots.max())
        if low < 1 or high > self._end:
            before, after = slots < 1, slots > self._end
            self._uncounted.outside(int(np.count_nonzero(before)), int(np.count_nonzero(after)))
            inside = ~(before | after)
            slots, batch = slots[inside], batch.where(inside)
            low = high if not len(slots) else int(slots.min())
        self._spill.add(batch)
        if high - low < len(slots):
            sizes = np.bincount(slots - low)
            numbers = np.flatnonzero(sizes)
            return dict(zip((numbers + low).tolist(), sizes[numbers].tolist(), strict=True))
        numbers, sizes = np.unique(slots, return_counts=True)
        return dict(zip(numbers.tolist(), sizes.tolist(), strict=True))

    def _note_malformed(self, reader: Reader, piece: EventPiece) -> None:
        _, malformed, problems = piece.decoded
        if not len(malformed):
            return
        self._uncounted.malform(np.bincount(problems, minlength=len(PROBLEMS)).tolist())
        shown = slice(_SHOWN - len(self._malformed))
        for row, problem in zip(malformed[shown].tolist(), problems[shown].tolist(), strict=True):
            place = f"{reader.file.path} {reader.unit} {piece.first + row}"
            self._malformed.append(f"{place} ({explain(problem, self._settings)})")

    def _count(self, roster: Roster, slot: int) -> Counts:
        if slot not in self._held:
            self._events = EventColumns.joined([])  # frees the last range
            held = self._range(slot)
            self._events = EventColumns.joined([*self._batches(held)]).by_time()
            self._held = held
        bounds = [self._clock.start_of(slot), self._clock.start_of(slot + 1)]
        _, users, cells = self._events.where(slice(*self._events.times.searchsorted(bounds)))
        return roster.count_rows(
            roster.find(users), cells, len(self._settings.cells), self._settings.max_cells_per_user, users.__getitem__
        )

    def _count_large(self, roster: Roster, slot: int) -> Counts:
        """Count a slot that is never in memory whole: memory grows with the users, not with the events."""
        limit, is_closed = self._settings.max_cells_per_user, roster.unknown_row is None
        scratch = np.empty(len(roster), dtype=np.int64) if is_closed else None
        kept, parts, room, rejected = EventColumns.joined([]), list[EventColumns](), _RANGE_EVENTS, NONE_REJECTED
        for batch in self._batches(range(slot, slot + 1)):
            declared = batch.cells >= 0
            parts.append(batch.where(declared))
            room -= len(batch.times)
            if is_closed:  # nobody else counts, so the place of a user on the roster is enough
                found = roster.find(parts[-1].users)
                parts[-1] = parts[-1]._replace(users=Labels(found)).where(found >= 0)
            rejected = rejected.plus(Rejected.of(declared, len(parts[-1].times)))
            if room < 0:
                pool = EventColumns.joined([kept, *parts]).by_time()
                countable = pool if is_closed else pool.where(roster.countable(pool.users))
                rejected = rejected.plus(Rejected(unknown_user=len(pool.times) - len(countable.times)))
                kept = countable.where(last_events(countable.users.codes(), countable.cells, limit, scratch))
                parts, room = [], len(kept.times) + _RANGE_EVENTS
        _, users, cells = EventColumns.joined([kept, *parts]).by_time()
        rows = users.keys if is_closed else roster.find(users)
        counts = roster.count_rows(rows, cells, len(self._settings.cells), limit, users.__getitem__)
        return Counts(counts.matrix, counts.reasons.plus(rejected))

    def _batches(self, slots: range) -> Iterator[EventColumns]:
        self.survey()
        return self._spill.read(self._clock.start_of(slots.start), self._clock.start_of(slots.stop))

    def _range(self, first: int) -> range:
        """Return as many slots from `first` on as fit in memory together."""
        sizes = self.survey()
        last, room = first, _RANGE_EVENTS - sizes[first]
        while last < self._end and last - first < _MOST_SLOTS and sizes[last + 1] <= room:
            last += 1
            room -= sizes[last]
        return range(first, last + 1)


def span_of(settings: StreamSettings) -> tuple[int, int] | None:
    """Return the first and last time in the files (with a slot column: slot numbers less one); None without events.

    Unsafe: for `start_auto` only. It makes the slot clock depend on the events.
    """
    times = (piece.decoded.batch.times for reader in open_readers(settings) for piece in reader.pieces())
    spans = [(int(part.min()), int(part.max())) for part in times if len(part)]
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None


def declared_clock(
    settings: StreamSettings, pinned: SlotClock | None = None, *, now_us: Callable[[], int] = wall_clock_us
) -> tuple[SlotClock, int | None]:
    """Return the slot clock and the number of the last slot (None: no end).

    Args:
        settings: start, end and slot length, as declared.
        pinned: the clock of the journal that is resumed; it decides if none is declared.
        now_us: the wall clock.

    Raises:
        InvalidSettings: if files come without a declared start or end, or the end lies before the start.
    """
    span = span_of(settings) if settings.start_auto and not settings.is_live else None
    if settings.start_auto and span is None and not settings.is_live:
        problem = "There are no events to read the clock from (start = auto)."
        raise InvalidInput(problem, "Declare start and end.", path=settings.inputs[0])
    origin = 0 if settings.slot_column and not settings.is_live else settings.start_us
    if origin is None and pinned is not None:
        origin = pinned.origin_us
    if origin is None:
        if span is None and not settings.is_live:
            raise _undeclared("start")
        origin = (now_us() if span is None else span[0]) // settings.slot_us * settings.slot_us
    clock = SlotClock(origin, settings.slot_us)
    if settings.end_us is not None:
        last = clock.slot_of(settings.end_us) - 1  # a slot that is cut short is not published
        if last < 1:
            raise InvalidSettings("The end comes before the first slot is over.", "Declare a later end.", key="end")
        return clock, last
    if settings.is_live:
        return clock, None
    if span is None:
        raise _undeclared("end")
    return clock, max(1, clock.slot_of(span[1]))


def _undeclared(key: str) -> InvalidSettings:
    fix = f"Give {key}, such as 2026-01-01T00:00:00Z (start = 'auto' reads the clock from the events: not private)."
    return InvalidSettings(f"Files need a declared {key}.", fix, key=key)
