"""Two ways to count a range of slots from files, one contract: what `Roster.count` says, slot by slot.

Of a user's events in a slot the latest wins, ties going to the later one in the input (with k > 1: the last k distinct
cells); events of unknown users or cells are dropped first and counted as rejected, each under one reason.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.counting.cells import Cells
from wevent.counting.counts import NONE_REJECTED, Counts, Rejected
from wevent.counting.lookup import Labels
from wevent.counting.roster import Roster
from wevent.streams.clock import SlotClock
from wevent.streams.files.folding import fold_text
from wevent.streams.files.parquet_files import ParquetReader
from wevent.streams.files.readers import Reader
from wevent.streams.files.sql import connect


class SlotStretch(NamedTuple):
    """Slots first to last, both included."""

    first: int
    last: int


class Tables:
    """The readers, and the roster and cells as tables that DuckDB can join with, made when they are needed."""

    def __init__(self, readers: Sequence[Reader], cells: Cells, clock: SlotClock) -> None:
        self.readers = readers
        self.cells = cells
        self.clock = clock
        self.parquet = [reader for reader in readers if isinstance(reader, ParquetReader)]
        self.integer_cells = cells.numbered and all(reader.integer_cells for reader in self.parquet)
        self._loaded: Roster | None = None

    @functools.cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Where queries run."""
        return self.parquet[0].connection if self.parquet else connect()

    def load(self, roster: Roster) -> None:
        """Make `roster` the one that SQL sees; quick if it is already."""
        if self._loaded is roster:
            return
        ids = roster.users
        if ids.dtype.kind not in "iu":
            ids = np.array([str(user) for user in Labels.of(ids).values()], dtype=object)
        if self._loaded is None:
            cells = self.cells
            labels = (
                np.arange(len(cells)) if cells.numbered else np.array([str(label) for label in cells], dtype=object)
            )
            self._load("cells", {"label": labels, "place": np.arange(len(cells))})
        self._load("roster", {"id": ids, "place": np.arange(len(ids)), "class": roster.classes})
        self._loaded = roster

    def integer_users(self, roster: Roster) -> bool:
        """Whether ids need no text anywhere."""
        return roster.numbered and all(reader.integer_users for reader in self.parquet)

    def _load(self, name: str, columns: dict[str, npt.NDArray[Any]]) -> None:
        self.connection.register("arriving", columns)
        key, *others = columns
        text = f"CAST({key} AS VARCHAR) AS {key}"
        chosen = ", ".join([f"{key} AS number", text, *others]) if columns[key].dtype.kind != "O" else "*"
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {chosen} FROM arriving")
        self.connection.unregister("arriving")

    def bounds(self, slots: SlotStretch) -> tuple[int, int]:
        """The times [low, high) of a range."""
        return self.clock.start_of(slots.first), self.clock.start_of(slots.last + 1)


class _Held(NamedTuple):
    """A range in memory: events in time order, input order among equal times.

    Attributes:
        slots: the range.
        roster: whose positions stand for the users; None: they are ids yet.
        columns: t, u, c, and `stranger` for the ids of unregistered users.
        rejected: what was rejected and is not among the columns any more (of a range of one slot).
    """

    slots: SlotStretch
    roster: Roster | None
    columns: dict[str, npt.NDArray[Any]]
    rejected: Rejected


class NumpyEngine:
    """Fetches a range as columns and counts with numpy: the quick one. Keeps the range for the next call."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._held: _Held | None = None

    def held(self, roster: Roster, slot: int) -> SlotStretch | None:
        """The range in memory, if it has this slot and is valid for this roster."""
        if self._held is None or self._held.roster not in (None, roster):
            return None
        slots = self._held.slots
        return slots if slots.first <= slot <= slots.last else None

    def count(
        self, roster: Roster, slots: SlotStretch, limit: int, within: SlotStretch | None = None
    ) -> Iterator[Counts]:
        """Count each slot of `slots`; `within` is what to read at once, and keep."""
        held = self._held
        if held is None or self.held(roster, slots.first) is None:
            self._held = None  # room for the next one
            held = self._held = self._fetch(roster, within or slots, limit)
        clock, cells = self._tables.clock, self._tables.cells
        marks = np.array([clock.start_of(slot) for slot in range(slots.first, slots.last + 2)], dtype=np.int64)
        places = held.columns["t"].searchsorted(marks).tolist()
        for start, stop in itertools.pairwise(places):
            users, labels = held.columns["u"][start:stop], held.columns["c"][start:stop]
            if held.roster is None:
                yield roster.count(users, labels, cells, max_cells_per_user=limit)
            else:
                stranger = held.columns["stranger"][start:stop] if "stranger" in held.columns else None
                unknown = None if stranger is None else _ids_in(stranger)
                counts = roster.count_rows(users, labels, len(cells), max_cells_per_user=limit, unknown=unknown)
                yield Counts(counts.matrix, counts.reasons.plus(held.rejected))

    def _fetch(self, roster: Roster, slots: SlotStretch, limit: int) -> _Held:
        tables = self._tables
        plain = len(tables.parquet) == len(tables.readers) and tables.integer_users(roster) and tables.integer_cells
        if tables.parquet and not plain:
            tables.load(roster)
        parts, rejected = [], NONE_REJECTED
        for reader in tables.readers:
            if isinstance(reader, ParquetReader):
                parts.append(self._query(reader, roster, slots, plain))
            else:
                folded = fold_text(reader, roster, tables.bounds(slots), limit, one_slot=slots.first == slots.last)
                rejected = rejected.plus(folded.rejected)
                parts.append(folded.columns)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts[1:] else parts[0]
        if (columns["t"][1:] < columns["t"][:-1]).any():
            _reorder(columns, columns["t"])
        return _Held(slots, None if plain else roster, columns, rejected)

    def _query(
        self, reader: ParquetReader, roster: Roster, slots: SlotStretch, plain: bool
    ) -> dict[str, npt.NDArray[Any]]:
        tables = self._tables
        events = reader.events(*tables.bounds(slots), text_users=not plain, text_cells=not plain)
        query = events if plain else _looked_up(events, roster)
        part = {name: np.asarray(column) for name, column in tables.connection.execute(query).fetchnumpy().items()}
        if not plain:  # a join forgets the order
            _reorder(part, part.pop("n"))
        return part


def _ids_in(stranger: npt.NDArray[Any]) -> Callable[[IntArray], Labels]:
    return lambda rows: Labels.of_values(stranger[rows].tolist())


def _reorder(columns: dict[str, npt.NDArray[Any]], key: IntArray) -> None:
    order = key.argsort(kind="stable")
    for name in columns:
        columns[name] = columns[name][order]


def _looked_up(events: str, roster: Roster) -> str:
    """Return a query for events with positions instead of ids and labels, -1 for the unknown, in input order `n`."""
    stranger = "" if roster.unknown_row is None else ", CASE WHEN roster.place IS NULL THEN u END AS stranger"
    return (
        f"SELECT t, n, coalesce(roster.place, -1) AS u, coalesce(cells.place, -1) AS c{stranger} "
        f"FROM (SELECT *, row_number() OVER () AS n FROM ({events})) "
        f"LEFT JOIN roster ON u = roster.id LEFT JOIN cells ON c = cells.label"
    )


class DuckdbEngine:
    """Counts in SQL: only the class × cell sums leave DuckDB. For slots too large to fetch."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def count(self, roster: Roster, slots: SlotStretch, limit: int, events: int) -> Iterator[Counts]:
        """Count each slot of `slots`, which have no more than so many events."""
        tables = self._tables
        tables.load(roster)
        execute = tables.connection.execute
        folded = self._load_text(roster, slots, limit)
        execute(f"CREATE OR REPLACE TEMP VIEW valid AS {self._valid(roster, slots, events)}")
        sums = execute(_last_cell() if limit == 1 else _last_cells(limit)).fetchnumpy()
        rejected = {slot: Rejected(*why) for slot, *why in execute(_REJECTED).fetchall()}
        shape = (slots.last - slots.first + 1, len(roster.population), len(tables.cells))
        matrices = np.zeros(shape, dtype=np.int64)
        matrices[sums["slot"] - slots.first, sums["class"], sums["col"]] = sums["users"]
        for index, matrix in enumerate(matrices):
            yield Counts(matrix, rejected.get(slots.first + index, NONE_REJECTED).plus(folded))

    def _load_text(self, roster: Roster, slots: SlotStretch, limit: int) -> Rejected:
        """Events of text files as tables `text_0`, …; what was rejected on the way."""
        rejected = NONE_REJECTED
        for index, reader in enumerate(self._tables.readers):
            if not isinstance(reader, ParquetReader):
                bounds = self._tables.bounds(slots)
                folded = fold_text(reader, roster, bounds, limit, one_slot=slots.first == slots.last)
                columns = {**folded.columns, "n": np.arange(1, len(folded.columns["t"]) + 1)}
                self._tables.connection.register(f"text_{index}", columns)
                rejected = rejected.plus(folded.rejected)
        return rejected

    def _valid(self, roster: Roster, slots: SlotStretch, events: int) -> str:
        """All events of the range with slot, place in time and input as one number, and user, class, cell if known."""
        tables, clock = self._tables, self._tables.clock
        by_number = tables.integer_users(roster)
        key, cell_key = "number" if by_number else "id", "number" if tables.integer_cells else "label"
        low, high = tables.bounds(slots)
        places = (events + 1) * len(tables.readers)
        kind = "BIGINT" if (high - low) * places < 2**62 else "HUGEINT"
        slot = f"(t - {clock.origin_us}) // {clock.length_us} + 1 AS slot"
        selects = []
        for index, reader in enumerate(tables.readers):
            moment = f"CAST(t - {low} AS {kind}) * {places} + {index * (events + 1)} + {{}} AS moment"
            if isinstance(reader, ParquetReader):
                texts = {"text_users": not by_number, "text_cells": not tables.integer_cells}
                selects.append(
                    f"SELECT {slot}, moment, roster.place AS row, roster.class AS class, cells.place AS col FROM "
                    f"(SELECT *, {moment.format('row_number() OVER ()')} FROM ({reader.events(low, high, **texts)})) "
                    f"LEFT JOIN roster ON u = roster.{key} LEFT JOIN cells ON c = cells.{cell_key}"
                )
            else:
                selects.append(
                    f"SELECT {slot}, moment, roster.place AS row, roster.class AS class, nullif(c, -1) AS col FROM "
                    f"(SELECT *, {moment.format('n')} FROM text_{index}) LEFT JOIN roster ON u = roster.place"
                )
        return " UNION ALL ".join(selects)


_REJECTED = (
    "SELECT slot, count(*) FILTER (col IS NULL), count(*) FILTER (col IS NOT NULL) "
    "FROM valid WHERE row IS NULL OR col IS NULL GROUP BY slot"
)


def _last_cell() -> str:
    return (
        "SELECT slot, class, col, count(*) AS users FROM (SELECT slot, row, any_value(class) AS class, "
        "arg_max(col, moment) AS col FROM valid WHERE row IS NOT NULL AND col IS NOT NULL GROUP BY slot, row) "
        "GROUP BY slot, class, col"
    )


def _last_cells(limit: int) -> str:
    return (
        "SELECT slot, class, col, count(*) AS users FROM (SELECT slot, row, class, col, row_number() OVER "
        "(PARTITION BY slot, row ORDER BY moment DESC) AS place FROM (SELECT slot, row, any_value(class) AS class, "
        "col, max(moment) AS moment FROM valid WHERE row IS NOT NULL AND col IS NOT NULL GROUP BY slot, row, col)) "
        f"WHERE place <= {limit} GROUP BY slot, class, col"
    )
