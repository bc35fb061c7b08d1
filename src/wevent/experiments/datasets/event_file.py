"""Event files as streams, read as `wevent publish` reads them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wevent.counting.labels import Cells, LabelIndex
from wevent.counting.roster import last_events
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidEvents, InvalidOption, InvalidSettings
from wevent.experiments.datasets.recorded import Recorded
from wevent.experiments.datasets.stream import SlotTimes
from wevent.settings import StreamSettings
from wevent.streams import declared_clock
from wevent.streams.decoding import EventColumns
from wevent.streams.duckdb_tables import Table, connect
from wevent.streams.file_source import open_readers
from wevent.streams.inputs import object_fields, open_input
from wevent.streams.requirements_file import Requirements

_MOST_SLOTS = 10_000_000  # of a simulation, which counts every one of them
_FULL_RANGE = 100_000  # whole-number cells below this stand for 0 … largest


def file_stream(path: Path, *, slot_length_s: float | None = None, max_cells_per_user: int = 1) -> Recorded:
    """Return the events of a file of `slot,user,cell` or `time,user,cell`.

    Slots of times run from the file's first to its last: in a simulation they may be discovered. Times without an offset
    are UTC. Cells that are whole numbers from 0 on stand for 0 … largest; others are those that occur.

    Args:
        path: a file that `wevent publish` reads.
        slot_length_s: seconds per slot; needed for a `time` column.
        max_cells_per_user: how many cells of a user and slot count: the last distinct ones.

    Raises:
        InvalidOption: if there is no such file, or no slot length for times.
        InvalidInput, InvalidEvents: if it cannot be read, columns are missing, or there is no event.
    """
    if not path.is_file():
        raise InvalidOption(f"No file {str(path)!r}.", "Check the path after file:.", option="stream", value=str(path))
    file = open_input(str(path))
    names = Table(file, connect()).types if file.format == "parquet" else file.columns or object_fields(file)
    if "slot" not in names and slot_length_s is None:
        raise InvalidOption(
            "A file with times needs a slot length.",
            "Add --slot-length, for example 5m, 1h or 1d.",
            option="slot_length",
        )
    settings = StreamSettings(
        inputs=(str(path),),
        cells=Cells.of(1),
        slot_us=1 if "slot" in names else max(1, round((slot_length_s or 0) * 1_000_000)),
        slot_column="slot" if "slot" in names else None,
        start_auto=True,
        timezone_us=0,
        max_cells_per_user=max_cells_per_user,
    )
    labels = _distinct(_read(replace(settings, user_column=settings.cell_column))[0])
    if labels.dtype.kind == "i" and labels[0] >= 0 and labels[-1] < _FULL_RANGE:
        labels = np.arange(labels[-1] + 1)
    stream = configured_stream(replace(settings, cells=Cells.of(labels.tolist())))
    return replace(stream, name=f"file:{path.name}")


def configured_stream(settings: StreamSettings, asked: Requirements | None = None) -> Recorded:
    """Return the stream that settings declare: their clock, cells, columns and files.

    Args:
        settings: of the stream.
        asked: who is registered; None: everybody who occurs.

    Raises:
        InvalidSettings: for live lines, or a clock that is not declared.
        InvalidInput, InvalidEvents: as of `open_readers`, and without events or with too many slots.
    """
    if settings.is_live:
        raise InvalidSettings(
            "Live lines cannot be simulated.", "Keep some lines in a file and name that.", key="inputs"
        )
    clock, last = declared_clock(settings)
    assert last is not None, "files have an end"
    if last > _MOST_SLOTS:
        fix = "Number the slots from 1 on." if settings.slot_column else "Choose a longer slot."
        raise InvalidEvents(f"A simulation takes at most {_MOST_SLOTS:,} slots.", fix, path=settings.inputs[0])
    events, malformed = _read(settings)
    if asked is None:
        names = _distinct(events)
        users = LabelIndex(names.tolist()).find(events.users)
    else:
        names, users = _ids(asked), LabelIndex(asked.users).find(events.users)
    slots = (events.times - clock.origin_us) // clock.length_us
    inside = (slots >= 0) & (slots < last)
    known = inside & (users >= 0) & (events.cells >= 0)
    slots, owners, cells = slots[known], users[known], events.cells[known]
    kept = last_events(slots * max(len(names), 1) + owners, cells, settings.max_cells_per_user)
    remarks = {
        "malformed lines": malformed,
        "events outside the slots": int(np.count_nonzero(~inside)),
        "events of unknown users or cells": int(np.count_nonzero(inside & ~known)),
        "earlier events of a user in a slot": len(owners) - len(kept),
    }
    times = SlotTimes()
    if not settings.slot_column:
        start, length = (timedelta(microseconds=us) for us in (clock.origin_us, clock.length_us))
        times = SlotTimes.from_1970(start, length)
    name = ", ".join(Path(file).name for file in settings.inputs[:3])
    columns = slots[kept], owners[kept], cells[kept]
    return Recorded.from_columns(name, names, list(settings.cells), last, *columns, remarks=remarks, times=times)


def _read(settings: StreamSettings) -> tuple[EventColumns, int]:
    """Return all well-formed events in time order, and the number of malformed lines."""
    parts, malformed = [], 0
    for reader in open_readers(settings):
        for piece in reader.pieces():
            parts.append(piece.decoded.batch)
            malformed += len(piece.decoded.malformed)
    return EventColumns.joined(parts).by_time(), malformed


def _distinct(events: EventColumns) -> npt.NDArray[np.str_ | np.int64]:
    """Return the distinct users: in numerical order if all are whole numbers, else in alphabetical order.

    Raises:
        InvalidEvents: if there are none.
    """
    found = set(events.users.values())
    if not found:
        raise InvalidEvents("There is no event with a slot or time, a user and a cell.", "Check the file.")
    numbers = [value for value in found if isinstance(value, int)]
    if len(numbers) == len(found):
        return np.array(sorted(numbers), dtype=np.int64)
    return np.array(sorted(map(str, found)), dtype=np.str_)


def _ids(asked: Requirements) -> npt.NDArray[np.str_]:
    users = (
        asked.users.texts() if isinstance(asked.users, StringColumn) else [str(user) for user in asked.users.tolist()]
    )
    return np.array(users, dtype=np.str_)
