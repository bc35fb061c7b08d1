"""Releases of a range of slots as JSON, NDJSON, CSV or Parquet, read in pieces; content negotiation."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from anyio import open_file, to_thread
from fastapi import Response
from fastapi.responses import StreamingResponse

from wevent.counting.cells import split_labels
from wevent.journal import Journal
from wevent.journal.contents import Head
from wevent.outputs import ParquetOutput
from wevent.outputs.lines import CSV_HEADER, csv_lines, ndjson_line, released_records
from wevent.outputs.selection import Selection, parse_slots
from wevent.service.context import ServiceContext
from wevent.service.problems import RequestError
from wevent.service.request_body import CSV, JSON, NDJSON

PARQUET = "application/vnd.apache.parquet"
_PIECE = 50  # slots that are read at once, fewer if they are large
_PIECE_BYTES = 1 << 20
_CHUNK = 1 << 16  # bytes
_FILE_VALUES = 2_000_000  # slots × cells of one Parquet file, which is on disk while it is sent


class Range(NamedTuple):
    """What was asked for.

    Attributes:
        begin, end: slots or times, as they were written; None: not said.
        cells: labels, separated by commas; None: all.
        limit: how many slots at most.
    """

    begin: str | None
    end: str | None
    cells: str | None
    limit: int

    def slots(self, head: Head, committed: int) -> tuple[int, int, int]:
        """The first and the last slot, and the last one that was asked for and is there."""
        begin, end = parse_slots(head, self.begin, self.end)
        last = committed if end is None else end
        first = max(1, min(last, committed) - self.limit + 1) if begin is None else begin
        first = max(first, head.first)
        there = min(last, committed)
        return first, min(there, first + self.limit - 1), there


class ReleaseRange:
    """Releases of consecutive slots, as far as there are any.

    Args:
        context: of the service.
        asked: what was asked for.
        slots: the first and the last slot, and the last one that was asked for and is there.
        cells: how many cells each has.
    """

    def __init__(self, context: ServiceContext, asked: Range, slots: tuple[int, int, int], cells: int) -> None:
        self._context, self._asked, self._cells = context, asked, cells
        self._first, self._last, self._there = slots
        self._labels = None if asked.cells is None else split_labels(asked.cells)

    @classmethod
    async def find(cls, context: ServiceContext, asked: Range) -> ReleaseRange:
        """The range that was asked for.

        Raises:
            InvalidOption: for slots that are none.
            InvalidSettings: for times that are none.
            InvalidCells: for cells that nobody declared.
        """
        committed = context.feed.committed

        def look(journal: Journal) -> tuple[tuple[int, int, int], int]:
            head = journal.head()
            cells = head.epoch.terms.number_of_cells
            if asked.cells is not None:
                labels = split_labels(asked.cells)
                Selection(journal, None, labels)
                cells = len(labels)
            return asked.slots(head, committed), cells

        return cls(context, asked, *await context.reader.ask(look))

    @property
    def next(self) -> int | None:
        """The slot to go on from, None if there is none yet."""
        return self._last + 1 if self._first <= self._last < self._there else None

    async def response(self, kind: str) -> Response:
        """All of it, in a format; of a Parquet file as many slots as it may hold, and where to go on."""
        if kind == PARQUET:
            self._last = min(self._last, self._first + max(1, _FILE_VALUES // max(1, self._cells)) - 1)
        headers = {} if self.next is None else {"Link": f'<{self._next_address()}>; rel="next"'}
        if kind == PARQUET:
            return await self._parquet(headers)
        parts = {JSON: self._json, NDJSON: self._ndjson, CSV: self._csv}[kind]()
        return StreamingResponse(parts, media_type=kind, headers=headers)

    async def _json(self) -> AsyncIterator[bytes]:
        yield b'{"releases":['
        begun = False
        async for lines in self._lines():
            if lines:
                yield (b"," if begun else b"") + b",".join(line[:-1] for line in lines)
                begun = True
        yield b'],"next":%s}\n' % (b"null" if self.next is None else b"%d" % self.next)

    async def _ndjson(self) -> AsyncIterator[bytes]:
        async for lines in self._lines():
            yield b"".join(lines)

    async def _csv(self) -> AsyncIterator[bytes]:
        yield CSV_HEADER
        first = self._first
        while first <= self._last:
            lines, through = await self._read(first, as_csv=True)
            yield b"".join(lines)
            first = through + 1

    async def _lines(self) -> AsyncIterator[list[bytes]]:
        """The JSON lines of a few slots at a time; whole ones are rendered once for everybody."""
        first = self._first
        while first <= self._last:
            if self._labels is None:
                piece = await self._context.feed.read(first, min(self._last, first + _PIECE - 1))
                yield [one.line for one in piece.releases]
                first = piece.through + 1
            else:
                lines, through = await self._read(first, as_csv=False)
                yield lines
                first = through + 1

    async def _read(self, first: int, *, as_csv: bool) -> tuple[list[bytes], int]:
        """What some slots from one on say, and the last of them."""
        last, render = min(self._last, first + _PIECE - 1), csv_lines if as_csv else ndjson_line

        def rendered(journal: Journal) -> tuple[list[bytes], int]:
            lines, size = [], 0
            for record in released_records(Selection(journal, last, self._labels), first):
                lines.append(render(record))
                size += len(lines[-1])
                if size >= _PIECE_BYTES:
                    return lines, record.slot
            return lines, last

        return await self._context.reader.ask(rendered)

    async def _parquet(self, headers: dict[str, str]) -> Response:
        folder = tempfile.TemporaryDirectory(prefix="wevent-")
        path = Path(folder.name) / "releases.parquet"

        def write(journal: Journal) -> None:
            selection = Selection(journal, self._last, self._labels)
            output = ParquetOutput(path, self._first)
            output.repair(selection, self._last, self._first - 1)
            output.close()

        async def sent() -> AsyncIterator[bytes]:
            try:
                async with await open_file(path, "rb") as file:
                    while chunk := await file.read(_CHUNK):
                        yield chunk
            finally:
                await to_thread.run_sync(folder.cleanup)

        try:
            await self._context.reader.ask(write)
        except BaseException:
            folder.cleanup()
            raise
        return StreamingResponse(
            sent(), media_type=PARQUET, headers={**headers, "Content-Length": str(path.stat().st_size)}
        )

    def _next_address(self) -> str:
        asked = {"from": self.next, "to": self._asked.end, "cells": self._asked.cells, "limit": self._asked.limit}
        return "/v1/releases?" + urlencode({name: value for name, value in asked.items() if value is not None})


def chosen_type(accept: str | None, offered: Sequence[str]) -> str:
    """The offered media type that a header asks for most; of several, the one offered first.

    Args:
        accept: the header; None: anything will do.
        offered: what there is, the default first.

    Raises:
        RequestError: if none of them will do (406).
    """
    if accept is None or not accept.strip():
        return offered[0]
    wishes = [_wish(part) for part in accept.split(",")[:50]]
    best, weight = "", 0.0
    for kind in offered:
        matching = [(exactness, q) for pattern, q in wishes if (exactness := _matches(pattern, kind))]
        wanted = max(matching)[1] if matching else 0.0
        if wanted > weight:
            best, weight = kind, wanted
    if not best:
        raise RequestError(
            406, f"a format out of {', '.join(offered)}", "another one in Accept", f"Send Accept: {offered[0]}."
        )
    return best


def _wish(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = min(max(float(value), 0.0), 1.0)
            except ValueError:
                weight = 0.0
    return kind, weight if weight == weight else 0.0  # not a number is no wish


def _matches(pattern: str, kind: str) -> int:
    """How exactly a pattern means a type; 0: it does not."""
    if pattern == kind:
        return 3
    if pattern == kind.partition("/")[0] + "/*":
        return 2
    return int(pattern == "*/*")
