"""Calls of a platform that enrols users, and the same calls of a user with a personal link, without an id in the path.

`wevent.publishing.registrations` has the rules.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from wevent import schemas
from wevent.core.budget import NANO
from wevent.errors import InvalidMembership, NotRegistered, WeventError
from wevent.journal import Journal, JournalAddress, Terms
from wevent.people.classes import Key
from wevent.people.membership import Membership, check_id
from wevent.publishing import registrations
from wevent.publishing.importing import Difference
from wevent.publishing.registrations import ChangeResult, DueThrough, Requested
from wevent.publishing.views import view_user
from wevent.service.access import Caller, link_holder, needs
from wevent.service.context import Context, ServiceContext, check_parameters, json_answer
from wevent.service.openapi import described, json_content, parameter
from wevent.service.problems import RequestError
from wevent.service.request_body import CSV, JSON, NDJSON, decoded, media_type, read_body
from wevent.service.tokens import choosing_address
from wevent.settings.values import SECOND_US, span_text, utc_time

router = APIRouter(tags=["people"], dependencies=[Depends(needs("enrol")), Depends(check_parameters)])
own_router = APIRouter(tags=["me"], dependencies=[Depends(link_holder), Depends(check_parameters)])
DryRun = Annotated[bool, Query(description="Return the effect and store nothing.")]
_USER = [parameter("user", "path", "Id of the user, percent-encoded: a slash is %2F.", {"type": "string"})]
_REQUIREMENT = json_content(schemas.RequirementBody)
_NOT_EMPTY = {"type": "string", "minLength": 1}
_FILE: dict[str, Any] = {
    CSV: {"schema": {**_NOT_EMPTY, "description": "user,level or user,privacy,window or user,window,epsilon."}},
    NDJSON: {"schema": {**_NOT_EMPTY, "description": "One JSON object per line, with the same keys."}},
}
_HOUR_S = 3600
_CHECK_ID = "Check the id."


async def find_user(request: Request) -> str:
    """Return the user of the link, or the id in the path. Such a path comes as it was sent: a slash in an id stays one."""
    caller: Caller = request.state.caller
    if caller.user is not None:
        return caller.user
    try:
        return unquote_to_bytes(request.path_params["user"]).decode()
    except UnicodeDecodeError:
        raise RequestError(400, "The id is not UTF-8.", "Percent-encode it as UTF-8.") from None


User = Annotated[str, Depends(find_user)]


@router.put(
    "/v1/users/{user}/requirement",
    **described(schemas.HeldChoice, 400, 415, 507, body=_REQUIREMENT, parameters=_USER),
)
@own_router.put("/v1/me/requirement", **described(schemas.HeldChoice, 400, 415, 507, access="link", body=_REQUIREMENT))
async def set_requirement(request: Request, context: Context, user: User, dry_run: DryRun = False) -> Response:
    """Set a requirement: an offered level or its two words. With a token also a window and an epsilon."""
    media_type(request.headers, JSON)
    in_numbers = request.state.caller.link is None
    body = msgspec.structs.asdict(decoded(await read_body(request), schemas.RequirementBody))
    asked = Requested(**{name: str(value) for name, value in body.items() if value is not None})
    if not asked.is_one_way or (asked.epsilon is not None and not in_numbers):
        numbers = "window (in slots, or a duration) with epsilon, or " if in_numbers else ""
        ways = f"The body must have level, or {numbers}window with privacy (words)."
        raise InvalidMembership(ways, "Give one of these; /v1/levels has the words.")
    due_through = context.state.due_through
    force = await context.change(
        registrations.choose, context.journal, user, asked, dry_run=dry_run, due_through=due_through
    )
    assert force.slot is not None
    assert force.person is not None
    assert force.terms is not None
    held = force.person.current
    assert held is not None, "the requirement was just queued"
    return json_answer(
        _choice(force.terms, held, force.slot, force.earlier_until, queued=not dry_run, notes=_notes(force))
    )


@router.get("/v1/users/{user}/requirement", **described(schemas.HeldChoice, 400, 404, parameters=_USER))
@own_router.get("/v1/me/requirement", **described(schemas.HeldChoice, 400, 404, access="link"))
async def get_requirement(context: Context, user: User) -> Response:
    """Return the requirement of a user, its first slot, and the slot until which an earlier choice protects as well."""
    due_through = context.state.due_through
    return json_answer(await context.reader.ask(lambda journal: _held_choice(journal, user, due_through)))


@router.delete("/v1/users/{user}/requirement", **described(schemas.LeaveResult, 400, 404, 507, parameters=_USER))
@own_router.delete("/v1/me/requirement", **described(schemas.LeaveResult, 400, 404, 507, access="link"))
async def remove_requirement(context: Context, user: User) -> Response:
    """Remove a user; the id is kept as long as the earlier choice protects."""
    return json_answer(await _leave(context, user, erased=False))


@router.get("/v1/users/{user}", **described(schemas.UserExport, 400, 404, parameters=_USER))
@own_router.get("/v1/me", **described(schemas.UserExport, 400, 404, access="link"))
async def export(context: Context, user: User) -> Response:
    """Return all stored data about a user: current and earlier choices, queued changes. Events are not stored."""
    return json_answer(await context.reader.ask(lambda journal: _export(journal, user)))


@router.delete("/v1/users/{user}", **described(schemas.LeaveResult, 400, 404, 507, parameters=_USER))
@own_router.delete("/v1/me", **described(schemas.LeaveResult, 400, 404, 507, access="link"))
async def erase(context: Context, user: User) -> Response:
    """Remove a user and erase the id; a keyed digest of it is kept as long as the earlier choice protects."""
    left = await _leave(context, user, erased=True)
    await context.change(context.tokens.end_links, user)  # a link could enrol the user again
    return json_answer(left)


@router.post("/v1/users/{user}/link", **described(schemas.PersonalLink, 400, 507, status=201, parameters=_USER))
async def make_link(context: Context, user: User) -> Response:
    """Make a personal link of a user; it is shown once."""
    made = await context.change(context.tokens.make_link, user, context.settings.link_hours * _HOUR_S)
    url = choosing_address(context.settings.url or f"http://{context.settings.listen}", made)
    return json_answer(schemas.PersonalLink(url=url, expires=utc_time(made.record.expires * SECOND_US)), 201)


@router.delete("/v1/users/{user}/links", **described({}, 400, 507, status=204, parameters=_USER))
async def end_links(context: Context, user: User) -> Response:
    """End all links of a user."""
    await context.change(context.tokens.end_links, user)
    return Response(status_code=204)


@own_router.delete("/v1/me/link", **described({}, 400, 507, access="link", status=204))
async def end_my_link(request: Request, context: Context) -> Response:
    """End this link."""
    await context.change(context.tokens.end_link, request.state.caller.link)
    return Response(status_code=204)


@router.post("/v1/users", **described(schemas.ImportResult, 400, 415, 507, body=_FILE))
async def import_people(
    request: Request,
    context: Context,
    dry_run: DryRun = False,
    replace: Annotated[bool, Query(description="Remove all users who are not in the file.")] = False,
    allow_removals: Annotated[bool, Query(description="Also if more than one in ten would leave.")] = False,
) -> Response:
    """Import a requirements file: its users join or change; with `replace` all others leave."""
    kind = media_type(request.headers, CSV, NDJSON)
    with context.memory.allocation() as take:
        body = await read_body(request, context.settings.max_body_bytes, context.settings.max_batch_bytes, take)
        how = {"partial": not replace, "allow_removals": allow_removals, "dry_run": dry_run}
        done = await context.change(_import, context.journal, body, kind, columns=context.columns, **how)
    counts = {"added": done.joining, "changed": done.changing, "removed": done.leaving, "unchanged": done.unchanged}
    answer = schemas.ImportResult(**counts, in_transition=done.preview.in_transition, notes=done.sentences())
    return json_answer(answer)


def _held_choice(journal: Journal, user: str, due_through: DueThrough) -> schemas.HeldChoice:
    """Return the requirement of a user, or the one that the queued changes lead to; refuse a user without one."""
    check_id(user)
    head = journal.head()
    view, slot = view_user(journal, user), head.next_slot
    queued = bool(view.queued)
    if queued:
        slot = registrations.boundary_ahead(journal, head, due_through())
        view = view.after((), slot, journal.registry.salt)
    held = view.current
    if held is None:
        raise NotRegistered("The user is not registered.", _CHECK_ID)
    return _choice(head.epoch.terms, held, held.first, view.earlier_until(slot), queued=queued)


def _choice(
    terms: Terms, held: Membership, first: int, earlier_until: int | None, *, queued: bool, notes: Sequence[str] = ()
) -> schemas.HeldChoice:
    return schemas.HeldChoice(
        requirement=_requirement(held.key, held.level, terms),
        in_force_from=first,
        in_force_time=terms.slot_start(first),
        earlier_until=earlier_until,
        earlier_until_time=None if earlier_until is None else terms.slot_start(earlier_until),
        queued=queued,
        notes=list(notes),
    )


async def _leave(context: ServiceContext, user: str, *, erased: bool) -> schemas.LeaveResult:
    """Queue that a user leaves. Raises as `registrations.leave`."""
    due_through = context.state.due_through
    try:
        force = await context.change(registrations.leave, context.journal, user, erased=erased, due_through=due_through)
    except NotRegistered as error:  # its fix is a command
        raise NotRegistered(error.problem, _CHECK_ID) from None
    assert force.slot is not None
    assert force.person is not None
    person = force.person
    kept_until = max((until for row in person.past if (until := person.kept_until(row)) is not None), default=None)
    notes = _notes(force)
    if kept_until is not None:
        what = "A keyed digest of the id" if erased else "The id"
        notes.append(f"{what} is kept through slot {kept_until}: until then the earlier choice protects as well.")
    return schemas.LeaveResult(in_force_from=force.slot, kept_until=kept_until, notes=notes)


def _export(journal: Journal, user: str) -> schemas.UserExport:
    """Return all stored data about one user; refuse a user without any."""
    check_id(user)
    view = view_user(journal, user)
    by_request = user in journal.registry.joined_by_request()
    if not view.memberships and not view.queued and not by_request:
        raise NotRegistered("Nothing is stored about this user.", _CHECK_ID)
    terms = journal.head().epoch.terms
    return schemas.UserExport(
        memberships=[
            schemas.MembershipRow(*_fields(row.key, row.level, terms), row.first, None)
            for row in view.memberships
            if row.last is None
        ],
        earlier=[
            schemas.EarlierRow(*_fields(row.key, row.level, terms), row.first or None, row.last, until)
            for row in view.past
            if (until := view.kept_until(row)) is not None
        ],
        queued=[
            schemas.QueuedRow(
                change.action, None if change.key is None else _requirement(change.key, change.level, terms)
            )
            for change in view.queued
        ],
        joined_by_request=by_request,
    )


def _requirement(key: Key, level: str | None, terms: Terms) -> schemas.UserRequirement:
    return schemas.UserRequirement(*_fields(key, level, terms))


def _fields(key: Key, level: str | None, terms: Terms) -> tuple[int, float, str | None, str | None]:
    """Return the fields of `UserRequirement`."""
    window, nano = key
    span = None if terms.slot_length_us is None else span_text(window * terms.slot_length_us)
    return window, nano / NANO, level, span


def _notes(force: ChangeResult) -> list[str]:
    return [*force.notes, *(() if force.preview is None else force.preview.warnings())]


def _import(place: JournalAddress, body: bytes, kind: str, **how: Any) -> Difference:
    """Queue what a requirements file changes. Raises as `registrations.import_file`, without the name of the file."""
    with _as_file(body, ".csv" if kind == CSV else ".ndjson") as file:
        try:
            return registrations.import_file(place, file, **how)
        except WeventError as error:
            name, texts = str(file), (error.problem, error.fix)
            problem, fix = (text.replace(repr(name), "the body").replace(name, "the body") for text in texts)
            facts = {fact: value for fact, value in error.facts.items() if fact != "path"}
            raise type(error)(problem, fix.replace("--allow-removals", "allow_removals=true"), **facts) from None


@contextmanager
def _as_file(body: bytes, ending: str) -> Iterator[Path]:
    """Yield a path for a body. The body has ids, so it stays in memory where that is possible."""
    with tempfile.TemporaryDirectory(prefix="wevent-") as folder:
        name = Path(folder) / f"requirements{ending}"
        if not hasattr(os, "memfd_create"):
            name.write_bytes(body)
            yield name
            return
        with os.fdopen(os.memfd_create("requirements"), "wb", closefd=True) as memory:
            memory.write(body)
            memory.flush()
            name.symlink_to(f"/proc/{os.getpid()}/fd/{memory.fileno()}")
            yield name
