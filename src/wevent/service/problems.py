"""Errors as application/problem+json (RFC 9457).

A sentence about a request goes to its sender. A sentence about the service's own files names paths and stays in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from fastapi import Response
from fastapi.exceptions import RequestValidationError

from wevent import errors
from wevent.schemas import Problem
from wevent.service.tokens import CredentialRefused, InvalidTokens

PROBLEM = "application/problem+json"
CHALLENGE = {"WWW-Authenticate": "Bearer"}
RETRY_AFTER = {"Retry-After": "5"}  # seconds until a caller repeats a request that the service could not answer
_MAX_SENTENCE = 1000  # characters: limits how much of a request is repeated


class RequestError(errors.WeventError):
    """A refused request. The sentences do not repeat the request. Facts: `status`, `headers`."""

    status: int
    headers: dict[str, str]

    def __init__(self, status: int, problem: str, fix: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem, fix, status=status, headers=dict(headers or {}))


def not_running() -> RequestError:
    """Return the refusal of calls that need a running publisher."""
    return RequestError(503, "The publisher is not running.", "Try again later.", RETRY_AFTER)


_KINDS: dict[type[errors.WeventError], tuple[int, Mapping[str, str], str | None]] = {
    errors.JournalUnreachable: (503, RETRY_AFTER, "The server's database does not answer. Try again later."),
    errors.StorageFailed: (507, RETRY_AFTER, "The server's disk is full or read-only. Try again later."),
    errors.JournalLocked: (503, RETRY_AFTER, "The journal is in use. Try again later."),
    errors.StaleJournal: (503, RETRY_AFTER, "The journal is an outdated copy. The operator must reconcile it first."),
    errors.InvalidJournal: (503, RETRY_AFTER, "The journal is damaged. The operator must restore it first."),
    errors.InvalidState: (503, RETRY_AFTER, "The journal is damaged. The operator must restore it first."),
    InvalidTokens: (503, RETRY_AFTER, "The tokens file cannot be used. The operator must replace it first."),
    CredentialRefused: (401, CHALLENGE, None),
    errors.NotRegistered: (404, {}, None),
    errors.BatchConflict: (409, {}, None),
    errors.ServiceStopping: (503, RETRY_AFTER, None),
    errors.WeventError: (400, {}, None),
}
"""Status, headers and sentence by kind of error, the first that fits. None: the error's own sentence."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response."""
    answer = Problem("about:blank", HTTPStatus(status).phrase, status, detail)
    return Response(msgspec.json.encode(answer), status, headers, media_type=PROBLEM)


def problem_of(error: Exception) -> Response:
    """Return an error as a response; of a parameter that FastAPI refused, without its value."""
    if isinstance(error, RequestError):
        return problem(error.status, str(error), error.headers)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        place, name = first["loc"][0], first["loc"][-1]
        return problem(400, f"The {place} parameter {name} is not valid. {first['msg']}.")
    assert isinstance(error, errors.WeventError)
    status, headers, sentence = next(found for kind, found in _KINDS.items() if isinstance(error, kind))
    if sentence is None:
        sentence, half = str(error), _MAX_SENTENCE // 2
        if len(sentence) > _MAX_SENTENCE:
            sentence = f"{sentence[:half]}…{sentence[-half:]}"
    return problem(status, sentence, headers)
