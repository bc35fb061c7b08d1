"""POST /v1/events: batches of events, each durable before it is acknowledged."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response

from wevent.service.access import Caller, count_events, needs
from wevent.service.bodies import JSON, NDJSON, BodyLimits, event_lines, in_thread_if_large, media_type, read_body
from wevent.service.describing import described, header
from wevent.service.problems import RequestRefused
from wevent.service.replies import BatchReply
from wevent.service.routes.answering import Context, check_parameters

router = APIRouter(tags=["events"])
_sender = needs("ingest")  # one for all that depends on it: it counts the request
_ID = re.compile(r"[!-~]{1,200}")
_EVENT = {
    "description": "An event: an object with its time, user and cell, under the names that the stream declares. "
    "Any other element is one rejected record.",
}
_BODY: dict[str, Any] = {
    NDJSON: {"schema": {"type": "string", "description": "One JSON object per line."}},
    JSON: {"schema": {"type": "array", "items": _EVENT}},
}
_HEADERS = [
    header(
        "Idempotency-Key",
        "The batch's own id: sent again under it, the batch is taken once.",
        {"type": "string", "pattern": "^[!-~]{1,200}$"},
    ),
]


@router.post(
    "/v1/events",
    dependencies=[Depends(_sender), Depends(check_parameters)],
    **described(BatchReply, 400, 409, 415, 507, body=_BODY, parameters=_HEADERS),
)
async def send_events(request: Request, context: Context, caller: Annotated[Caller, Depends(_sender)]) -> Response:
    """Send a batch of events, packed with gzip (Content-Encoding) or not; it is durable when this answers.

    What is answered depends on the batch, the clock and public settings alone: who is registered shows nowhere.
    """
    receiver = context.state.take()
    kind = media_type(request.headers, NDJSON, JSON)
    batch = _batch_id(request)
    limits = BodyLimits(context.settings.max_body_bytes, context.settings.max_batch_bytes)
    with context.room.held() as place:
        body = await read_body(request, limits, place)
        lines: bytes = await in_thread_if_large(event_lines, body, kind)
        count_events(context, caller, lines.count(b"\n"))
        taken = functools.partial(receiver.receive, caller.id, batch, lines)
        answer = await to_thread.run_sync(taken, limiter=context.batches)
    return Response(msgspec.json.encode(answer), media_type=JSON)


def _batch_id(request: Request) -> str | None:
    found = request.headers.getlist("idempotency-key")
    if not found:
        return None
    if len(found) > 1 or not _ID.fullmatch(found[0]):
        raise RequestRefused(
            400,
            "one Idempotency-Key of at most 200 visible ASCII characters",
            "several" if len(found) > 1 else "another one",
            "Use a random id for every batch.",
        )
    return found[0]
