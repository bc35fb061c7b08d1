"""Calls over httpx: checks of address and token, retry policy, errors, and the stream of releases.

Requests go through httpx's transports, not through its clients: those log every address, ids in it included, follow
redirects, and use proxies that the environment names.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, closing, suppress
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from wevent.errors import InvalidOption, ServiceRefused, ServiceUnreachable, WeventError
from wevent.schemas import ReleasedSlot

with suppress(ImportError):  # an extra: `require_httpx` says so
    import httpx

Reply = TypeVar("Reply")

STREAM_SILENCE_S = 45.0  # a stream without a byte for three heartbeats is broken
KEPT_S = 2.0  # time for which an idle connection is used again: shorter than a server or a proxy keeps it
_UNTOUCHED = frozenset({429, 503, 507})  # the service did nothing and asks for a later attempt; 507: its disk is full
_LATER = _UNTOUCHED | {502, 504}  # or a proxy got no answer: the effect of the call is unknown

_FIRST_S, _LONGEST_S = 0.25, 15.0
_LONGEST_SENTENCE = 2_000  # a proxy in between may answer with anything
_LONGEST_EVENT = 64 << 20  # bytes: a release of 2²¹ cells fits


class Interrupted(Exception):
    """A failed attempt, with the error of the call if no other is made, and the shortest time until the next one."""

    def __init__(self, error: WeventError, wait_s: float = 0.0) -> None:
        super().__init__(error)
        self.error, self.wait_s = error, wait_s


class RetryPolicy:
    """Pauses between the attempts of one call, for `total_s` seconds by a clock; None: without end."""

    def __init__(self, total_s: float | None, now: Callable[[], float]) -> None:
        self._total_s, self._now = total_s, now
        self.least_s = _FIRST_S  # shortest pause that the service asks for
        self.reset()

    def reset(self) -> None:
        """Start again: a stream that was connected has all its time again."""
        self._begun, self._failures = self._now(), 0

    def pause(self, failure: Interrupted) -> float:
        """Return the seconds until the next attempt, random so that many clients do not come back together.

        Raises the error of the failed attempt if no time is left.
        """
        grown = min(_LONGEST_S, max(_FIRST_S, self.least_s) * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        wait = max(grown * random.uniform(0.5, 1.0), failure.wait_s)
        if self._total_s is not None and self._now() - self._begun + wait > self._total_s:
            raise failure.error from None
        return wait


class EventReader:
    """Releases from the server-sent events of the service, whose lines end in a newline alone."""

    def __init__(self) -> None:
        self.retry_s: float | None = None  # pause before the next connection that the service asks for
        self._rest = b""

    def releases(self, chunk: bytes) -> Iterator[ReleasedSlot]:
        """Yield the releases that this chunk completes. Raises ServiceRefused for what cannot be read or has no end."""
        self._rest += chunk
        if b"\n" in chunk:
            *events, self._rest = self._rest.split(b"\n\n")
            for event in events:
                fields = {name: value for name, _, value in (line.partition(b": ") for line in event.split(b"\n"))}
                pause = fields.get(b"retry", b"")
                if pause.isdigit():
                    self.retry_s = int(pause[:9]) / 1000.0
                if fields.get(b"event") == b"release":
                    yield decode(fields.get(b"data", b""), ReleasedSlot)
        if len(self._rest) > _LONGEST_EVENT:
            raise _unreadable()


def require_httpx() -> None:
    """Refuse an installation without the extra."""
    if find_spec("httpx") is None:
        fix = "Run pip install 'wevent[client]'."
        raise InvalidOption("The client needs httpx.", fix, option="library", value="httpx")


@asynccontextmanager
async def _answer(
    transport: httpx.AsyncBaseTransport | httpx.BaseTransport, request: httpx.Request
) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[bytes]]]:
    """Yield an answer and the pieces of its body; of a blocking transport as if they were asynchronous."""
    if isinstance(transport, httpx.AsyncBaseTransport):
        async with aclosing(await transport.handle_async_request(request)) as response:
            yield response, response.aiter_bytes()
    else:
        with closing(transport.handle_request(request)) as response:
            yield response, _each(response.iter_bytes())


async def _each(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read_chunks(
    transport: httpx.AsyncBaseTransport | httpx.BaseTransport, request: httpx.Request, *, repeatable: bool = True
) -> AsyncGenerator[bytes, None]:
    """Yield the body of a successful answer.

    Raises:
        Interrupted: if the call may be made again.
        ServiceRefused, ServiceUnreachable: if not.
    """
    try:
        async with _answer(transport, request) as (response, chunks):
            if response.is_success:
                async for chunk in chunks:
                    yield chunk
                return
            body = b"".join([chunk async for chunk in chunks])
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


def decode(data: bytes, kind: type[Reply]) -> Reply:
    """Return JSON as a type. Raises ServiceRefused if it is something else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        raise _unreadable() from None


def _refused(status: int, body: bytes) -> ServiceRefused:
    """Return the error of an answer; of one that is no problem document, with its status alone."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        problem = {}
    detail, title = problem.get("detail"), problem.get("title")
    if isinstance(detail, str) and detail:
        return ServiceRefused(detail[:_LONGEST_SENTENCE], status, title if isinstance(title, str) else "", problem)
    sentence = f"The answer has status {status} and is none of wevent. Check the address, and the proxy of the service."
    return ServiceRefused(sentence, status)


def _unreadable() -> ServiceRefused:
    """Return the error of a successful answer that this version cannot read."""
    fix = "Check the address, and that client and service are of one version."
    return ServiceRefused(f"The answer cannot be read. {fix}", 200)


def unreachable(reason: str) -> ServiceUnreachable:
    """Return the error after the last attempt."""
    fix = "Check the address and whether it runs, then try again."
    return ServiceUnreachable(f"The service cannot be reached: {reason}.", fix, reason=reason)


def _describe(error: httpx.RequestError) -> str:
    """Return the failure in words; httpx's own message only where there was no connection, since it holds no id."""
    if isinstance(error, httpx.ConnectError):
        return f"no connection ({error})" if str(error) else "no connection"
    return "no answer in time" if isinstance(error, httpx.TimeoutException) else "the connection was lost"


def check_address(url: str, *, plain_http: bool) -> str:
    """Return the address of a service without a slash at its end; errors do not repeat it: a personal link is secret."""
    parts = urlsplit(url)
    try:
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fine = False
    if not is_fine or "@" in parts.netloc or parts.query or parts.fragment:
        fix = "Give one such as https://stats.example, without a user name, a query or what follows a #."
        raise InvalidOption("This is not the address of a service.", fix, option="url", value=None)
    if parts.scheme == "http" and not plain_http and not _is_loopback(parts.hostname or ""):
        problem = "Without https, others can read the token on its way to another machine."
        fix = (
            "Put a reverse proxy with TLS in front of the service, or set plain_http=True in a network that is private."
        )
        raise InvalidOption(problem, fix, option="url", value=None)
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
    fix = "Give it as `wevent token create` prints it, without the end of the line."
    raise InvalidOption("The token has characters that no token has.", fix, option="token", value=None)
