"""The calls of an operator: is it alive, is it ready, how is it doing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from wevent.service.access import Caller, needs
from wevent.service.bodies import JSON
from wevent.service.describing import described, reference
from wevent.service.overview import look
from wevent.service.replies import HealthReply, OverviewReply, ReadyReply
from wevent.service.routes.answering import Context, json_answer
from wevent.service.routes.release_routes import ledger_now, levels_now
from wevent.service.service_metrics import CONTENT_TYPE, metrics_text

router = APIRouter(tags=["operator"])
Admin = Annotated[Caller, Depends(needs("admin"))]
_READY: dict[str, Any] = described(ReadyReply, access="none")
_READY["responses"][503] = {
    "description": "The publisher does not run, is over three slots behind or ahead of the clock, its database is away, or "
    "batches cannot be stored.",
    "content": {JSON: {"schema": reference(ReadyReply)}},
}
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


@router.get("/healthz", **described(HealthReply, access="none"))
async def healthz() -> Response:
    """Whether the process answers."""
    return json_answer(HealthReply(status="ok"))


@router.get("/readyz", **_READY)
async def readyz(context: Context) -> Response:
    """Whether the publisher runs and keeps up, and batches can be stored."""
    state = context.state
    condition = state.condition
    reply = ReadyReply(status=condition, role=state.role, clock="jumped" if state.clock_jumped() else "steady")
    return json_answer(reply, 200 if condition == "ready" else 503)


@router.get("/metrics", **described(None, content=_TEXT))
async def metrics(context: Context, _: Admin) -> Response:
    """Slots, budgets and people for Prometheus; nothing of events."""
    feed, state = context.feed, context.state
    text = metrics_text(await ledger_now(context), feed.committed, feed.fresh, state.behind, storing=state.storing)
    return Response(text, media_type=CONTENT_TYPE)


@router.get("/v1/admin/overview", **described(OverviewReply))
async def overview(context: Context, _: Admin) -> Response:
    """How the service is doing; nothing of it depends on anybody's events."""
    facts = await context.reader.ask(look)
    state, recent = context.state, context.feed.recent
    return json_answer(
        OverviewReply(
            **facts,
            levels=await levels_now(context),
            committed=context.feed.committed,
            next_due=state.next_due,
            slots_behind=state.behind,
            fresh_rate=sum(recent) / len(recent) if recent else None,
            recent_slots=len(recent),
            ready=state.condition == "ready",
            role=state.role,
        )
    )
