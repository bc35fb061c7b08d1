"""POST /v1/events: batches of events, each durable before it is acknowledged."""

from __future__ import annotations

import functools
import re
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response

from wevent.schemas import BatchResult
from wevent.service.access import count, needs
from wevent.service.context import Context, check_parameters, json_answer
from wevent.service.openapi import described, parameter
from wevent.service.problems import RequestError
from wevent.service.request_body import JSON, NDJSON, event_lines, media_type, read_body, work

router = APIRouter(tags=["events"], dependencies=[Depends(needs("ingest")), Depends(check_parameters)])
_ID = re.compile(r"[!-~]{1,200}")
_EVENT = {
    "description": "An event: an object with its time, user and cell, under the names that the stream declares. "
    "Any other element is one rejected record.",
}
_BODY: dict[str, Any] = {
    NDJSON: {"schema": {"type": "string", "description": "One JSON object per line."}},
    JSON: {"schema": {"type": "array", "items": _EVENT}},
}
_KEY = parameter(
    "Idempotency-Key",
    "header",
    "Id of the batch: a batch that is sent again under it is taken once.",
    {"type": "string", "pattern": "^[!-~]{1,200}$"},
)


@router.post("/v1/events", **described(BatchResult, 400, 409, 415, 507, body=_BODY, parameters=[_KEY]))
async def send_events(request: Request, context: Context) -> Response:
    """Send a batch of events, packed with gzip (Content-Encoding) or not; it is durable when this answers.

    The answer depends on the batch, the clock and public settings alone, not on who is registered.
    """
    receiver, caller = context.state.take(), request.state.caller
    kind = media_type(request.headers, NDJSON, JSON)
    ids = request.headers.getlist("idempotency-key")
    if ids and (len(ids) > 1 or not _ID.fullmatch(ids[0])):
        fix = "Send one random id of at most 200 visible ASCII characters per batch."
        raise RequestError(400, "The Idempotency-Key is not valid.", fix)
    with context.memory.allocation() as take:
        body = await read_body(request, context.settings.max_body_bytes, context.settings.max_batch_bytes, take)
        lines = await work(len(body), event_lines, body, kind)
        count(context.events, caller, "events", lines.count(b"\n"))
        taken = functools.partial(receiver.receive, caller.id, ids[0] if ids else None, lines)
        answer = await to_thread.run_sync(taken, limiter=context.batches)
    return json_answer(answer)
