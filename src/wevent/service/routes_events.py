"""POST /v1/events: batches of events, each durable before it is acknowledged."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response

from wevent.schemas import BatchResult
from wevent.service.access import Caller, count_events, needs
from wevent.service.context import Context, check_parameters, json_answer
from wevent.service.openapi import described, header
from wevent.service.problems import RequestError
from wevent.service.request_body import JSON, NDJSON, media_type, read_body, read_lines

router = APIRouter(tags=["events"])
_sender = needs("ingest")  # used twice, but it counts the request once
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
    **described(BatchResult, 400, 409, 415, 507, body=_BODY, parameters=_HEADERS),
)
async def send_events(request: Request, context: Context, caller: Annotated[Caller, Depends(_sender)]) -> Response:
    """Send a batch of events, packed with gzip (Content-Encoding) or not; it is durable when this answers.

    What is answered depends on the batch, the clock and public settings alone: who is registered shows nowhere.
    """
    receiver = context.state.take()
    kind = media_type(request.headers, NDJSON, JSON)
    batch = _batch_id(request)
    with context.memory.allocation() as take:
        body = await read_body(request, context.settings.max_body_bytes, context.settings.max_batch_bytes, take)
        lines = await read_lines(body, kind)
        count_events(context, caller, lines.count(b"\n"))
        taken = functools.partial(receiver.receive, caller.id, batch, lines)
        answer = await to_thread.run_sync(taken, limiter=context.batches)
    return json_answer(answer)


def _batch_id(request: Request) -> str | None:
    found = request.headers.getlist("idempotency-key")
    if not found:
        return None
    if len(found) > 1 or not _ID.fullmatch(found[0]):
        raise RequestError(
            400,
            "one Idempotency-Key of at most 200 visible ASCII characters",
            "several" if len(found) > 1 else "another one",
            "Use a random id for every batch.",
        )
    return found[0]
