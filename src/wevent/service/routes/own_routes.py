"""The calls of a person with their own link: the same as a platform's, and no id in any path."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response

from wevent.service import enrolment
from wevent.service.access import Caller, needs_link
from wevent.service.bodies import JSON
from wevent.service.describing import described, reference
from wevent.service.replies import ChosenReply, ExportReply, LeftReply, LevelBody, RequirementReply
from wevent.service.routes.answering import Context, check_parameters, json_answer
from wevent.service.routes.people_routes import DryRun, choose, leave, requirement

_person = needs_link()  # one for both: what is depended on twice is asked, and counted, once
router = APIRouter(tags=["me"], dependencies=[Depends(_person), Depends(check_parameters)])
Person = Annotated[Caller, Depends(_person)]
_LEVEL: dict[str, Any] = {JSON: {"schema": reference(LevelBody)}}


@router.put("/v1/me/requirement", **described(ChosenReply, 400, 415, 507, access="link", body=_LEVEL))
async def choose_my_requirement(request: Request, context: Context, me: Person, dry_run: DryRun = False) -> Response:
    """Choose an offered level: its name, or words for privacy and window."""
    return await choose(request, context, _user(me), LevelBody, dry_run=dry_run)


@router.get("/v1/me/requirement", **described(RequirementReply, 400, 404, access="link"))
async def get_my_requirement(context: Context, me: Person) -> Response:
    """What you hold, from when on, and how long an earlier choice protects you as well."""
    return await requirement(context, _user(me))


@router.delete("/v1/me/requirement", **described(LeftReply, 400, 404, 507, access="link"))
async def leave_myself(context: Context, me: Person) -> Response:
    """Leave; the id is kept as long as the earlier choice protects."""
    return await leave(context, _user(me), erased=False)


@router.get("/v1/me", **described(ExportReply, 400, 404, access="link"))
async def export_myself(context: Context, me: Person) -> Response:
    """All that is held about you."""
    return json_answer(await context.reader.ask(lambda journal: enrolment.export_of(journal, _user(me))))


@router.delete("/v1/me", **described(LeftReply, 400, 404, 507, access="link"))
async def erase_myself(context: Context, me: Person) -> Response:
    """Leave and erase the id; a keyed digest of it is kept as long as the earlier choice protects."""
    return await leave(context, _user(me), erased=True)


@router.delete("/v1/me/link", **described(None, 400, 507, access="link", status=204, content={}))
async def end_my_link(context: Context, me: Person) -> Response:
    """End this link."""
    assert me.link is not None
    await to_thread.run_sync(context.links.end, me.link, limiter=context.changes)
    return Response(status_code=204)


def _user(me: Caller) -> str:
    assert me.user is not None, "a link is somebody's"
    return me.user
