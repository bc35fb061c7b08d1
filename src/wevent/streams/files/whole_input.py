"""All events of the input files at once, in time order: for simulation, which keeps them in memory."""

from __future__ import annotations

import numpy as np

from wevent.counting.lookup import Labels
from wevent.streams.clock import SlotClock
from wevent.streams.files.parquet_files import ParquetReader
from wevent.streams.files.readers import open_readers
from wevent.streams.records.decoding import EventColumns
from wevent.streams.stream_settings import StreamSettings


def read_events(settings: StreamSettings, clock: SlotClock, last: int) -> EventColumns:
    """The well-formed events of the slots 1 to `last`, in time order, input order among equal times.

    Raises:
        InvalidInput, InvalidEvents: as of `open_readers`.
    """
    low, high = clock.start_of(1), clock.start_of(last + 1)
    parts: list[EventColumns] = []
    for reader in open_readers(settings):
        if isinstance(reader, ParquetReader):
            rows = reader.fetch(reader.events(low, high, text_users=True, text_cells=True))
            times, users, labels = zip(*rows, strict=True) if rows else ((), (), ())
            cells = settings.cells.find(Labels.of_values(labels))
            parts.append(EventColumns(np.array(times, dtype=np.int64), Labels.of_values(users), cells))
        else:
            parts += reader.batches(low, high)
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return EventColumns(nothing, Labels(nothing), nothing)
    times_column, cells_column = (
        np.concatenate(part) for part in zip(*((p.times, p.cells) for p in parts), strict=True)
    )
    events = EventColumns(times_column, Labels.joined([part.users for part in parts]), cells_column)
    return events.where(times_column.argsort(kind="stable"))
