"""Lines into events: what every text format has in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.cells import Cells
from wevent.counting.lookup import Labels
from wevent.settings import StreamSettings
from wevent.streams.records.fields import Fields, Mask, Numbers
from wevent.streams.records.times import SlotReader, TimeReader

NO_RECORD, NO_USER, NO_CELL, NO_TIME, NO_OFFSET = PROBLEMS = range(5)


class EventColumns(NamedTuple):
    """Events as columns, in the order of their lines.

    Attributes:
        times: µs since 1970 (with a slot column: slot numbers less one).
        users: the ids.
        cells: columns of the declared cells, -1 for an undeclared one.
    """

    times: IntArray
    users: Labels
    cells: IntArray

    @classmethod
    def joined(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Return the events of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            nothing = np.empty(0, dtype=np.int64)
            return cls(nothing, Labels(nothing), nothing)
        times, users, cells = zip(*parts, strict=True)
        return cls(np.concatenate(times), Labels.joined(users), np.concatenate(cells))

    def where(self, chosen: IntArray | Mask | slice) -> EventColumns:
        """Some of the events."""
        return EventColumns(self.times[chosen], self.users[chosen], self.cells[chosen])

    def by_time(self) -> EventColumns:
        """Return the events in order of time; those with equal times stay in their order."""
        times = self.times
        return self.where(times.argsort(kind="stable")) if (times[1:] < times[:-1]).any() else self


class Decoded(NamedTuple):
    """The events of some lines, and which lines are malformed.

    Attributes:
        batch: the events.
        malformed: indices of malformed lines, ascending.
        problems: what is wrong with each.
    """

    batch: EventColumns
    malformed: IntArray
    problems: IntArray


class Decoder(Protocol):
    """A text format. What it makes of a line depends on that line alone."""

    def decode(self, lines: bytes) -> Decoded:
        """The events of whole lines, each with its end."""
        ...

    def time_text(self, line: bytes) -> str | None:
        """What stands where the time of one record should be; None if the line is none."""
        ...


class Columns(NamedTuple):
    """The raw columns of the lines `rows`; the other `broken` lines are no records.

    `lacks_offset` says of some of them, by place, whether their time would be one if an offset were declared.
    """

    rows: IntArray
    times: tuple[IntArray, Mask]
    lacks_offset: Callable[[IntArray], Mask]
    users: Fields | Numbers
    cells: Fields | Numbers
    broken: IntArray


def assemble(columns: Columns, cells: Cells) -> Decoded:
    """Events from raw columns: a line without a time, a user or a cell is malformed."""
    rows, (times, timely), lacks_offset, users, labels, broken = columns
    with_user, with_cell = users.label_sized(), labels.label_sized()
    whole = timely & with_user & with_cell
    if whole.all() and not len(broken):
        nothing = np.empty(0, dtype=np.int64)
        return Decoded(EventColumns(times, users.labels(), cells.find(labels.labels())), nothing, nothing)
    batch = EventColumns(times[whole], users.where(whole).labels(), cells.find(labels.where(whole).labels()))
    problems = np.select((~with_user, ~with_cell, ~timely), (NO_USER, NO_CELL, NO_TIME), NO_RECORD)
    untimely = np.flatnonzero(problems == NO_TIME)
    if len(untimely):
        problems[untimely[lacks_offset(untimely)]] = NO_OFFSET
    malformed = np.concatenate((broken, rows[~whole]))
    order = malformed.argsort(kind="stable")
    both = np.concatenate((np.full(len(broken), NO_RECORD), problems[~whole]))
    return Decoded(batch, malformed[order], both[order])


def time_reader(settings: StreamSettings) -> TimeReader | SlotReader:
    """How the time column is read."""
    return SlotReader() if settings.slot_column else TimeReader(settings.timezone_us, settings.time_unit)


def explain(problem: int, settings: StreamSettings) -> str:
    """A problem in words, without anything of the line."""
    size = f"or one of more than {MAX_LABEL_BYTES} bytes"
    time = "ISO 8601 or a number"
    if settings.timezone_us is None:
        time = "ISO 8601 with Z or an offset, or a number"
    if settings.slot_column:
        time = "a slot number"
    words = ["not a record", f"no user, {size}", f"no cell, {size}", f"its time is not {time}"]
    return [*words, "its time has no offset; --timezone says what such times are in"][problem]
