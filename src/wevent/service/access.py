"""Callers from the Authorization header, their roles as dependencies of routes, and rate limits per caller.

Refusals name the required access, never the request.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from fastapi import Request

from wevent.service.problems import CHALLENGE, RequestError
from wevent.service.tokens import CredentialRefused, InvalidTokens, Link, Role

if TYPE_CHECKING:
    from wevent.service.context import ServiceContext

_MINUTE_S = 60.0
_MAX_CALLERS = 50_000  # of a kind: some megabytes
_ROUNDING_S = 1e-6  # a caller who waited as told is not refused for a rounding error
_CREDENTIAL = re.compile(rb"bearer +([!-~]{1,600})", re.IGNORECASE)  # the scheme is case-insensitive (RFC 9110, 11.1)

CallerKind = Literal["token", "link", "address"]  # callers of one kind never use up the limit of another
Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Caller:
    """The sender of a request.

    Attributes:
        id: id of the token or link; without either, the network address.
    """

    kind: CallerKind
    id: str = field(repr=False)
    roles: frozenset[Role] = frozenset()
    link: Link | None = field(default=None, repr=False)

    @property
    def user(self) -> str | None:
        """User of the link, None without one."""
        return None if self.link is None else self.link.user


class Buckets:
    """Token buckets by name, each filled evenly, with a capacity of one minute. No owner's traffic affects another's.

    A request for more than a minute's worth needs a full bucket and leaves a debt.

    A full bucket needs no place. Beyond `_MAX_CALLERS` the least recently used one goes, which gives its owner a full one.

    Args:
        per_minute: fill rate; 0: no limit.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._full_at: dict[str, float] = {}  # time at which a bucket is full again, least recently used first
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, name: str, count: int = 1) -> float:
        """Return 0 if the count was taken, otherwise the seconds to wait; then nothing was taken."""
        if not self._per_minute or count <= 0:
            return 0.0
        with self._guard:
            now = time.monotonic()
            full_at = max(self._full_at.get(name, now), now)
            wait_s = full_at + self._fill_s(min(count, self._per_minute)) - now - _MINUTE_S
            if wait_s > _ROUNDING_S:
                return wait_s
            self._full_at.pop(name, None)
            self._full_at[name] = full_at + self._fill_s(count)
            for _ in range(2):  # at most, so that no caller waits for it
                oldest = next(iter(self._full_at))
                if self._full_at[oldest] > now and len(self._full_at) <= _MAX_CALLERS:
                    break
                del self._full_at[oldest]
            return 0.0

    def _fill_s(self, count: int) -> float:
        return count * _MINUTE_S / self._per_minute


def count(buckets: Buckets, caller: Caller, what: str, number: int = 1) -> None:
    """Count requests or events of a caller before they are taken, or refuse all of them (429)."""
    wait_s = buckets.take(caller.id, number)
    if wait_s > 0:
        seconds = str(math.ceil(wait_s))
        fix = f"Send it again in {seconds} seconds."
        raise RequestError(429, f"The limit of {what} per minute is reached.", fix, {"Retry-After": seconds})


async def any_caller(request: Request) -> Caller:
    """Return a caller with any valid token or link, or without one where the service is public; count the request."""
    return _caller(request, anonymous_ok=True)


def needs(role: Role) -> Callable[[Request], Awaitable[Caller]]:
    """Return a dependency that admits tokens for a role or for `admin`, and counts the request."""

    async def token_holder(request: Request) -> Caller:
        caller = _caller(request)
        if role not in caller.roles and "admin" not in caller.roles:
            fix = "Ask the operator for one (`wevent token create --role`)."
            raise RequestError(403, f"This call needs a token for {role!r}.", fix)
        return caller

    return token_holder


async def link_holder(request: Request) -> Caller:
    """Return a user with a personal link; count the request."""
    caller = _caller(request)
    if caller.link is None:
        raise RequestError(403, "This call needs a personal link.", "With a token for 'enrol', use /v1/users.")
    return caller


def _caller(request: Request, *, anonymous_ok: bool = False) -> Caller:
    """Return the caller and count the request.

    A token that is sent must be valid, also where none is needed. Calls without a valid one count for the address.

    Raises:
        RequestError: if the caller is not admitted (401) or calls too often (429).
        CredentialRefused: if the token or link is not valid.
        InvalidTokens: if tokens cannot be checked.
    """
    context: ServiceContext = request.app.state.context
    anonymous = Caller("address", _household(None if request.client is None else request.client.host))
    try:
        caller = _identify(context, request.scope["headers"])
        if caller is None:
            if not (anonymous_ok and context.settings.public):
                fix = "Send Authorization: Bearer TOKEN (`wevent token create` makes tokens)."
                raise RequestError(401, "This call needs a token.", fix, CHALLENGE)
            caller = anonymous
    except (CredentialRefused, RequestError):
        count(context.requests["address"], anonymous, "requests")
        raise
    count(context.requests[caller.kind], caller, "requests")
    request.state.caller = caller
    return caller


def is_still_admitted(context: ServiceContext, headers: Headers) -> bool:
    """Return whether a request would be admitted again by its token or link; one without either stays admitted."""
    try:
        _identify(context, headers)
    except (CredentialRefused, InvalidTokens):
        return False
    return True


def _identify(context: ServiceContext, headers: Headers) -> Caller | None:
    """Return the holder of the token or link in the one Authorization header, None without such a header."""
    found = [value for name, value in headers if name.lower() == b"authorization"]
    if not found:
        return None
    match = _CREDENTIAL.fullmatch(found[0].strip(b" \t")) if len(found) == 1 else None
    if match is None:
        problem = "The Authorization header is not valid."
        raise RequestError(401, problem, "Send one header Authorization: Bearer TOKEN.", CHALLENGE)
    try:
        held = context.tokens.admit(match[1].decode("ascii"))
    except InvalidTokens as error:
        context.state.log("tokens", str(error), f"tokens and links are not accepted: {error}", logging.ERROR)
        raise
    context.state.log("tokens", None)
    if isinstance(held, Link):
        return Caller("link", held.identity, link=held)
    return Caller("token", held.id, frozenset(held.roles))


def _household(host: str | None) -> str:
    """Return what is counted as one address: of IPv6 the network of one household."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return "elsewhere"
    address = getattr(address, "ipv4_mapped", None) or address
    return str(address if address.version == 4 else ipaddress.ip_network((int(address), 64), strict=False))
