"""Counts from files: Parquet, CSV, NDJSON; one range of slots in memory at a time, whatever the order in the files.

Of a user's events in a slot the latest wins, ties going to the later one in the input (with k > 1: the last k distinct
cells). Declared files and columns are checked when a source is made. No record stops, delays or shapes a run: no events are
empty slots, and a malformed line is counted and skipped wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.errors import InvalidEvents
from wevent.streams.clock import SlotClock
from wevent.streams.files.readers import open_readers
from wevent.streams.files.survey import Reader, Survey
from wevent.streams.records.decoding import EventColumns
from wevent.streams.slot_buffer import SlotBuffer
from wevent.streams.source import SlotCounts, Source
from wevent.streams.stream_settings import StreamSettings

_RANGE_EVENTS = 2_000_000  # in memory: about 100 MB with the columns that counting needs
_LARGE_SLOT = 4 * _RANGE_EVENTS  # a slot with more is never in memory whole
_MOST_SLOTS = 4_096  # in one range


class FileSource(Source):
    """Counts the slots 1 to `last` of a declared clock from the settings' files.

    Args:
        settings: which files, which columns.
        clock: when slots begin.
        last: the last slot.

    Raises:
        InvalidInput: for missing or damaged files, unknown formats, missing columns.
        InvalidEvents: for columns of times without an offset when none is declared.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock, last: int) -> None:
        self._readers: list[Reader] = [*open_readers(settings)]
        files = None if settings.frame is not None else sum(len(reader.files) for reader in self._readers)
        super().__init__(settings, last, files)
        self._clock = clock
        self._end = last
        self._survey: Survey | None = None
        self._held, self._events = (
            range(0),
            EventColumns.joined([]),
        )  # a range of slots and its events, in order of time

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in self._slots(first, most):
            if self._stopped:
                return
            size = self.look().sizes[slot]
            counts = self._count_large(roster, slot) if size > _LARGE_SLOT else self._count(roster, slot)
            self._uncounted.events += size
            self._uncounted.reject(counts.reasons)
            yield SlotCounts(slot, counts, self._position(slot))

    def look(self) -> Survey:
        """Return the sizes of slots, read once; malformed records and those outside the clock are then in the totals.

        Raises:
            InvalidEvents: for a malformed record, if `strict`.
        """
        if self._survey is None:
            survey = Survey(self._uncounted)
            for reader in self._readers:
                reader.survey(self._clock, self._end, survey)
            self._survey = survey
            if self._uncounted.malformed and self._settings.strict:
                raise InvalidEvents(
                    "only well-formed events (strict)",
                    f"a malformed line: {survey.places[0]}",
                    "Repair the line, or leave strict out to count and skip such lines.",
                )
        return self._survey

    def first_malformed(self) -> list[str]:
        return [] if self._survey is None else list(self._survey.places)

    def _count(self, roster: Roster, slot: int) -> Counts:
        if slot not in self._held:
            self._events = EventColumns.joined([])  # room for the next range
            held = self._range(slot)
            self._events = EventColumns.joined([*self._batches(held)]).by_time()
            self._held = held
        bounds = [self._clock.start_of(slot), self._clock.start_of(slot + 1)]
        _, users, cells = self._events.where(slice(*self._events.times.searchsorted(bounds)))
        return roster.count_rows(
            roster.find(users),
            cells,
            len(self._settings.cells),
            max_cells_per_user=self._settings.max_cells_per_user,
            unknown=users.__getitem__,
        )

    def _count_large(self, roster: Roster, slot: int) -> Counts:
        """Count a slot with more events than fit in memory, keeping those that can still count."""
        limit = self._settings.max_cells_per_user
        buffer = SlotBuffer(limit, roster, compact_above=2 * _RANGE_EVENTS, in_order=True)
        for batch in self._batches(range(slot, slot + 1), in_parts=True):
            buffer.add(batch)
        return buffer.count(len(self._settings.cells))

    def _batches(self, slots: range, *, in_parts: bool = False) -> Iterator[EventColumns]:
        self.look()
        for reader in self._readers:
            low, high = self._clock.start_of(slots.start), self._clock.start_of(slots.stop)
            yield from reader.batches(low, high, in_parts=in_parts)

    def _range(self, first: int) -> range:
        """Return as many slots from `first` on as fit in memory together."""
        sizes = self.look().sizes
        last, room = first, _RANGE_EVENTS - sizes[first]
        while last < self._end and last - first < _MOST_SLOTS and sizes[last + 1] <= room:
            last += 1
            room -= sizes[last]
        return range(first, last + 1)


def read_events(settings: StreamSettings, clock: SlotClock, last: int) -> EventColumns:
    """Return all well-formed events of the slots 1 to `last`, in time order, input order among equal times.

    Raises:
        InvalidInput, InvalidEvents: as of `open_readers`.
    """
    source = FileSource(replace(settings, strict=False), clock, last)
    return EventColumns.joined([*source._batches(range(1, last + 1))]).by_time()


def span_of(settings: StreamSettings) -> tuple[int, int] | None:
    """Return the first and last time in the files (with a slot column: slot numbers less one); None without events.

    Unsafe: for `start_auto` only. It makes the slot clock depend on the events.
    """
    spans = [reader.span() for reader in open_readers(settings)]
    known = [span for span in spans if span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None
