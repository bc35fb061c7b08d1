"""Releases, levels, ledger, privacy statement, health, overview and the pages."""

from __future__ import annotations

import asyncio
import functools
import gzip
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from wevent import __version__
from wevent.journal import Journal
from wevent.journal.statement import privacy_statement
from wevent.outputs.lines import cell_labels
from wevent.publishing.views import hide_choices, read_levels
from wevent.schemas import (
    BudgetTable,
    Health,
    LevelTable,
    Overview,
    Readiness,
    ReleasedSlot,
    ReleasePage,
    StreamInfo,
)
from wevent.service.access import Caller, any_caller, is_still_admitted, needs
from wevent.service.context import Context, ServiceContext, check_parameters, json_answer
from wevent.service.openapi import described, header, reference
from wevent.service.problems import RequestError
from wevent.service.prometheus import CONTENT_TYPE, metrics_text, overview_facts
from wevent.service.release_range import PARQUET, ReleaseRange, chosen_type
from wevent.service.request_body import CSV, JSON, NDJSON
from wevent.settings.values import SECOND_US, utc_time

router = APIRouter(tags=["releases"], dependencies=[Depends(any_caller), Depends(check_parameters)])
operator_router = APIRouter(tags=["operator"])
page_router = APIRouter(include_in_schema=False)
Admin = Annotated[Caller, Depends(needs("admin"))]
PAGES = Path(__file__).parent / "pages"
_PAGE_FILES = {"/": "index.html", "/choose": "choose.html", "/admin": "admin.html"}
_packing = asyncio.Lock()
EVENTS = "text/event-stream"
FORMATS = (JSON, NDJSON, CSV, PARQUET)
_TEXT = {"schema": {"type": "string"}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT: dict[str, Any] = {
    JSON: {"schema": reference(ReleasePage)},
    NDJSON: {**_TEXT, "x-line": reference(ReleasedSlot)},
    CSV: _TEXT,
    PARQUET: _BINARY,
}
_LINK = {"Link": {"description": 'Where to go on: <…>; rel="next", if there is more.', "schema": {"type": "string"}}}
_AFTER = header("Last-Event-ID", "The last slot that is known.", {"type": "string", "pattern": "^[0-9]{1,18}$"})


@router.get("/v1/about", **described(StreamInfo, 400, access="public"))
async def about(context: Context) -> Response:
    """What stream this is, and when its next release goes out."""
    facts = await context.reader.once("about", context.feed.committed, _about)
    state = context.state
    return json_answer(
        StreamInfo(
            **facts,
            due_s=state.due_us / SECOND_US,
            grace_s=state.grace_us / SECOND_US,
            committed=context.feed.committed,
            next_due=state.next_due,
            public=context.settings.public,
            version=__version__,
        )
    )


@router.get("/v1/levels", **described(LevelTable, 400, access="public"))
async def levels(context: Context) -> Response:
    """Return the levels that users may choose."""
    return json_answer(hide_choices(await _levels(context)))


async def _levels(context: ServiceContext) -> LevelTable:
    return await context.reader.once("levels", context.feed.committed, read_levels)


@router.get("/v1/ledger", **described(BudgetTable, 400, access="public"))
async def ledger(context: Context) -> Response:
    """The budget that every class has left in its window, as of the last slot that was released."""
    return json_answer(await _ledger(context))


async def _ledger(context: ServiceContext) -> BudgetTable:
    return await context.reader.once("ledger", context.feed.committed, context.budgets.read)


@router.get("/v1/statement", **described(None, 400, access="public", content={JSON: {"schema": {"type": "object"}}}))
async def statement(context: Context) -> Response:
    """The privacy statement: what is promised, to whom, by what means, and what weakens it."""
    said = await context.reader.once("statement", context.feed.committed, privacy_statement)
    return json_answer(said)


@router.get(
    "/v1/releases",
    **described(None, 400, 406, access="public", content=_CONTENT, headers=_LINK),
)
async def releases(
    request: Request,
    context: Context,
    begin: Annotated[
        str | None, Query(alias="from", description="The first slot: its number, or a time.", max_length=100)
    ] = None,
    end: Annotated[
        str | None,
        Query(alias="to", description="The last slot: its number, or a time it starts before.", max_length=100),
    ] = None,
    cells: Annotated[
        str | None,
        Query(description="Labels of the cells, separated by commas; all of them.", max_length=4000, pattern="[^ ,]"),
    ] = None,
    limit: Annotated[int, Query(description="How many slots at most.", ge=1, le=10_000)] = 500,
) -> Response:
    """Releases of some slots, the last ones unless told: JSON, NDJSON, CSV or Parquet, as Accept says."""
    kind = chosen_type(request.headers.get("accept"), FORMATS)
    return await ReleaseRange(context, begin, end, cells, limit).response(kind)


@router.get(
    "/v1/releases/stream",
    **described(None, 400, 406, access="public", content={EVENTS: _TEXT}, parameters=[_AFTER]),
)
async def stream(
    request: Request,
    context: Context,
    caller: Annotated[Caller, Depends(any_caller)],
    after: Annotated[
        str | None, Query(description="The last slot that is known; the header wins.", pattern="^[0-9]{1,18}$")
    ] = None,
) -> Response:
    """Releases as they go out, as server-sent events; without a last slot, from the next one on."""
    chosen_type(request.headers.get("accept"), (EVENTS,))
    known = _known_slot(request.headers.get("last-event-id") or after)
    headers = request.scope["headers"]
    events = context.feed.events(known, lambda: is_still_admitted(context, headers))
    return _StreamResponse(context, caller, events)


class _StreamResponse(StreamingResponse):
    """Server-sent events to a reader, who holds a place for as long as the response lasts."""

    def __init__(self, context: ServiceContext, caller: Caller, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, media_type=EVENTS, headers={"X-Accel-Buffering": "no"})
        self._place = context.feed.place((caller.kind, caller.id))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raise RequestError before anything is sent if there is no place."""
        with self._place:
            await super().__call__(scope, receive, send)


def _known_slot(said: str | None) -> int | None:
    if said is None:
        return None
    if not (said.isascii() and said.isdecimal()) or len(said) > 18:
        raise RequestError(
            400, "the number of a slot as Last-Event-ID, or ?after=", "something else", "Send the id of the last event."
        )
    return int(said)


def _about(journal: Journal) -> dict[str, Any]:
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


_READY: dict[str, Any] = described(Readiness, access="none")
_READY["responses"][503] = {
    "description": "The publisher does not run, is over three slots behind or ahead of the clock, its database is away, or "
    "batches cannot be stored.",
    "content": {JSON: {"schema": reference(Readiness)}},
}


@operator_router.get("/healthz", **described(Health, access="none"))
async def healthz() -> Response:
    """Whether the process answers."""
    return json_answer(Health(status="ok"))


@operator_router.get("/readyz", **_READY)
async def readyz(context: Context) -> Response:
    """Whether the publisher runs and keeps up, and batches can be stored."""
    state = context.state
    condition = state.condition
    reply = Readiness(status=condition, role=state.role, clock="jumped" if state.clock_jumped() else "steady")
    return json_answer(reply, 200 if condition == "ready" else 503)


@operator_router.get("/metrics", **described(None, content={"text/plain": _TEXT}))
async def metrics(context: Context, _: Admin) -> Response:
    """Slots, budgets and people for Prometheus; nothing of events."""
    feed, state = context.feed, context.state
    ledger = await _ledger(context)
    text = metrics_text(ledger, feed.committed, feed.fresh, state.behind, storing=state.storing)
    return Response(text, media_type=CONTENT_TYPE)


@operator_router.get("/v1/admin/overview", **described(Overview))
async def overview(context: Context, _: Admin) -> Response:
    """How the service is doing; nothing of it depends on anybody's events."""
    facts = await context.reader.ask(overview_facts)
    state, recent = context.state, context.feed.recent
    return json_answer(
        Overview(
            **facts,
            levels=await _levels(context),
            committed=context.feed.committed,
            next_due=state.next_due,
            slots_behind=state.behind,
            fresh_rate=sum(recent) / len(recent) if recent else None,
            recent_slots=len(recent),
            ready=state.condition == "ready",
            role=state.role,
        )
    )


def add_pages(app: FastAPI) -> None:
    """Serve the pages."""
    for path, name in _PAGE_FILES.items():
        app.add_api_route(
            path, functools.partial(_page, name), methods=["GET"], include_in_schema=False, response_model=None
        )
    app.include_router(page_router)
    if PAGES.is_dir():
        app.mount("/static", StaticFiles(directory=PAGES), name="static")


async def _page(name: str) -> Response:
    path = PAGES / name
    if not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, media_type="text/html", headers={"Cache-Control": "no-store"})


@page_router.get("/static/plotly.min.js")
async def charts(request: Request) -> Response:
    """The charts' own program, as the installed package has it."""
    async with _packing:
        plain, packed, tag = await to_thread.run_sync(_charts)
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, media_type="text/javascript", headers=headers)


@functools.cache
def _charts() -> tuple[bytes, bytes, str]:
    found = importlib.util.find_spec("plotly")
    file = None if found is None or found.origin is None else Path(found.origin).parent / "package_data/plotly.min.js"
    if file is None or not file.is_file():
        raise HTTPException(404)
    plain = file.read_bytes()
    return plain, gzip.compress(plain, 6, mtime=0), f'"{len(plain):x}-{file.stat().st_mtime_ns:x}"'
