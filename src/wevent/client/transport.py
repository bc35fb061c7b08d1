"""Calls over httpx: address and token, retry policy, and errors; the same for both clients.

Requests go through httpx's transports, not through its clients: those log every address, ids in it included, follow
redirects, and use proxies that the environment names.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from types import NoneType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from wevent.client.calls import Call, Reply
from wevent.errors import InvalidOption, ServiceRefused, ServiceUnreachable, WeventError

with suppress(ImportError):  # an extra: `Address` says so
    import httpx

STREAM_SILENCE_S = 45.0
"""A stream without a byte for three heartbeats is broken."""

KEPT_S = 2.0
"""Time for which an idle connection is used again: shorter than a server or a proxy keeps it."""

UNTOUCHED = frozenset({429, 503, 507})
"""The service did nothing and asks for a later attempt; 507: its disk is full."""

LATER = UNTOUCHED | {502, 504}
"""Or a proxy got no answer: the effect of the call is unknown."""

_FIRST_S, _LONGEST_S = 0.25, 15.0
_LONGEST_SENTENCE = 2_000  # a proxy in between may answer with anything


class Address:
    """Address of the service, and the token for it. Neither the token nor a path is ever printed.

    Raises:
        InvalidOption: if httpx is missing, the address is invalid, or a token would travel unencrypted.
    """

    def __init__(self, url: str, token: str | None, timeout_s: float, *, plain_http: bool) -> None:
        if find_spec("httpx") is None:
            raise InvalidOption(
                "httpx to be installed",
                "an installation without it",
                "Run pip install 'wevent[client]'.",
                option="library",
                value="httpx",
            )
        self.base = _checked(url, plain_http=plain_http or token is None)
        self._token = _checked_token(token)
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"<Address {self.base}>"

    def request(self, call: Call[Any], *, silence_s: float | None = None) -> httpx.Request:
        """Return the request of a call; a stream may be silent for `silence_s`."""
        headers = {"accept": "application/json", "user-agent": "wevent-client", **call.headers}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        timeout = httpx.Timeout(self._timeout_s, read=silence_s or self._timeout_s)
        return httpx.Request(
            call.method,
            self.base + call.path,
            params=call.params or None,
            headers=headers,
            content=call.content,
            extensions={"timeout": timeout.as_dict()},
        )


class RetryPolicy:
    """Pauses between the attempts of one call.

    Args:
        total_s: time for all attempts together; None: without end.
        now: a clock that never goes back.
    """

    def __init__(self, total_s: float | None, now: Callable[[], float]) -> None:
        self._total_s, self._now = total_s, now
        self._begun = now()
        self._failures = 0
        self._least_s = _FIRST_S

    def reset(self) -> None:
        """Start again: a stream that was connected has all its time again."""
        self._begun, self._failures = self._now(), 0

    def set_least(self, least_s: float) -> None:
        """Take the shortest pause that the service asks for."""
        self._least_s = min(max(least_s, _FIRST_S), _LONGEST_S)

    def pause(self, reason: str, headers: Mapping[str, str] | None = None, failure: WeventError | None = None) -> float:
        """Return the seconds until the next attempt; random, so that many clients do not come back together.

        Raises:
            WeventError: `failure`, or that nothing answered, if no time is left.
        """
        grown = min(_LONGEST_S, self._least_s * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        wait = max(grown * random.uniform(0.5, 1.0), _read_retry_after(headers or {}))
        if self._total_s is not None and self._now() - self._begun + wait > self._total_s:
            raise failure or unreachable(reason)
        return wait


def _read_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of a Retry-After header; a date is ignored, since clocks differ."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0


def read_reply(call: Call[Reply], body: bytes) -> Reply:
    """Return the reply in a body."""
    if call.reply is NoneType:
        body = b"null"
    return decode(body, call.reply, "an answer of wevent")


def decode(data: bytes | str, kind: type[Reply], expected: str) -> Reply:
    """Return JSON as a type.

    Raises:
        ServiceRefused: if it is something else.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        raise unreadable(expected) from None


def refused(status: int, body: bytes) -> ServiceRefused:
    """Return the error of an answer; of one that is no problem document, with its status alone."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        problem = {}
    detail, title = problem.get("detail"), problem.get("title")
    if isinstance(detail, str) and detail:
        return ServiceRefused(detail[:_LONGEST_SENTENCE], status, title if isinstance(title, str) else "", problem)
    sentence = (
        f"Expected an answer of wevent; received status {status} without one. "
        "Check the address, and the proxy in front of the service."
    )
    return ServiceRefused(sentence, status)


def unreachable(reason: str) -> ServiceUnreachable:
    """Return the error after the last attempt."""
    return ServiceUnreachable(
        "an answer of the service", reason, "Check the address and whether it runs, then try again.", reason=reason
    )


def unreadable(expected: str) -> ServiceRefused:
    """Return the error of an answer that this version cannot read."""
    return ServiceRefused(
        f"Expected {expected}; received something else. "
        "Check the address, and that client and service are of one version.",
        200,
    )


def was_sent(error: httpx.RequestError) -> bool:
    """Return True if the service may have seen the request."""
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def is_hopeless(error: httpx.RequestError) -> bool:
    """Return True if another attempt cannot help: a certificate stays invalid."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def describe(error: httpx.RequestError) -> str:
    """Return the failure in words; httpx's own message only where there was no connection, since it holds no id."""
    if isinstance(error, httpx.ConnectError):
        return f"no connection ({error})" if str(error) else "no connection"
    return "no answer in time" if isinstance(error, httpx.TimeoutException) else "a connection that was lost"


def _checked(url: str, *, plain_http: bool) -> str:
    parts = urlsplit(url)
    try:
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fine = False
    if not is_fine or "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidOption(
            "the address of a service, such as https://stats.example",
            "something else",  # a personal link has its token in it
            "Leave user names, queries and what follows a # out of it.",
            option="url",
            value=None,
        )
    if parts.scheme == "http" and not plain_http and not _is_loopback(parts.hostname or ""):
        raise InvalidOption(
            "https, where a token is sent to another machine",
            "http",
            "Put a reverse proxy with TLS in front of the service, or say plain_http=True if nobody can listen in between.",
            option="url",
            value=None,
        )
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _checked_token(token: str | None) -> str | None:
    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise InvalidOption(
            "a token as `wevent token create` prints it",
            "other characters",
            "Read it without the end of its line.",
            option="token",
            value=None,
        )
    return token
