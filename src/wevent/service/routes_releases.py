"""Releases, their stream, levels, budgets and the privacy statement."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from wevent import __version__
from wevent.counting.labels import split_labels
from wevent.journal import Journal
from wevent.journal.terms import privacy_statement
from wevent.outputs import ParquetOutput
from wevent.outputs.lines import CSV_HEADER, cell_labels, csv_lines, ndjson_line
from wevent.outputs.selection import Selection, parse_slots
from wevent.publishing.views import hide_choices, read_levels
from wevent.schemas import BudgetTable, LevelTable, ReleasedSlot, ReleasePage, StreamInfo
from wevent.service.access import any_caller, is_still_admitted
from wevent.service.context import Context, ServiceContext, check_parameters, json_answer
from wevent.service.feed import render_slots
from wevent.service.openapi import described, parameter, reference
from wevent.service.problems import RequestError
from wevent.service.request_body import CSV, JSON, NDJSON
from wevent.settings.values import SECOND_US, utc_time

router = APIRouter(tags=["releases"], dependencies=[Depends(any_caller), Depends(check_parameters)])
PARQUET = "application/vnd.apache.parquet"
EVENTS = "text/event-stream"
FORMATS = (JSON, NDJSON, CSV, PARQUET)
_SLOTS = 50  # that are read at once, fewer if they are large
_CHUNK = 1 << 16  # bytes
_FILE_VALUES = 2_000_000  # slots × cells of one Parquet file, which is on disk while it is sent
_QUALITY = re.compile(r"([^\s;,]+/[^\s;,]+)(?:\s*;\s*q\s*=\s*([01](?:\.\d+)?))?")  # of a media type
_TEXT = {"schema": {"type": "string"}}
_CONTENT: dict[str, Any] = {
    JSON: {"schema": reference(ReleasePage)},
    NDJSON: {**_TEXT, "x-line": reference(ReleasedSlot)},
    CSV: _TEXT,
    PARQUET: {"schema": {"type": "string", "format": "binary"}},
}
_LINK = {"Link": {"description": 'Address of the next part: <…>; rel="next".', **_TEXT}}
_AFTER = parameter("Last-Event-ID", "header", "Last known slot.", {"type": "string", "pattern": "^[0-9]{1,18}$"})


@router.get("/v1/about", **described(StreamInfo, 400, access="public"))
async def about(context: Context) -> Response:
    """Return public facts about the stream, and the time of the next release."""
    committed, state = context.feed.committed, context.state
    return json_answer(
        StreamInfo(
            **await context.reader.once("about", committed, _stream_facts),
            due_s=state.due_us / SECOND_US,
            grace_s=state.grace_us / SECOND_US,
            committed=committed,
            next_due=state.next_due,
            public=context.settings.public,
            version=__version__,
        )
    )


def _stream_facts(journal: Journal) -> dict[str, Any]:
    head = journal.head()
    terms = head.epoch.terms
    return {
        "stream": terms.stream,
        "slot_length_s": terms.length_us / SECOND_US,
        "slot_origin": utc_time(terms.origin_us),
        "mechanism": terms.mechanism,
        "neighbours": terms.neighbours,
        "max_cells_per_user": terms.max_cells_per_user,
        "cells": [str(cell) for cell in cell_labels(terms.cells)],
        "first": head.first,
    }


@router.get("/v1/levels", **described(LevelTable, 400, access="public"))
async def levels(context: Context) -> Response:
    """Return the levels that users may choose."""
    return json_answer(hide_choices(await context.reader.once("levels", context.feed.committed, read_levels)))


@router.get("/v1/ledger", **described(BudgetTable, 400, access="public"))
async def ledger(context: Context) -> Response:
    """Return the budget that every class has left in its window, as of the last released slot."""
    return json_answer(await context.reader.once("ledger", context.feed.committed, context.budgets.read))


@router.get("/v1/statement", **described({JSON: {"schema": {"type": "object"}}}, 400, access="public"))
async def statement(context: Context) -> Response:
    """Return the privacy statement: the guarantee, its users, its mechanism, and what weakens it."""
    return json_answer(await context.reader.once("statement", context.feed.committed, privacy_statement))


@router.get("/v1/releases", **described(_CONTENT, 400, 406, access="public", headers=_LINK))
async def releases(
    request: Request,
    context: Context,
    begin: Annotated[
        str | None, Query(alias="from", description="First slot: its number, or a time.", max_length=100)
    ] = None,
    end: Annotated[
        str | None,
        Query(alias="to", description="Last slot: its number, or a time it starts before.", max_length=100),
    ] = None,
    cells: Annotated[
        str | None,
        Query(description="Labels of the cells, separated by commas (default: all).", max_length=4000, pattern="[^ ,]"),
    ] = None,
    limit: Annotated[int, Query(description="Maximum number of slots.", ge=1, le=10_000)] = 500,
) -> Response:
    """Return releases, by default the last ones, as JSON, NDJSON, CSV or Parquet (Accept)."""
    kind = chosen_type(request.headers.get("accept"), *FORMATS)
    labels = None if cells is None else split_labels(cells)
    committed = context.feed.committed
    found = await context.reader.ask(lambda journal: _find(journal, committed, begin, end, labels, limit))
    if kind == PARQUET:
        found.last = min(found.last, found.first + max(1, _FILE_VALUES // max(1, found.cells)) - 1)
    headers = {}
    if found.next is not None:
        asked = {"from": found.next, "to": end, "cells": cells, "limit": limit}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        headers["Link"] = f'</v1/releases?{query}>; rel="next"'
    if kind == PARQUET:
        return await _parquet(context, found, headers)
    return StreamingResponse(_text(context, found, kind), media_type=kind, headers=headers)


@dataclass
class _Range:
    """Slots from `first` to `last`, of those that were asked for and are released up to `end`; of some or all cells."""

    first: int
    last: int
    end: int
    labels: list[str] | None
    cells: int

    @property
    def next(self) -> int | None:
        """First slot of the next answer, None if there is none yet."""
        return self.last + 1 if self.first <= self.last < self.end else None


def _find(
    journal: Journal, committed: int, begin: str | None, end: str | None, labels: list[str] | None, limit: int
) -> _Range:
    """Return the slots of a request; refuse invalid slots and times, and unknown cells."""
    head = journal.head()
    Selection(journal, None, labels)  # checks the labels
    asked_first, asked_last = parse_slots(head, begin, end)
    there = committed if asked_last is None else min(asked_last, committed)
    first = max(head.first, there - limit + 1 if asked_first is None else asked_first)
    cells = head.epoch.terms.number_of_cells if labels is None else len(labels)
    return _Range(first, min(there, first + limit - 1), there, labels, cells)


async def _text(context: ServiceContext, found: _Range, kind: str) -> AsyncIterator[bytes]:
    """Yield releases as text, a few slots at a time; the feed renders whole JSON lines once for all readers."""
    yield {JSON: b'{"releases":[', NDJSON: b"", CSV: CSV_HEADER}[kind]
    render = csv_lines if kind == CSV else ndjson_line
    first, separator = found.first, b""
    while first <= found.last:
        last = min(found.last, first + _SLOTS - 1)
        if found.labels is None and kind != CSV:
            piece = await context.feed.read(first, last)
            texts = [one.line for one in piece.releases]
        else:
            read = functools.partial(render_slots, first=first, last=last, render=render, labels=found.labels)
            piece = await context.reader.ask(read)
            texts = [one.text for one in piece.releases]
        if kind != JSON:
            yield b"".join(texts)
        elif texts:
            yield separator + b",".join(line[:-1] for line in texts)
            separator = b","
        first = piece.through + 1
    if kind == JSON:
        yield b'],"next":%s}\n' % (b"null" if found.next is None else b"%d" % found.next)


async def _parquet(context: ServiceContext, found: _Range, headers: dict[str, str]) -> Response:
    def write(journal: Journal) -> BinaryIO:
        with tempfile.TemporaryDirectory(prefix="wevent-") as folder:
            path = Path(folder) / "releases.parquet"
            output = ParquetOutput(path, found.first)
            output.repair(Selection(journal, found.last, found.labels), found.last, found.first - 1)
            output.close()
            return path.open("rb")  # without a name, it goes with the last one who has it open

    file = await context.reader.ask(write)
    headers["Content-Length"] = str(os.fstat(file.fileno()).st_size)

    async def send() -> AsyncIterator[bytes]:
        with file:
            while chunk := await to_thread.run_sync(file.read, _CHUNK):
                yield chunk

    return StreamingResponse(send(), media_type=PARQUET, headers=headers)


async def hold_place(request: Request, context: Context) -> AsyncIterator[None]:
    """Hold a place of a reader until the response has ended; refuse before anything is sent if there is none."""
    caller = request.state.caller
    with context.feed.place((caller.kind, caller.id)):
        yield


@router.get(
    "/v1/releases/stream",
    dependencies=[Depends(hold_place)],
    **described({EVENTS: _TEXT}, 400, 406, access="public", parameters=[_AFTER]),
)
async def stream(
    request: Request,
    context: Context,
    after: Annotated[
        str | None, Query(description="Last known slot; the header wins.", pattern="^[0-9]{1,18}$")
    ] = None,
) -> Response:
    """Stream releases as server-sent events, from the slot after the last known one, by default from the next one."""
    chosen_type(request.headers.get("accept"), EVENTS)
    known = request.headers.get("last-event-id") or after
    if known is not None and not (known.isascii() and known.isdecimal() and len(known) <= 18):
        raise RequestError(400, "Last-Event-ID is not a slot number.", "Send the id of the last event.")
    headers = request.scope["headers"]
    events = context.feed.events(None if known is None else int(known), lambda: is_still_admitted(context, headers))
    return StreamingResponse(events, media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


def chosen_type(accept: str | None, *offered: str) -> str:
    """Return the offered media type that a header prefers; of several, the one offered first; of none, refuse (406)."""
    accepted = dict(_QUALITY.findall((accept or "").strip().lower() or "*/*"))

    def quality(kind: str) -> float:
        patterns = (kind, kind.partition("/")[0] + "/*", "*/*")  # the most specific one decides (RFC 9110, 12.5.1)
        return next((float(accepted[pattern] or 1) for pattern in patterns if pattern in accepted), 0.0)

    best = max(offered, key=quality)
    if not quality(best):
        raise RequestError(406, "None of the accepted formats is offered.", f"Send Accept: {' or '.join(offered)}.")
    return best
