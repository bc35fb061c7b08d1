"""What goes wrong between a client and the service, as errors of wevent."""

from __future__ import annotations

from typing import Any

import msgspec

from wevent.errors import InvalidOption, ServiceRefused, ServiceUnreachable

_LONGEST = 2_000  # of a sentence: a proxy in between may answer with anything


def refused(status: int, body: bytes) -> ServiceRefused:
    """The error that an answer is; of one that is no problem document, its status alone is said."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        problem = {}
    detail, title = problem.get("detail"), problem.get("title")
    if not isinstance(detail, str) or not detail:
        return _not_by_us(status)
    return ServiceRefused(detail[:_LONGEST], status, title if isinstance(title, str) else "", problem)


def _not_by_us(status: int) -> ServiceRefused:
    sentence = (
        f"Expected an answer of wevent; received status {status} without one. "
        "Check the address, and the proxy in front of the service."
    )
    return ServiceRefused(sentence, status)


def unreachable(reason: str) -> ServiceUnreachable:
    """After the last attempt."""
    return ServiceUnreachable(
        "an answer of the service", reason, "Check the address and whether it runs, then try again.", reason=reason
    )


def unreadable(what: str) -> ServiceRefused:
    """An answer that is none of this version."""
    return ServiceRefused(
        f"Expected {what}; received something else. Check the address, and that client and service are of one version.",
        200,
    )


def missing_httpx() -> InvalidOption:
    """The client's one dependency is an extra."""
    return InvalidOption(
        "httpx to be installed",
        "an installation without it",
        "Run pip install 'wevent[client]'.",
        option="library",
        value="httpx",
    )
