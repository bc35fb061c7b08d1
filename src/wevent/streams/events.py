"""Live lines decoded in batches, and the events of one open slot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.cells import Cells
from wevent.core.arrays import IntArray
from wevent.counts import Counts
from wevent.roster import Roster
from wevent.streams.readers import UNITS

_FAR = 4e18  # microseconds: beyond any clock, within int64
_NOBODY = -(2**62)
_CANONICAL = re.compile(r"0|-?[1-9]\d{0,17}")


class Batch(NamedTuple):
    """Events as columns: µs since 1970, user ids (int64 or text), cell columns (-1: unknown)."""

    times: IntArray
    users: npt.NDArray[Any]
    cells: IntArray


class LineDecoder:
    """Decodes event lines and close lines.

    Args:
        columns: the names of time, user and cell in the objects.
        cells: the declared cells.
        timezone_us: the offset of times that carry none; None makes such lines malformed.
        time_unit: what numbers as times count.
    """

    def __init__(self, columns: Mapping[str, str], cells: Cells, timezone_us: int | None, time_unit: str) -> None:
        moment: Any = datetime if timezone_us is not None else Annotated[datetime, msgspec.Meta(tz=True)]
        fields = [("time", moment | int | float), ("user", int | str), ("cell", int | str)]
        event: Any = msgspec.defstruct("Event", fields, rename=dict(columns), gc=False)
        close: Any = msgspec.defstruct("Close", [("close", moment | int | float)], gc=False, forbid_unknown_fields=True)
        self._events = msgspec.json.Decoder(event)
        self._close = msgspec.json.Decoder(close)
        self._cells = cells
        self._numbers = all(type(label) is int for label in cells)
        self._zone = UTC if timezone_us is None else timezone(timedelta(microseconds=timezone_us))
        self._unit = UNITS[time_unit]

    def batch(self, lines: bytes) -> Batch:
        """All lines at once.

        Raises:
            msgspec.DecodeError: if any is malformed.
        """
        return self._columns(self._events.decode_lines(lines))

    def each(self, lines: Sequence[bytes]) -> tuple[Batch, list[int]]:
        """Line by line: the events, and the indices of malformed lines."""
        events, malformed = [], []
        for index, line in enumerate(lines):
            if line.strip():
                try:
                    events.append(self._events.decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    malformed.append(index)
        return self._columns(events), malformed

    def close(self, line: bytes) -> int | None:
        """The time of a close line, None if it is none."""
        try:
            return int(self._times([self._close.decode(line).close])[0])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _columns(self, events: list[Any]) -> Batch:
        labels = label_column([event.cell for event in events])
        rows = self._cells.find(whole_numbers(labels) if self._numbers else labels)
        return Batch(
            self._times([event.time for event in events]), label_column([event.user for event in events]), rows
        )

    def _times(self, values: list[Any]) -> IntArray:
        try:
            seconds = np.array([value.timestamp() for value in values]) if self._zone is UTC else None
        except AttributeError:
            seconds = None
        if seconds is not None:
            return np.rint(seconds * 1e6).astype(np.int64)
        times = np.array([self._time(value) for value in values], dtype=np.float64)
        return np.rint(np.clip(times, -_FAR, _FAR)).astype(np.int64)

    def _time(self, value: Any) -> float:
        if isinstance(value, datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=self._zone)
            return aware.timestamp() * 1e6
        try:
            return float(value) * self._unit
        except OverflowError:
            return _FAR


def label_column(labels: list[Any]) -> npt.NDArray[Any]:
    """Ids or labels as int64 if all are such numbers, else as text."""
    if not labels:
        return np.empty(0, dtype=np.int64)
    column = np.array(labels)
    return column if column.dtype.kind in "iU" else np.array([str(label) for label in labels])


def whole_numbers(labels: npt.NDArray[Any]) -> IntArray:
    """Labels as numbers, where the text is how the number is written; anything else is nobody's number."""
    if labels.dtype.kind == "i":
        return labels.astype(np.int64, copy=False)
    numbers = (int(label) if _CANONICAL.fullmatch(label) else _NOBODY for label in labels.tolist())
    return np.fromiter(numbers, dtype=np.int64, count=len(labels))


class OpenSlot:
    """The events of a slot that is still open; they are in memory only, and no more of them than can still count.

    Order of arrival does not matter: of a user's events the latest counts, of those at the same microsecond the one
    in the cell declared last.
    """

    def __init__(self, limit: int, *, compact_above: int = 1_000_000) -> None:
        self.rejected = 0
        self._limit = limit
        self._parts: list[Batch] = []
        self._size = 0
        self._compact_above = self._full = compact_above

    def add(self, batch: Batch) -> None:
        """More events of this slot."""
        self._parts.append(batch)
        self._size += len(batch.times)
        if self._size > self._full:
            self._compact()

    def count(self, roster: Roster, cells: int) -> Counts:
        """The slot's counts with this roster."""
        _, users, columns = self._sorted()
        numbered = roster.users.dtype.kind in "iu"
        counts = roster.count_rows(
            roster.find(whole_numbers(users) if numbered else users),
            columns,
            cells,
            max_cells_per_user=self._limit,
            unknown=users.__getitem__,
        )
        return Counts(counts.matrix, counts.rejected + self.rejected)

    def dump(self) -> list[Any]:
        """Plain values for `load`."""
        times, users, cells = self._joined()
        return [times.tobytes(), users.tolist(), cells.tobytes(), self.rejected]

    @classmethod
    def load(cls, limit: int, saved: Sequence[Any]) -> OpenSlot:
        """A slot with the events of `dump`."""
        slot = cls(limit)
        slot.rejected = int(saved[3])
        times, cells = (np.frombuffer(one, dtype=np.int64).copy() for one in (saved[0], saved[2]))
        slot.add(Batch(times, label_column(list(saved[1])), cells))
        return slot

    def _joined(self) -> Batch:
        if not self._parts:
            return Batch(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
        if len(self._parts) > 1:
            users = [part.users for part in self._parts]
            if len({column.dtype.kind for column in users}) > 1:
                users = [column.astype(np.str_) for column in users]
            times, cells = (np.concatenate(column) for column in zip(*((p[0], p[2]) for p in self._parts), strict=True))
            self._parts = [Batch(times, np.concatenate(users), cells)]
        return self._parts[0]

    def _sorted(self) -> Batch:
        batch = self._joined()
        if (batch.times[1:] <= batch.times[:-1]).any():
            order = np.lexsort((batch.cells, batch.times))
            batch = Batch(*(column[order] for column in batch))
        return batch

    def _compact(self) -> None:
        """Keep of every id the last `limit` distinct declared cells: what else there is cannot count any more."""
        times, users, cells = self._sorted()
        known = np.flatnonzero(cells >= 0)
        self.rejected += len(cells) - len(known)
        times, users, cells = times[known][::-1], users[known][::-1], cells[known][::-1]  # latest first
        _, owner = np.unique(users, return_inverse=True)
        _, first = np.unique(owner * (int(cells.max(initial=0)) + 1) + cells, return_index=True)
        first.sort()
        order = first[owner[first].argsort(kind="stable")]
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        lengths = np.diff(np.append(starts, len(order)))
        kept = order[np.arange(len(order)) - np.repeat(starts, lengths) < self._limit]
        kept = np.sort(kept)[::-1]
        self._parts = [Batch(times[kept], users[kept], cells[kept])]
        self._size = len(kept)
        self._full = max(self._compact_above, 2 * self._size)
