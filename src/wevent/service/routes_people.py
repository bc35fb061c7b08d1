"""Calls of a platform that enrols users, and the same calls of a user with a personal link, without an id in the path."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from wevent.people.membership import check_id
from wevent.schemas import (
    ChoiceResult,
    HeldChoice,
    ImportResult,
    LeaveResult,
    LevelBody,
    PersonalLink,
    RequirementBody,
    UserExport,
)
from wevent.service import enrolment
from wevent.service.access import Caller, link_holder, needs
from wevent.service.context import Context, ServiceContext, User, check_parameters, json_answer
from wevent.service.openapi import described, reference
from wevent.service.request_body import CSV, JSON, NDJSON, decoded, media_type, read_body
from wevent.service.tokens import Link, choosing_address
from wevent.settings.values import SECOND_US, utc_time

router = APIRouter(tags=["people"], dependencies=[Depends(needs("enrol")), Depends(check_parameters)])
own_router = APIRouter(tags=["me"], dependencies=[Depends(link_holder), Depends(check_parameters)])
Person = Annotated[Caller, Depends(link_holder)]
_LEVEL: dict[str, Any] = {JSON: {"schema": reference(LevelBody)}}
_REQUIREMENT: dict[str, Any] = {JSON: {"schema": reference(RequirementBody)}}
DryRun = Annotated[bool, Query(description="Only say what that means; nothing is stored.")]
_NOT_EMPTY = {"type": "string", "minLength": 1}
_FILE: dict[str, Any] = {
    CSV: {"schema": {**_NOT_EMPTY, "description": "user,level or user,privacy,window or user,window,epsilon."}},
    NDJSON: {"schema": {**_NOT_EMPTY, "description": "One JSON object per line, with the same keys."}},
}
_HOUR_S = 3600


@router.put("/v1/users/{user}/requirement", **described(ChoiceResult, 400, 415, 507, body=_REQUIREMENT))
async def set_requirement(request: Request, context: Context, user: User, dry_run: DryRun = False) -> Response:
    """Let a person hold a requirement: a level, words for privacy and window, or a window and an epsilon."""
    return await _choose(request, context, user, RequirementBody, dry_run=dry_run)


@router.get("/v1/users/{user}/requirement", **described(HeldChoice, 400, 404))
async def get_requirement(context: Context, user: User) -> Response:
    """What a person holds, from when on, and how long an earlier choice protects as well."""
    return await _requirement(context, user)


@router.delete("/v1/users/{user}/requirement", **described(LeaveResult, 400, 404, 507))
async def remove_requirement(context: Context, user: User) -> Response:
    """Let a person leave; the id is kept as long as the earlier choice protects."""
    return await _leave(context, user, erased=False)


@router.get("/v1/users/{user}", **described(UserExport, 400, 404))
async def export(context: Context, user: User) -> Response:
    """All that is held about a person: current and earlier choices, queued changes. Of events nothing is held."""
    return await _export(context, user)


@router.delete("/v1/users/{user}", **described(LeaveResult, 400, 404, 507))
async def erase(context: Context, user: User) -> Response:
    """Let a person leave and erase the id; a keyed digest of it is kept as long as the earlier choice protects."""
    return await _leave(context, user, erased=True)


@router.post("/v1/users/{user}/link", **described(PersonalLink, 400, 507, status=201))
async def make_link(context: Context, user: User) -> Response:
    """Make a person's own link; it is shown once."""
    made = await context.change(context.links.make, user, context.settings.link_hours * _HOUR_S)
    url = choosing_address(context.settings.url or f"http://{context.settings.listen}", made)
    return json_answer(PersonalLink(url=url, expires=utc_time(made.link.expires * SECOND_US)), 201)


@router.delete("/v1/users/{user}/links", **described(None, 400, 507, status=204, content={}))
async def end_links(context: Context, user: User) -> Response:
    """End all links of a person."""
    check_id(user)
    await context.change(context.links.end_all, user)
    return Response(status_code=204)


@router.post("/v1/users", **described(ImportResult, 400, 415, 507, body=_FILE))
async def import_people(
    request: Request,
    context: Context,
    dry_run: DryRun = False,
    replace: Annotated[bool, Query(description="Whether everybody leaves who is not in the file.")] = False,
    allow_removals: Annotated[bool, Query(description="Also if more than one in ten would leave.")] = False,
) -> Response:
    """Import a requirements file: who is in it joins or changes; with `replace` all others leave."""
    kind = media_type(request.headers, CSV, NDJSON)
    with context.memory.allocation() as take:
        asked = functools.partial(
            enrolment.import_people,
            context.journal,
            await read_body(request, context.settings.max_body_bytes, context.settings.max_batch_bytes, take),
            kind,
            context.columns,
            replace=replace,
            allow_removals=allow_removals,
            dry_run=dry_run,
        )
        return json_answer(await context.change(asked))


@own_router.put("/v1/me/requirement", **described(ChoiceResult, 400, 415, 507, access="link", body=_LEVEL))
async def choose_my_requirement(request: Request, context: Context, me: Person, dry_run: DryRun = False) -> Response:
    """Choose an offered level: its name, or words for privacy and window."""
    return await _choose(request, context, _link(me).user, LevelBody, dry_run=dry_run)


@own_router.get("/v1/me/requirement", **described(HeldChoice, 400, 404, access="link"))
async def get_my_requirement(context: Context, me: Person) -> Response:
    """What you hold, from when on, and how long an earlier choice protects you as well."""
    return await _requirement(context, _link(me).user)


@own_router.delete("/v1/me/requirement", **described(LeaveResult, 400, 404, 507, access="link"))
async def leave_myself(context: Context, me: Person) -> Response:
    """Leave; the id is kept as long as the earlier choice protects."""
    return await _leave(context, _link(me).user, erased=False)


@own_router.get("/v1/me", **described(UserExport, 400, 404, access="link"))
async def export_myself(context: Context, me: Person) -> Response:
    """All that is held about you."""
    return await _export(context, _link(me).user)


@own_router.delete("/v1/me", **described(LeaveResult, 400, 404, 507, access="link"))
async def erase_myself(context: Context, me: Person) -> Response:
    """Leave and erase the id; a keyed digest of it is kept as long as the earlier choice protects."""
    return await _leave(context, _link(me).user, erased=True)


@own_router.delete("/v1/me/link", **described(None, 400, 507, access="link", status=204, content={}))
async def end_my_link(context: Context, me: Person) -> Response:
    """End this link."""
    await context.change(context.links.end, _link(me))
    return Response(status_code=204)


async def _choose(
    request: Request, context: ServiceContext, user: str, kind: type[LevelBody | RequirementBody], *, dry_run: bool
) -> Response:
    media_type(request.headers, JSON)
    body = decoded(await read_body(request), kind)
    state = context.state
    asked = functools.partial(
        enrolment.choose,
        context.journal,
        user,
        body,
        dry_run=dry_run,
        due_through=state.due_through,
        clock=state.clock,
    )
    return json_answer(await context.change(asked))


async def _requirement(context: ServiceContext, user: str) -> Response:
    due_through = context.state.due_through
    return json_answer(await context.reader.ask(lambda journal: enrolment.requirement_of(journal, user, due_through)))


async def _export(context: ServiceContext, user: str) -> Response:
    return json_answer(await context.reader.ask(lambda journal: enrolment.export_of(journal, user)))


async def _leave(context: ServiceContext, user: str, *, erased: bool) -> Response:
    due_through = context.state.due_through
    asked = functools.partial(enrolment.leave, context.journal, user, erased=erased, due_through=due_through)
    left = await context.change(asked)
    if erased:  # a link could enrol the user again
        await context.change(context.links.end_all, user)
    return json_answer(left)


def _link(me: Caller) -> Link:
    assert me.link is not None, "`link_holder` admits nobody else"
    return me.link
