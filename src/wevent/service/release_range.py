"""Some slots' releases as a response: read in pieces, so that a slow reader holds nothing up and takes no room."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
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
from wevent.outputs.excerpt import Excerpt
from wevent.outputs.lines import CSV_HEADER, csv_lines, ndjson_line
from wevent.publishing.slot_numbers import refuse_backwards, slot_meant
from wevent.service.bodies import CSV, JSON, NDJSON
from wevent.service.service_context import ServiceContext

PARQUET = "application/vnd.apache.parquet"
_PIECE = 50  # slots that are read at once, fewer if they are large
_PIECE_BYTES = 1 << 20
_CHUNK = 1 << 16  # bytes


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
        last = committed if self.end is None else slot_meant(head, self.end, "to")
        if self.begin is None:
            first = max(1, min(last, committed) - self.limit + 1)
        else:
            first = slot_meant(head, self.begin, "from")
            if self.end is not None:
                refuse_backwards(first, last, self.begin, self.end)
        first = max(first, head.first)
        there = min(last, committed)
        return first, min(there, first + self.limit - 1), there


class ReleaseRange:
    """Releases of consecutive slots, as far as there are any.

    Args:
        context: of the service.
        asked: what was asked for.
        slots: the first and the last slot, and the last one that was asked for and is there.
    """

    def __init__(self, context: ServiceContext, asked: Range, slots: tuple[int, int, int]) -> None:
        self._context, self._asked = context, asked
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

        def look(journal: Journal) -> tuple[int, int, int]:
            if asked.cells is not None:
                Excerpt(journal, None, split_labels(asked.cells))
            return asked.slots(journal.head(), committed)

        return cls(context, asked, await context.reader.ask(look))

    @property
    def next(self) -> int | None:
        """The slot to go on from, None if there is none yet."""
        return self._last + 1 if self._first <= self._last < self._there else None

    async def response(self, kind: str) -> Response:
        """All of it, in a format."""
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
            for record in Excerpt(journal, last, self._labels).releases(first):
                if record.shown is not None:
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
            excerpt = Excerpt(journal, self._last, self._labels)
            output = ParquetOutput(path, self._first)
            output.repair(excerpt, self._last, self._first - 1)
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
