"""The events that `wevent publish` would read under the same settings, as a stream to experiment on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wevent.counting.labels import LabelIndex
from wevent.counting.roster import last_events
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidSettings
from wevent.experiments.datasets.raw import by_user_and_slot
from wevent.experiments.datasets.recorded import Recorded
from wevent.experiments.datasets.stream import SlotTimes
from wevent.settings import StreamSettings
from wevent.streams import declared_clock
from wevent.streams.file_source import read_events
from wevent.streams.requirements_file import Requirements


def configured_stream(settings: StreamSettings, asked: Requirements | None = None) -> Recorded:
    """The stream that settings declare: their clock, cells, columns and files, read as publishing reads them.

    Args:
        settings: of the stream.
        asked: who is registered; None: everybody who occurs.

    Raises:
        InvalidSettings: for live lines, or a clock that is not declared.
        InvalidInput, InvalidEvents: as of `open_readers`.
    """
    if settings.is_live:
        raise InvalidSettings("files", "live lines", "Keep some lines in a file and name that.", key="inputs")
    clock, last = declared_clock(settings)
    assert last is not None, "files have an end"
    events = read_events(settings, clock, last)
    if asked is None:
        names = np.array(sorted({str(user) for user in events.users.values()}), dtype=np.str_)
        users = LabelIndex(names.tolist()).find(events.users)
    else:
        names, users = _ids(asked), LabelIndex(asked.users).find(events.users)
    known = (users >= 0) & (events.cells >= 0)
    slots = (events.times[known] - clock.origin_us) // clock.length_us
    owners, cells = users[known], events.cells[known]
    kept = last_events(slots * max(len(names), 1) + owners, cells, settings.max_cells_per_user)
    slot, user, cell = by_user_and_slot(slots[kept], owners[kept], cells[kept])
    remarks = {
        "events of unknown users or cells": int(np.count_nonzero(~known)),
        "earlier events of a user in a slot": len(owners) - len(kept),
    }
    name = ", ".join(Path(file).name for file in settings.inputs[:3])
    times = SlotTimes()
    if not settings.slot_column:
        start, length = (timedelta(microseconds=us) for us in (clock.origin_us, clock.length_us))
        times = SlotTimes.from_1970(start, length)
    return Recorded(name, names, list(settings.cells), last, slot, user, cell, remarks=remarks, times=times)


def _ids(asked: Requirements) -> npt.NDArray[np.str_]:
    users = (
        asked.users.texts() if isinstance(asked.users, StringColumn) else [str(user) for user in asked.users.tolist()]
    )
    return np.array(users, dtype=np.str_)
