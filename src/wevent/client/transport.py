"""Calls over httpx: checks of address and token, retry policy, and errors.

Requests go through httpx's transports, not through its clients: those log every address, ids in it included, follow
redirects, and use proxies that the environment names.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from wevent.errors import InvalidOption, ServiceRefused, ServiceUnreachable, WeventError

with suppress(ImportError):  # an extra: `require_httpx` says so
    import httpx

Reply = TypeVar("Reply")

STREAM_SILENCE_S = 45.0
"""A stream without a byte for three heartbeats is broken."""

KEPT_S = 2.0
"""Time for which an idle connection is used again: shorter than a server or a proxy keeps it."""

_UNTOUCHED = frozenset({429, 503, 507})
"""The service did nothing and asks for a later attempt; 507: its disk is full."""

_LATER = _UNTOUCHED | {502, 504}
"""Or a proxy got no answer: the effect of the call is unknown."""

_FIRST_S, _LONGEST_S = 0.25, 15.0
_LONGEST_SENTENCE = 2_000  # a proxy in between may answer with anything


class Interrupted(Exception):
    """A failed attempt after which the call may be made again.

    Args:
        error: error of the call if there is no other attempt.
        wait_s: shortest time until the next attempt.
    """

    def __init__(self, error: WeventError, wait_s: float = 0.0) -> None:
        super().__init__(error)
        self.error, self.wait_s = error, wait_s


class RetryPolicy:
    """Pauses between the attempts of one call.

    Args:
        total_s: time for all attempts together; None: without end.
        now: a clock that never goes back.

    Attributes:
        least_s: shortest pause that the service asks for.
    """

    def __init__(self, total_s: float | None, now: Callable[[], float]) -> None:
        self._total_s, self._now = total_s, now
        self.least_s = _FIRST_S
        self.reset()

    def reset(self) -> None:
        """Start again: a stream that was connected has all its time again."""
        self._begun, self._failures = self._now(), 0

    def pause(self, failure: Interrupted) -> float:
        """Return the seconds until the next attempt; random, so that many clients do not come back together.

        Raises:
            WeventError: the error of the failed attempt if no time is left.
        """
        grown = min(_LONGEST_S, max(_FIRST_S, self.least_s) * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        wait = max(grown * random.uniform(0.5, 1.0), failure.wait_s)
        if self._total_s is not None and self._now() - self._begun + wait > self._total_s:
            raise failure.error from None
        return wait


def require_httpx() -> None:
    """Refuse an installation without the extra."""
    if find_spec("httpx") is None:
        raise InvalidOption(
            "httpx to be installed",
            "an installation without it",
            "Run pip install 'wevent[client]'.",
            option="library",
            value="httpx",
        )


async def read_chunks(
    transport: httpx.AsyncBaseTransport, request: httpx.Request, *, repeatable: bool = True
) -> AsyncGenerator[bytes, None]:
    """Yield the body of a successful answer.

    Raises:
        Interrupted: if the call may be made again.
        ServiceRefused, ServiceUnreachable: if not.
    """
    try:
        async with aclosing(await transport.handle_async_request(request)) as response:
            if response.is_success:
                async for chunk in response.aiter_bytes():
                    yield chunk
                return
            body = b"".join([chunk async for chunk in response.aiter_bytes()])
    except httpx.RequestError as error:
        was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        is_hopeless = "CERTIFICATE_VERIFY_FAILED" in str(error)
        final = unreachable(_describe(error))
        raise (final if is_hopeless or (was_sent and not repeatable) else Interrupted(final)) from None
    failure = _refused(response.status_code, body)
    if response.status_code in (_LATER if repeatable else _UNTOUCHED):
        after = response.headers.get("retry-after", "").strip()  # a date is ignored, since clocks differ
        raise Interrupted(failure, float(after) if after.isdecimal() and len(after) < 6 else 0.0)
    raise failure


def decode(data: bytes | str, kind: type[Reply], expected: str) -> Reply:
    """Return JSON as a type.

    Raises:
        ServiceRefused: if it is something else.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        raise unreadable(expected) from None


def _refused(status: int, body: bytes) -> ServiceRefused:
    """Return the error of an answer; of one that is no problem document, with its status alone."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        problem = {}
    detail, title = problem.get("detail"), problem.get("title")
    if isinstance(detail, str) and detail:
        return ServiceRefused(detail[:_LONGEST_SENTENCE], status, title if isinstance(title, str) else "", problem)
    return ServiceRefused(
        f"Expected an answer of wevent; received status {status} without one. "
        "Check the address, and the proxy in front of the service.",
        status,
    )


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


def _describe(error: httpx.RequestError) -> str:
    """Return the failure in words; httpx's own message only where there was no connection, since it holds no id."""
    if isinstance(error, httpx.ConnectError):
        return f"no connection ({error})" if str(error) else "no connection"
    return "no answer in time" if isinstance(error, httpx.TimeoutException) else "a connection that was lost"


def check_address(url: str, *, plain_http: bool) -> str:
    """Return the address of a service without a slash at its end."""
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


def check_token(token: str) -> str:
    """Return a token that can be a header."""
    if token and token.isascii() and token.isprintable() and " " not in token:
        return token
    raise InvalidOption(
        "a token as `wevent token create` prints it",
        "other characters",
        "Read it without the end of its line.",
        option="token",
        value=None,
    )
