"""The calls of the service's API, without input or output: what to ask, and how to read the answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from wevent import schemas
from wevent.client.encoding import Events, compressed, digest_id, event_lines, moment
from wevent.client.failures import unreadable
from wevent.errors import InvalidOption, ServiceRefused

Reply = TypeVar("Reply")
_BATCH_ID = re.compile(r"[!-~]{1,200}")
_LEAST_LIMIT = 1 << 10  # bytes: no service refuses fewer for their size
User = str | int
Place = int | str | datetime
"""A slot by its number, or by a time in it."""


@dataclass(frozen=True, repr=False)
class Call(Generic[Reply]):
    """One request.

    Attributes:
        read: makes of the answer's body what the caller gets.
        repeatable: whether making it twice is the same as once, so that it is made again when a connection is lost.
    """

    method: str
    path: str
    read: Callable[[bytes], Reply]
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = True


def about() -> Call[schemas.StreamInfo]:
    """What is public about the stream."""
    return Call("GET", "/v1/about", _reader(schemas.StreamInfo))


def levels() -> Call[schemas.LevelTable]:
    """What is offered."""
    return Call("GET", "/v1/levels", _reader(schemas.LevelTable))


def ledger() -> Call[schemas.BudgetTable]:
    """What is left per class."""
    return Call("GET", "/v1/ledger", _reader(schemas.BudgetTable))


def statement() -> Call[dict[str, Any]]:
    """The privacy statement."""
    return Call("GET", "/v1/statement", _reader(dict[str, Any]))


def overview() -> Call[dict[str, Any]]:
    """For administrators."""
    return Call("GET", "/v1/admin/overview", _reader(dict[str, Any]))


def ready() -> Call[None]:
    """Whether the publisher runs and keeps up."""
    return Call("GET", "/readyz", _nothing)


def releases(
    first: Place | None, last: Place | None, cells: Sequence[str] | None, limit: int
) -> Call[schemas.ReleasePage]:
    """A page of releases."""
    params = {"from": _place(first), "to": _place(last), "cells": _cells(cells), "limit": str(limit)}
    given = {name: value for name, value in params.items() if value is not None}
    return Call("GET", "/v1/releases", _reader(schemas.ReleasePage), given)


def stream(after: int) -> Call[None]:
    """Releases as they come, after this slot."""
    headers = {"accept": "text/event-stream", "accept-encoding": "identity", "last-event-id": str(after)}
    return Call("GET", "/v1/releases/stream", _nothing, headers=headers)


def send(events: Events, batch_id: str | None) -> Call[schemas.BatchResult]:
    """A batch of events. Its id stays the same in every attempt, so it is taken once."""
    lines = event_lines(events)
    if batch_id is not None and not _BATCH_ID.fullmatch(batch_id):
        raise InvalidOption(
            "a batch id of at most 200 visible ASCII characters",
            "another one",
            "Leave blanks out, or leave the id to the client.",
            option="batch_id",
            value=None,
        )
    headers = {"content-type": "application/x-ndjson", "idempotency-key": batch_id or digest_id(lines)}
    content = compressed(lines)
    if content is not lines:
        headers["content-encoding"] = "gzip"
    return Call("POST", "/v1/events", _reader(schemas.BatchResult), headers=headers, content=content)


def split(refusal: ServiceRefused, lines: bytes, batch_id: str | None) -> list[tuple[bytes, str | None]]:
    """Return the halves of a batch that was refused for its size, each with an id of its own; none for a single line.

    A half gets the same id in every attempt, also if the whole batch is sent again.

    Raises:
        ServiceRefused: if the batch was refused for another reason.
    """
    if refusal.facts["status"] != 413 or len(lines) <= _LEAST_LIMIT:
        raise refusal
    middle = len(lines) // 2
    cut = lines.rfind(b"\n", 0, middle) + 1 or lines.find(b"\n", middle) + 1
    if cut == len(lines):
        return []
    halves = [lines[:cut], lines[cut:]]
    return [(half, batch_id and digest_id(batch_id.encode() + b"\n" + half)) for half in halves]


def added_up(results: Sequence[schemas.BatchResult]) -> schemas.BatchResult:
    """Return the result of a batch from the results of its parts; without any, the batch is one record too long to send."""
    if not results:
        return schemas.BatchResult(0, {"no_record": 1})
    rejected = sum((Counter(result.rejected) for result in results), Counter[str]())
    return schemas.BatchResult(sum(result.accepted for result in results), dict(rejected))


def set_requirement(user: User | None, wish: Mapping[str, Any], dry_run: bool) -> Call[schemas.ChoiceResult]:
    """Choose, or say what a choice would mean."""
    content = msgspec.json.encode({name: value for name, value in wish.items() if value is not None})
    path, params = _person(user, "/requirement"), {"dry_run": "true"} if dry_run else {}
    return Call("PUT", path, _reader(schemas.ChoiceResult), params, {"content-type": "application/json"}, content)


def requirement(user: User | None) -> Call[schemas.HeldChoice]:
    """What somebody holds."""
    return Call("GET", _person(user, "/requirement"), _reader(schemas.HeldChoice))


def remove_requirement(user: User | None) -> Call[schemas.LeaveResult]:
    """Leave."""
    return Call("DELETE", _person(user, "/requirement"), _reader(schemas.LeaveResult))


def erase(user: User | None) -> Call[schemas.LeaveResult]:
    """Leave, and forget the id."""
    return Call("DELETE", _person(user), _reader(schemas.LeaveResult))


def export(user: User | None) -> Call[dict[str, Any]]:
    """All that is held about somebody."""
    return Call("GET", _person(user), _reader(dict[str, Any]))


def import_requirements(
    file: bytes, kind: str, *, replace: bool, allow_removals: bool, dry_run: bool
) -> Call[schemas.ImportResult]:
    """Many choices at once."""
    flags = {"replace": replace, "allow_removals": allow_removals, "dry_run": dry_run}
    params = {name: "true" for name, flag in flags.items() if flag}
    content = compressed(file)
    headers = {"content-type": kind} | ({"content-encoding": "gzip"} if content is not file else {})
    return Call("POST", "/v1/users", _reader(schemas.ImportResult), params, headers, content)


def link(user: User) -> Call[schemas.PersonalLink]:
    """A link of somebody's own; every call makes another one."""
    return Call("POST", _person(user, "/link"), _reader(schemas.PersonalLink), repeatable=False)


def revoke_links(user: User) -> Call[None]:
    """End all links of somebody."""
    return Call("DELETE", _person(user, "/links"), _nothing)


def end_link() -> Call[None]:
    """End the personal link that is used."""
    return Call("DELETE", "/v1/me/link", _nothing)


def _person(user: User | None, rest: str = "") -> str:
    """Whom a path is about; None: whom the personal link is of."""
    if user is None:
        return f"/v1/me{rest}"
    text = str(user)
    if not text:
        raise InvalidOption("the id of a person", "an empty one", "Name a person.", option="user", value=None)
    return f"/v1/users/{quote(text, safe='').replace('.', '%2E')}{rest}"


def _place(place: Place | None) -> str | None:
    if place is None or isinstance(place, str):
        return place
    return moment(place) if isinstance(place, datetime) else str(place)


def _cells(cells: Iterable[str] | None) -> str | None:
    """Labels with commas between them; one that has a comma or a quote itself is in double quotes."""
    if cells is None:
        return None
    return ",".join('"' + cell.replace('"', '""') + '"' if set(cell) & {",", '"'} else cell for cell in map(str, cells))


def _reader(kind: Any) -> Callable[[bytes], Any]:
    decoder = msgspec.json.Decoder(kind)

    def read(body: bytes) -> Any:
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError):
            raise unreadable("an answer of wevent") from None

    return read


def _nothing(body: bytes) -> None:
    return None
