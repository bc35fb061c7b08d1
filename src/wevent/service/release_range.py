"""Releases of a range of slots as JSON, NDJSON, CSV or Parquet, read in pieces; content negotiation."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

from anyio import open_file, to_thread
from fastapi import Response
from fastapi.responses import StreamingResponse

from wevent.counting.cells import split_labels
from wevent.journal import Journal, Record
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


class ReleaseRange:
    """Releases of consecutive slots, as far as there are any.

    Args:
        context: of the service.
        begin: first slot or time, as it was written; None: not said.
        end: last slot or time.
        cells: labels, separated by commas; None: all.
        limit: maximum number of slots.
    """

    def __init__(
        self, context: ServiceContext, begin: str | None, end: str | None, cells: str | None, limit: int
    ) -> None:
        self._context, self._begin, self._end, self._cells, self._limit = context, begin, end, cells, limit
        self._labels = None if cells is None else split_labels(cells)
        self._committed = context.feed.committed
        self._first = self._last = self._there = self._width = 0

    async def response(self, kind: str) -> Response:
        """Return the releases in a format; of a Parquet file as many slots as it may hold, and where to go on.

        Raises:
            InvalidOption: for slots that are none.
            InvalidSettings: for times that are none.
            InvalidCells: for cells that nobody declared.
        """
        await self._context.reader.ask(self._find)
        if kind == PARQUET:
            self._last = min(self._last, self._first + max(1, _FILE_VALUES // max(1, self._width)) - 1)
        headers = {} if self.next is None else {"Link": f'<{self._next_address()}>; rel="next"'}
        if kind == PARQUET:
            return await self._parquet(headers)
        parts = {JSON: self._json, NDJSON: self._ndjson, CSV: self._csv}[kind]()
        return StreamingResponse(parts, media_type=kind, headers=headers)

    def _find(self, journal: Journal) -> None:
        """Find the first and the last slot, the last one that was asked for and is there, and the number of cells."""
        head = journal.head()
        self._width = head.epoch.terms.number_of_cells
        if self._labels is not None:
            Selection(journal, None, self._labels)  # checks the labels
            self._width = len(self._labels)
        begin, end = parse_slots(head, self._begin, self._end)
        self._there = self._committed if end is None else min(end, self._committed)
        self._first = max(head.first, self._there - self._limit + 1 if begin is None else begin)
        self._last = min(self._there, self._first + self._limit - 1)

    @property
    def next(self) -> int | None:
        """The slot to go on from; None if there is none yet."""
        return self._last + 1 if self._first <= self._last < self._there else None

    async def _json(self) -> AsyncIterator[bytes]:
        yield b'{"releases":['
        begun = False
        async for lines in self._pieces(ndjson_line):
            if lines:
                yield (b"," if begun else b"") + b",".join(line[:-1] for line in lines)
                begun = True
        yield b'],"next":%s}\n' % (b"null" if self.next is None else b"%d" % self.next)

    async def _ndjson(self) -> AsyncIterator[bytes]:
        async for lines in self._pieces(ndjson_line):
            yield b"".join(lines)

    async def _csv(self) -> AsyncIterator[bytes]:
        yield CSV_HEADER
        async for lines in self._pieces(csv_lines):
            yield b"".join(lines)

    async def _pieces(self, render: Callable[[Record], bytes]) -> AsyncIterator[list[bytes]]:
        """Yield the text of a few slots at a time; the feed renders whole JSON lines once for all readers."""
        first = self._first
        while first <= self._last:
            last = min(self._last, first + _PIECE - 1)
            if self._labels is None and render is ndjson_line:
                piece = await self._context.feed.read(first, last)
                lines, through = [one.line for one in piece.releases], piece.through
            else:
                lines, through = await self._context.reader.ask(functools.partial(self._read, first, last, render))
            yield lines
            first = through + 1

    def _read(
        self, first: int, last: int, render: Callable[[Record], bytes], journal: Journal
    ) -> tuple[list[bytes], int]:
        """Return the text of some slots, and the last of them."""
        lines, size = [], 0
        for record in released_records(Selection(journal, last, self._labels), first):
            lines.append(render(record))
            size += len(lines[-1])
            if size >= _PIECE_BYTES:
                return lines, record.slot
        return lines, last

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
        asked = {"from": self.next, "to": self._end, "cells": self._cells, "limit": self._limit}
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
