"""Counts from files: Parquet, CSV, NDJSON; one range of slots in memory at a time, whatever the order in the files.

Whatever is declared (files, columns, containers) is checked when a source is made; nothing that stands in a record stops,
delays or shapes a run: no events are empty slots, and a malformed line is counted and skipped wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
from wevent.errors import InvalidEvents
from wevent.streams.clock import SlotClock
from wevent.streams.files.engines import DuckdbEngine, NumpyEngine, SlotStretch, Tables
from wevent.streams.files.parquet_files import ParquetReader, unreadable
from wevent.streams.files.readers import open_readers
from wevent.streams.files.survey import Survey
from wevent.streams.source import SlotCounts, Source
from wevent.streams.stream_settings import StreamSettings

_RANGE_EVENTS = 2_000_000  # fetched at a time from Parquet: about 100 MB with what counting them needs
_TEXT_RANGE_EVENTS = 4_000_000  # text is read from the start for every range
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
        self._readers = open_readers(settings)
        files = None if settings.frame is not None else sum(len(reader.files) for reader in self._readers)
        super().__init__(settings, last, files)
        self._clock = clock
        self._end = last
        self._tables = Tables(self._readers, settings.cells, clock)
        self._numpy = NumpyEngine(self._tables)
        self._duckdb = DuckdbEngine(self._tables)
        self._survey: Survey | None = None

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        end = self._slots(first, most).stop - 1
        if first > end:
            return
        sizes = self._plan().sizes
        limit = self._settings.max_cells_per_user
        while first <= end and not self._stopped:
            whole = self._numpy.held(roster, first) or self._range(first, sizes)
            part = SlotStretch(first, min(whole.last, end))
            if self._in_sql(roster, whole, sizes):
                events = sum(sizes.get(slot, 0) for slot in range(part.first, part.last + 1))
                counted = self._duckdb.count(roster, part, limit, events)
            else:
                counted = self._numpy.count(roster, part, limit, within=whole)
            for slot, counts in zip(range(part.first, part.last + 1), self._guarded(counted), strict=True):
                self._uncounted.events += sizes.get(slot, 0)
                self._uncounted.reject(counts.reasons)
                yield SlotCounts(slot, counts, self._position(slot))
                if self._stopped:
                    return
            first = part.last + 1

    def look(self) -> None:
        """Find out what is malformed or outside the clock, as the first slot that is counted does."""
        self._plan()

    def first_malformed(self) -> list[str]:
        return [] if self._survey is None else list(self._survey.places)

    def _range(self, first: int, sizes: dict[int, int]) -> SlotStretch:
        """As many slots from `first` on as fit in memory together."""
        room = _TEXT_RANGE_EVENTS if any(reader.text for reader in self._readers) else _RANGE_EVENTS
        last = first
        room -= sizes.get(first, 0)
        while last < self._end and last - first < _MOST_SLOTS and sizes.get(last + 1, 0) <= room:
            last += 1
            room -= sizes.get(last, 0)
        return SlotStretch(first, last)

    def _in_sql(self, roster: Roster, slots: SlotStretch, sizes: dict[int, int]) -> bool:
        if roster.unknown_row is not None or self._settings.engine == "numpy":
            return False
        if self._settings.engine == "duckdb":
            return True
        large = sizes.get(slots.first, 0) > 4 * _TEXT_RANGE_EVENTS
        return large and any(isinstance(reader, ParquetReader) for reader in self._readers)

    def _plan(self) -> Survey:
        """What there is, slot by slot."""
        if self._survey is None:
            survey = Survey()
            for reader in self._readers:
                survey.include(reader.survey(self._clock, self._end))
            self._uncounted.malform(survey.problems)
            self._uncounted.outside(survey.before, survey.after)
            self._survey = survey
            if survey.malformed and self._settings.strict:
                raise InvalidEvents(
                    "only well-formed events (strict)",
                    f"a malformed line: {survey.places[0]}",
                    "Repair the line, or leave strict out to count and skip such lines.",
                )
        return self._survey

    def _guarded(self, counted: Iterator[Counts]) -> Iterator[Counts]:
        try:
            yield from counted
        except duckdb.Error as error:
            raise unreadable([file for reader in self._readers for file in reader.files], error) from None


def span_of(settings: StreamSettings) -> tuple[int, int] | None:
    """The first and last time in the files (with a slot column: slot numbers less one); None without events.

    Unsafe: for `start_auto` only. It makes the slot clock depend on the events.
    """
    spans = [reader.span() for reader in open_readers(settings)]
    known = [span for span in spans if span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None
