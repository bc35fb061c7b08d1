"""Text files as events: line by line, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import InputFile, read_lines, require_columns
from wevent.streams.files.survey import Survey
from wevent.streams.records.decoding import Decoded, Decoder, EventColumns, explain, time_reader
from wevent.streams.records.delimited import DELIMITERS, DelimitedDecoder
from wevent.streams.records.objects import ObjectDecoder
from wevent.streams.stream_settings import StreamSettings


class TextReader:
    """One CSV, TSV or NDJSON file, compressed or not.

    Args:
        file: which.
        settings: its columns, the declared cells, how times are read.

    Raises:
        InvalidInput: if its header lacks a column.
    """

    text = True

    def __init__(self, file: InputFile, settings: StreamSettings) -> None:
        self.files = (file,)
        self._settings = settings
        self.decoder = decoder_of(file, settings)

    def batches(self, low_us: int, high_us: int) -> Iterator[EventColumns]:
        """The events in [low, high), in the order of their lines."""
        for _, _, decoded in self.pieces():
            times = decoded.batch.times
            inside = (times >= low_us) & (times < high_us)
            yield decoded.batch if inside.all() else decoded.batch.where(inside)

    def survey(self, clock: SlotClock, last: int) -> Survey:
        """What is in the file, slot by slot."""
        found = Survey()
        for line, _, decoded in self.pieces():
            slots = (decoded.batch.times - clock.origin_us) // clock.length_us + 1
            inside = slots[(slots >= 1) & (slots <= last)]
            if len(inside) < len(slots):
                before = int(np.count_nonzero(slots < 1))
                found.before += before
                found.after += len(slots) - len(inside) - before
            found.add(*np.unique(inside, return_counts=True))
            found.malform(decoded.problems)
            for row, problem in zip(decoded.malformed.tolist(), decoded.problems.tolist(), strict=True):
                if not found.note(f"{self.files[0].path} line {line + row} ({explain(problem, self._settings)})"):
                    break
        return found

    def span(self) -> tuple[int, int] | None:
        """The first and last time in the file; None without events."""
        spans = [
            (int(decoded.batch.times.min()), int(decoded.batch.times.max()))
            for _, _, decoded in self.pieces()
            if len(decoded.batch.times)
        ]
        return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None

    def pieces(self) -> Iterator[tuple[int, bytes, Decoded]]:
        """The file piece by piece: the number of its first line, its lines, and what they say."""
        line = 2 if self.files[0].columns else 1
        for lines in read_lines(self.files[0]):
            yield line, lines, self.decoder.decode(lines)
            line += lines.count(b"\n")


def decoder_of(file: InputFile, settings: StreamSettings) -> Decoder:
    """What decodes the lines of a text file after its header.

    Raises:
        InvalidInput: if its header lacks a column.
    """
    names = {**settings.columns, "time": settings.slot_column or settings.columns["time"]}
    times = time_reader(settings)
    if file.format not in DELIMITERS:
        return ObjectDecoder(names, settings.cells, times)
    wanted = [names["time"], names["user"], names["cell"]]
    require_columns(file.path, file.columns, wanted)
    delimiter = DELIMITERS[file.format]
    return DelimitedDecoder(file.columns, wanted, delimiter=delimiter, cells=settings.cells, times=times)
