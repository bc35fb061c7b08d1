"""Counts from files: Parquet, CSV, NDJSON; one range of slots in memory at a time, whatever the order in the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb

from wevent.counts import Counts
from wevent.errors import InvalidEvents, InvalidInput
from wevent.roster import Roster
from wevent.streams.clock import SlotClock
from wevent.streams.engines import DuckdbEngine, NumpyEngine, SlotRange, Tables
from wevent.streams.malformed import first_malformed
from wevent.streams.readers import connect, open_readers
from wevent.streams.settings import StreamSettings
from wevent.streams.source import SlotCounts

_RANGE_EVENTS = 2_000_000  # fetched at a time from Parquet: about 100 MB with what counting them needs
_TEXT_RANGE_EVENTS = 4_000_000  # text is read from the start for every range
_MOST_SLOTS = 4_096  # in one range


class FileSource:
    """Counts the slots 1 to `last` of a declared clock from the settings' files.

    Args:
        settings: which files, which columns.
        clock: when slots begin.
        last: the last slot.

    Attributes:
        report: called with one sentence per notice for the operator, free of event content.
    """

    def __init__(self, settings: StreamSettings, clock: SlotClock, last: int) -> None:
        self.report: Callable[[str], None] | None = None
        self._settings = settings
        self._clock = clock
        self._last = last
        self._connection = connect()
        self._readers = open_readers(self._connection, settings)
        self._files = sum(len(reader.files) for reader in self._readers)
        self._tables = Tables(self._connection, self._readers, settings.cells, clock)
        self._numpy = NumpyEngine(self._tables)
        self._duckdb = DuckdbEngine(self._tables)
        self._sizes: dict[int, int] | None = None
        self._next = 1
        self._stopped = False
        self._totals = {"events": 0, "rejected": 0, "malformed": 0, "late": 0}

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        """Count slots first, first + 1, …, at most `most` and none after the declared end."""
        end = min(self._last, first + most - 1)
        if first > end:
            return
        sizes = self._plan(first)
        limit = self._settings.max_cells_per_user
        while first <= end and not self._stopped:
            whole = self._numpy.held(roster, first) or self._range(first, sizes)
            part = SlotRange(first, min(whole.last, end))
            if self._in_sql(roster, whole, sizes):
                events = sum(sizes.get(slot, 0) for slot in range(part.first, part.last + 1))
                counted = self._duckdb.count(roster, part, limit, events)
            else:
                counted = self._numpy.count(roster, part, limit, within=whole)
            for slot, counts in zip(range(part.first, part.last + 1), self._guarded(counted), strict=True):
                self._totals["events"] += sizes.get(slot, 0)
                self._totals["rejected"] += counts.rejected
                self._next = slot + 1
                yield SlotCounts(slot, counts, {"slot": slot, "files": self._files})
                if self._stopped:
                    return
            first = part.last + 1

    def resume(self, position: Any) -> None:
        """Continue after a stored position.

        Raises:
            InvalidInput: if there are fewer files than before: what they held may be missing.
        """
        self._next = int(position["slot"]) + 1
        if self._files < int(position.get("files", 0)):  # none after live lines
            raise InvalidInput(
                f"the {position['files']} input files of the earlier run, or more",
                f"{self._files}",
                "Give the same or a longer list of inputs.",
                path=None,
            )

    def totals(self) -> dict[str, int]:
        """Totals of this run, for the operator only; events outside the clock are among the rejected."""
        return dict(self._totals)

    def pending(self) -> bytes:
        """Nothing: files are still there on the next run."""
        return b""

    def restore_pending(self, pending: bytes) -> None:
        """Nothing to restore."""

    def stop(self) -> None:
        """End `count` after the slot in hand."""
        self._stopped = True

    def _range(self, first: int, sizes: dict[int, int]) -> SlotRange:
        """As many slots from `first` on as fit in memory together."""
        room = _TEXT_RANGE_EVENTS if any(reader.text for reader in self._readers) else _RANGE_EVENTS
        last = first
        room -= sizes.get(first, 0)
        while last < self._last and last - first < _MOST_SLOTS and sizes.get(last + 1, 0) <= room:
            last += 1
            room -= sizes.get(last, 0)
        return SlotRange(first, last)

    def _in_sql(self, roster: Roster, slots: SlotRange, sizes: dict[int, int]) -> bool:
        if roster.unknown_row is not None or self._settings.engine == "numpy":
            return False
        return self._settings.engine == "duckdb" or sizes.get(slots.first, 0) > 4 * _TEXT_RANGE_EVENTS

    def _plan(self, first: int) -> dict[int, int]:
        """Events per slot from `first` on: what fits in memory together. It never leaves this object."""
        if self._sizes is not None:
            return self._sizes
        sizes: dict[int, int] = {}
        low, high = self._tables.bounds(SlotRange(first, self._last))
        rows = 0
        for reader in self._readers:
            slot = (
                f"CASE WHEN {reader.malformed} THEN -1 WHEN ({reader.time}) < {self._clock.origin_us} "
                f"OR ({reader.time}) >= {high} THEN -2 WHEN ({reader.time}) < {low} THEN -3 "
                f"ELSE (({reader.time}) - {self._clock.origin_us}) // {self._clock.length_us} + 1 END"
            )
            scan = reader.scan
            if reader.files[0].format in ("csv", "tsv"):
                scan = scan.removesuffix(")").replace(
                    "ignore_errors = true", "store_rejects = true, rejects_limit = 0)"
                )
            for number, size in self._execute(f"SELECT {slot} AS slot, count(*) FROM {scan} GROUP BY 1"):
                rows += size
                if number == -1:
                    self._totals["malformed"] += size
                elif number == -2:
                    self._totals["rejected"] += size
                elif number > 0:
                    sizes[number] = sizes.get(number, 0) + size
        self._count_broken_lines()
        if not rows + self._totals["malformed"]:
            raise InvalidInput(
                "events in the input", "files without a row", "Check how they were written.", path=self._paths()[0]
            )
        self._explain_malformed()
        self._sizes = sizes
        return sizes

    def _count_broken_lines(self) -> None:
        """Lines that DuckDB could not even split into fields."""
        tables = self._execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reject_errors'")
        if tables[0][0]:
            query = "SELECT count(*) FROM (SELECT DISTINCT scan_id, file_id, line FROM reject_errors)"
            self._totals["malformed"] += self._execute(query)[0][0]
            self._execute("DROP TABLE reject_errors; DROP TABLE reject_scans")

    def _explain_malformed(self) -> None:
        if not self._totals["malformed"]:
            return
        places = first_malformed(self._readers, self._settings, most=1 if self._settings.strict else 3)
        where = "; ".join(places) or "a row without time, user or cell"
        if self._settings.strict:
            raise InvalidEvents(
                "only well-formed events (strict)",
                f"a malformed line: {where}",
                "Repair the line, or leave strict out to count and skip such lines.",
            )
        if self.report is not None:
            self.report(
                f"Malformed lines were skipped ({self._totals['malformed']} in this input); the first: {where}."
            )

    def _execute(self, query: str) -> list[Any]:
        try:
            return self._connection.execute(query).fetchall()
        except duckdb.Error as error:
            raise self._unreadable(error) from None

    def _guarded(self, counted: Iterator[Counts]) -> Iterator[Counts]:
        try:
            yield from counted
        except duckdb.Error as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: duckdb.Error) -> InvalidInput:
        return InvalidInput(
            "readable input files",
            f"an error while reading {', '.join(map(repr, self._paths()[:3]))} ({type(error).__name__})",
            "Check that none is cut off or still being written.",
            path=self._paths()[0],
        )

    def _paths(self) -> list[str]:
        return [one.path for reader in self._readers for one in reader.files]


def span_of(settings: StreamSettings) -> tuple[int, int] | None:
    """The first and last time in the files (with a slot column: slot numbers less one); None without events.

    Unsafe: for `start_auto` only. It makes the slot clock depend on the events.
    """
    connection = connect()
    spans = []
    for reader in open_readers(connection, settings):
        query = f"SELECT min({reader.time}), max({reader.time}) FROM {reader.scan}"
        spans.append(connection.execute(query).fetchone())
    known = [span for span in spans if span is not None and span[0] is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None
