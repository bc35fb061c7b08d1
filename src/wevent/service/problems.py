"""Everything that goes wrong, as application/problem+json: one sentence, the same that the command line says.

A sentence about the input is told to who sent it. One about the service's own files names their paths and is for the
operator: the caller is told what it means for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import Response
from fastapi.exceptions import RequestValidationError

from wevent.errors import (
    BatchConflict,
    InvalidJournal,
    InvalidState,
    JournalLocked,
    JournalUnreachable,
    NotRegistered,
    ServiceStopping,
    StaleJournal,
    StorageFailed,
    WeventError,
)
from wevent.service.tokens_file import InvalidTokens

PROBLEM = "application/problem+json"
RETRY_S = 5
"""After so many seconds a caller may try again what the service could not do."""

MOST_REPEATED = 500
"""The most characters of a part of an error that an answer has, which bounds how much of a request comes back."""

_TOLD = ("key", "option", "column", "place", "line", "cells", "level", "parameter")


class RequestError(WeventError):
    """A refused request. The received part never repeats the request. Facts: `status`, `headers`."""

    status: int
    headers: dict[str, str]

    def __init__(
        self,
        status: int,
        expected: str,
        received: str,
        remedy: str,
        headers: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(expected, received, remedy, status=status, headers=dict(headers or {}), **facts)


def not_ready(received: str) -> RequestError:
    """Return the refusal of calls that need a running publisher."""
    return RequestError(
        503, "a publisher that runs", received, "Try again later.", headers={"Retry-After": str(RETRY_S)}
    )


_KEPT_BACK: dict[type[WeventError], tuple[int, str]] = {
    JournalUnreachable: (
        503,
        "Expected the server's database to answer; received no answer. Try again later.",
    ),
    StorageFailed: (
        507,
        "Expected room on the server's disk; received a disk that cannot be written. Try again later.",
    ),
    JournalLocked: (503, "Expected a journal that can be used; received one that is busy. Try again later."),
    StaleJournal: (503, "Expected the journal; received a copy of it. The operator has to settle it first."),
    InvalidJournal: (503, "Expected a whole journal; received a damaged one. The operator has to restore it first."),
    InvalidTokens: (
        503,
        "Expected a tokens file; received one that cannot be used. The operator has to put it right first.",
    ),
    InvalidState: (503, "Expected a whole journal; received a damaged one. The operator has to restore it first."),
}
"""Errors that are not the caller's, and what the caller is told instead of paths and holders."""


_STATUSES: dict[type[WeventError], int] = {NotRegistered: 404, BatchConflict: 409, ServiceStopping: 503}


_PARAMETERS = {
    "bool_parsing": "true or false",
    "int_parsing": "a whole number",
    "greater_than_equal": "a number of at least {ge}",
    "less_than_equal": "a number of at most {le}",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "the number of a slot",  # no other text has a pattern
}
"""What was expected of a parameter, by pydantic's name for what is wrong with it."""


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, facts: Mapping[str, Any] | None = None
) -> Response:
    """A problem as a response (RFC 9457)."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = "Error"
    about = {"type": "about:blank", "title": title, "status": status, "detail": detail, **(facts or {})}
    return Response(msgspec.json.encode(about, enc_hook=str), status, dict(headers or {}), media_type=PROBLEM)


def problem_of(error: WeventError) -> Response:
    """The problem that an error is."""
    for kind, (status, sentence) in _KEPT_BACK.items():
        if isinstance(error, kind):
            return problem(status, sentence, {"Retry-After": str(RETRY_S)})
    status, headers = _status(error)
    facts = {name: _shortened(error.facts[name]) for name in _TOLD if error.facts.get(name) is not None}
    expected, received, remedy = map(_shortened, (error.expected, error.received, error.remedy))
    return problem(status, f"Expected {expected}; received {received}. {remedy}", headers, facts)


def _shortened(value: Any) -> Any:
    """Return a text without its middle where it is too long to be repeated; of a list, each of its texts."""
    if isinstance(value, list | tuple):
        return [_shortened(one) for one in value]
    if not isinstance(value, str) or len(value) <= MOST_REPEATED:
        return value
    half = MOST_REPEATED // 2
    return f"{value[:half]}…{value[-half:]}"


def _status(error: WeventError) -> tuple[int, Mapping[str, str]]:
    if isinstance(error, RequestError):
        return error.status, error.headers
    for kind, status in _STATUSES.items():
        if isinstance(error, kind):
            return status, {"Retry-After": str(RETRY_S)} if status == 503 else {}
    return 400, {}


def problem_of_validation(error: RequestValidationError) -> Response:
    """The problem of a parameter that FastAPI refused, in one sentence; what was sent is not repeated."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    where, name = place[0], place[-1]
    known = _PARAMETERS.get(first["type"])
    usual = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input should be ").rstrip(".")
    told = usual if known is None else known.format_map(first.get("ctx", {}))
    sentence = f"Expected {told} for {name} in the {where}; received something else. Correct it."
    return problem(400, sentence, facts={"parameter": name})
