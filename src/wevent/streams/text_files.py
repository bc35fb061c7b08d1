"""Text files as events; every line is decoded once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from wevent.streams.decoding import TIME_PROBLEMS, Decoder, event_columns, time_reader
from wevent.streams.delimited import DELIMITERS, DelimitedDecoder
from wevent.streams.inputs import EventPiece, InputFile, object_fields, read_lines, require_columns
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.stream_settings import StreamSettings


class TextReader:
    """Events of a CSV, TSV or NDJSON file, compressed or not.

    Raises:
        InvalidInput: if a header lacks a column.
    """

    unit = "line"

    def __init__(self, file: InputFile, settings: StreamSettings) -> None:
        self.file = file
        self._decoder = open_decoder(file, settings)

    @property
    def columns(self) -> list[str]:
        """The names in the header; of NDJSON the fields that most of the first objects have."""
        return list(self.file.columns or object_fields(self.file))

    def pieces(self) -> Iterator[EventPiece]:
        """Yield the events of all lines, in their order."""
        first = 2 if self.file.columns else 1
        for lines in read_lines(self.file):
            yield EventPiece(first, self._decoder.decode(lines), partial(self._example, lines))
            first += lines.count(b"\n")

    def _example(self, lines: bytes, row: int, problem: int) -> str:
        """Return a malformed line, or the time in it if that is malformed."""
        line = lines.split(b"\n", row + 1)[row]
        time = self._decoder.time_text(line) if problem in TIME_PROBLEMS else None
        return line.decode(errors="replace") if time is None else time


def open_decoder(file: InputFile, settings: StreamSettings) -> Decoder:
    """Return the decoder for the lines of a text file after its header.

    Raises:
        InvalidInput: if its header lacks a column.
    """
    times, wanted = time_reader(settings), event_columns(settings)
    if file.format not in DELIMITERS:
        return ObjectDecoder(dict(zip(("time", "user", "cell"), wanted, strict=True)), settings.cells, times)
    require_columns(file.path, file.columns, wanted)
    delimiter = DELIMITERS[file.format]
    return DelimitedDecoder(file.columns, wanted, delimiter=delimiter, cells=settings.cells, times=times)
