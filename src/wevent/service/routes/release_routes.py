"""What everybody may see: the stream, its levels, releases, ledger and privacy statement."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from wevent import __version__
from wevent.journal import Journal
from wevent.journal.statement import privacy_statement
from wevent.outputs.excerpt import cell_labels
from wevent.service.access import Caller, is_still_admitted, needs
from wevent.service.bodies import CSV, JSON, NDJSON
from wevent.service.describing import described, header, reference
from wevent.service.level_view import hide_choices, show_levels
from wevent.service.negotiating import chosen_type
from wevent.service.problems import RequestRefused
from wevent.service.release_range import PARQUET, Range, ReleaseRange
from wevent.service.replies import AboutReply, LedgerReply, LevelsReply, ReleaseObject, ReleasesReply
from wevent.service.routes.answering import Context, check_parameters, json_answer
from wevent.service.service_context import ServiceContext
from wevent.streams.clock import SECOND_US

_reader = needs("read", public_ok=True)  # one for all that depends on it: it counts the request
router = APIRouter(tags=["releases"], dependencies=[Depends(_reader), Depends(check_parameters)])
EVENTS = "text/event-stream"
FORMATS = (JSON, NDJSON, CSV, PARQUET)
_TEXT = {"schema": {"type": "string"}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT: dict[str, Any] = {
    JSON: {"schema": reference(ReleasesReply)},
    NDJSON: {**_TEXT, "x-line": reference(ReleaseObject)},
    CSV: _TEXT,
    PARQUET: _BINARY,
}
_LINK = {"Link": {"description": 'Where to go on: <…>; rel="next", if there is more.', "schema": {"type": "string"}}}
_AFTER = header("Last-Event-ID", "The last slot that is known.", {"type": "string", "pattern": "^[0-9]{1,18}$"})


@router.get("/v1/about", **described(AboutReply, 400, access="public"))
async def about(context: Context) -> Response:
    """What stream this is, and when its next release goes out."""
    facts = await context.reader.once("about", context.feed.committed, _about)
    state = context.state
    return json_answer(
        AboutReply(
            **facts,
            due_s=state.due_us / SECOND_US,
            grace_s=state.grace_us / SECOND_US,
            committed=context.feed.committed,
            next_due=state.next_due,
            public=context.settings.public,
            version=__version__,
        )
    )


@router.get("/v1/levels", **described(LevelsReply, 400, access="public"))
async def levels(context: Context) -> Response:
    """Return the levels that users may choose."""
    return json_answer(hide_choices(await levels_now(context)))


async def levels_now(context: ServiceContext) -> LevelsReply:
    """As of the last committed slot."""
    return await context.reader.once("levels", context.feed.committed, show_levels)


@router.get("/v1/ledger", **described(LedgerReply, 400, access="public"))
async def ledger(context: Context) -> Response:
    """The budget that every class has left in its window, as of the last slot that was released."""
    return json_answer(await ledger_now(context))


async def ledger_now(context: ServiceContext) -> LedgerReply:
    """As of the last committed slot."""
    return await context.reader.once("ledger", context.feed.committed, context.board.show)


@router.get("/v1/statement", **described(None, 400, access="public", content={JSON: {"schema": {"type": "object"}}}))
async def statement(context: Context) -> Response:
    """The privacy statement: what is promised, to whom, by what means, and what weakens it."""
    said = await context.reader.once("statement", context.feed.committed, privacy_statement)
    return Response(msgspec.json.encode(said), media_type=JSON)


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
    asked = Range(begin, end, cells, limit)
    found = await ReleaseRange.find(context, asked)
    return await found.response(kind)


@router.get(
    "/v1/releases/stream",
    **described(None, 400, 406, access="public", content={EVENTS: _TEXT}, parameters=[_AFTER]),
)
async def stream(
    request: Request,
    context: Context,
    caller: Annotated[Caller, Depends(_reader)],
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
        """Raise RequestRefused before anything is sent if there is no place."""
        with self._place:
            await super().__call__(scope, receive, send)


def _known_slot(said: str | None) -> int | None:
    if said is None:
        return None
    if not (said.isascii() and said.isdecimal()) or len(said) > 18:
        raise RequestRefused(
            400, "the number of a slot as Last-Event-ID, or ?after=", "something else", "Send the id of the last event."
        )
    return int(said)


def _about(journal: Journal) -> dict[str, Any]:
    head = journal.head()
    terms = head.epoch.terms
    length_us = terms.slot_length_us
    return {
        "stream": terms.stream,
        "slot_length_s": None if length_us is None else length_us / SECOND_US,
        "slot_origin": terms.slot_span(1)[0],
        "mechanism": terms.mechanism,
        "neighbours": terms.neighbours,
        "max_cells_per_user": terms.max_cells_per_user,
        "cells": [str(cell) for cell in cell_labels(terms)],
        "first": head.first,
    }
