"""Text files as events: every line is decoded once, whatever the order of events in the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.files.inputs import InputFile, read_lines, require_columns, text_bytes
from wevent.streams.files.spill import Spill
from wevent.streams.files.survey import Survey
from wevent.streams.records.decoding import PROBLEMS, Decoded, Decoder, EventColumns, explain, time_reader
from wevent.streams.records.delimited import DELIMITERS, DelimitedDecoder
from wevent.streams.records.objects import ObjectDecoder


class TextPiece(NamedTuple):
    """Some lines of a file.

    Attributes:
        file: the file.
        decoder: of its lines.
        first: number of the first line.
        lines: whole lines.
        decoded: their events.
    """

    file: InputFile
    decoder: Decoder
    first: int
    lines: bytes
    decoded: Decoded


class TextReader:
    """CSV, TSV or NDJSON files, compressed or not.

    Args:
        files: in input order.
        settings: their columns, the declared cells, how times are read.

    Raises:
        InvalidInput: if a header lacks a column.
    """

    def __init__(self, files: Sequence[InputFile], settings: StreamSettings) -> None:
        self.files = tuple(files)
        self._settings = settings
        self._decoders = [decoder_of(file, settings) for file in files]
        self._spill = Spill(sum(map(text_bytes, files)))

    def survey(self, clock: SlotClock, last: int, found: Survey) -> None:
        """Decode all lines, and keep the events of slots 1 to `last` for `batches`."""
        for file, _, first, _, decoded in self.pieces():
            batch = decoded.batch
            slots = (batch.times - clock.origin_us) // clock.length_us + 1
            inside = (slots >= 1) & (slots <= last)
            if not inside.all():
                before = int(np.count_nonzero(slots < 1))
                found.uncounted.outside(before, int(np.count_nonzero(~inside)) - before)
                slots, batch = slots[inside], batch.where(inside)
            numbers, sizes = np.unique(slots, return_counts=True)
            found.sizes.update(dict(zip(numbers.tolist(), sizes.tolist(), strict=True)))
            self._spill.add(batch)
            found.uncounted.malform(np.bincount(decoded.problems, minlength=len(PROBLEMS)).tolist())
            for row, problem in zip(decoded.malformed.tolist(), decoded.problems.tolist(), strict=True):
                if not found.note(f"{file.path} line {first + row} ({explain(problem, self._settings)})"):
                    break

    def batches(self, low_us: int, high_us: int, *, in_parts: bool) -> Iterator[EventColumns]:
        """Return the events in [low, high) that `survey` kept, in the order of their lines among equal times."""
        return self._spill.read(low_us, high_us)

    def span(self) -> tuple[int, int] | None:
        """Return the first and last time in the files; None without events."""
        spans = [
            (int(piece.decoded.batch.times.min()), int(piece.decoded.batch.times.max()))
            for piece in self.pieces()
            if len(piece.decoded.batch.times)
        ]
        return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None

    def pieces(self) -> Iterator[TextPiece]:
        """Decode the files piece by piece."""
        for file, decoder in zip(self.files, self._decoders, strict=True):
            first = 2 if file.columns else 1
            for lines in read_lines(file):
                yield TextPiece(file, decoder, first, lines, decoder.decode(lines))
                first += lines.count(b"\n")


def decoder_of(file: InputFile, settings: StreamSettings) -> Decoder:
    """Return the decoder for the lines of a text file after its header.

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
