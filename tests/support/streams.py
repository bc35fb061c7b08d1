"""Small streams for tests: settings with defaults, a slow count to compare with, an inbox with a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np

from wevent import Cells, Roster
from wevent.settings import StreamSettings
from wevent.streams import file_source, spill
from wevent.streams.source import SlotCounts, Source

SECOND = 1_000_000
DAY = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z


def settings(inputs: Sequence[str] = ("-",), cells: Any = 4, **others: Any) -> StreamSettings:
    """One-minute slots from the start of 2026."""
    others = {"slot_us": 60 * SECOND, "start_us": DAY, **others}
    return StreamSettings(inputs=tuple(map(str, inputs)), cells=Cells.of(cells), **others)


def roster(users: Any = (1, 2, 3, 4, 5)) -> Roster:
    """Every other user asks for more."""
    ids = np.array(users)
    return Roster.from_columns(
        ids, [(4, 6)[i % 2] for i in range(len(ids))], [(1.0, 0.5)[i % 2] for i in range(len(ids))]
    )


def slow_count(events: Iterable[tuple[int, Any, Any]], people: Roster, cells: Sequence[Any], k: int) -> Any:
    """One slot by the book: (time, user, cell) in input order, as text; the matrix and how many were rejected."""
    row_of = {str(user): row for row, user in enumerate(people.users.tolist())}
    column_of = {str(cell): column for column, cell in enumerate(cells)}
    matrix, rejected, seen = np.zeros((len(people.population), len(cells)), dtype=np.int64), 0, {}
    for _, user, cell in sorted(events, key=lambda event: event[0]):
        if str(user) not in row_of or str(cell) not in column_of:
            rejected += 1
            continue
        kept = seen.setdefault(row_of[str(user)], [])
        column = column_of[str(cell)]
        if column in kept:
            kept.remove(column)
        kept.append(column)
        del kept[:-k]
    for row, columns in seen.items():
        for column in columns:
            matrix[people.classes[row], column] += 1
    return matrix, rejected


@contextmanager
def tight_memory() -> Iterator[None]:
    """Leave files no room: every few events go to a temporary file, and every slot of some events is large."""
    with (
        patch.multiple(spill, _RUN_EVENTS=4, _PIECE_EVENTS=2),
        patch.multiple(file_source, _RANGE_EVENTS=3, _LARGE_SLOT=5),
    ):
        yield


MEMORY = {"enough": nullcontext, "tight": tight_memory}
"""Ways to read files; the counts are the same."""


def nonzero(source: Source) -> dict[str, int]:
    """The totals of a source that are not 0."""
    return {name: number for name, number in source.totals().items() if number}


def plain(counted: Iterable[SlotCounts]) -> list[tuple[int, list[list[int]], int]]:
    """Comparable: slot, matrix, rejected."""
    return [(one.slot, one.counts.matrix.tolist(), one.counts.rejected) for one in counted]


class Wall:
    """A wall clock that moves when told."""

    def __init__(self, now_us: int = DAY) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us


class ScriptedInbox:
    """Hands out bytes and moves the wall clock as the script says: bytes arrive, a number sets the time in seconds.

    Afterwards the input has ended, unless it is left open: then time runs.
    """

    def __init__(self, script: Iterable[bytes | float], wall: Wall, *, leave_open: bool = False) -> None:
        self._script = list(script)
        self._wall = wall
        self._leave_open = leave_open

    def get(self, timeout_s: float) -> bytes | None:
        while self._script:
            one = self._script.pop(0)
            if isinstance(one, bytes):
                return one
            self._wall.now_us = DAY + round(one * SECOND)
            return None
        if self._leave_open:
            self._wall.now_us += round(timeout_s * SECOND)
            return None
        return b""

    def waiting(self) -> int:
        return 0
