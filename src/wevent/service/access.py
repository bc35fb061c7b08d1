"""Callers from the Authorization header and their roles, as dependencies of routes.

Refusals name the required access, never the request.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request

from wevent.service.problems import CHALLENGE, RequestError
from wevent.service.request_limits import CallerKind
from wevent.service.tokens import LINK_PREFIX, CredentialRefused, InvalidTokens, Link, Role

if TYPE_CHECKING:
    from wevent.service.context import ServiceContext

_CREDENTIAL = re.compile(rb"bearer +([!-~]{1,600})", re.IGNORECASE)  # the scheme is case-insensitive (RFC 9110, 11.1)

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Caller:
    """The sender of a request.

    Attributes:
        kind: kind of the id.
        id: id of the token or link; without either, the network address.
        roles: roles of the token.
        link: personal link, None without one.
    """

    kind: CallerKind
    id: str = field(repr=False)
    roles: frozenset[Role] = frozenset()
    link: Link | None = field(default=None, repr=False)

    @property
    def user(self) -> str | None:
        """User of the link, None without one."""
        return None if self.link is None else self.link.user


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
    host = None if request.client is None else request.client.host
    caller = recognise(request.app.state.context, request.scope["headers"], host, anonymous_ok=anonymous_ok)
    request.state.caller = caller
    return caller


def recognise(context: ServiceContext, headers: Headers, host: str | None, *, anonymous_ok: bool = False) -> Caller:
    """Return the caller and count the request.

    A token that is sent must be valid, also where none is needed. Calls without a valid one count for the address.

    Args:
        context: tokens, links, limits and settings.
        headers: headers of the request.
        host: network address of the sender, None if there is none.
        anonymous_ok: whether a public service needs no token here.

    Raises:
        RequestError: if the caller is not admitted (401) or calls too often (429).
        CredentialRefused: if the token or link is not valid.
        InvalidTokens: if tokens cannot be checked.
    """
    anonymous = Caller("address", _household(host))
    try:
        caller = _identify(context, headers)
        if caller is None:
            if not (anonymous_ok and context.settings.public):
                fix = "Send Authorization: Bearer TOKEN (`wevent token create` makes tokens)."
                raise RequestError(401, "This call needs a token.", fix, CHALLENGE)
            caller = anonymous
    except (CredentialRefused, RequestError):
        _count(context, anonymous)
        raise
    _count(context, caller)
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
    text = match[1].decode("ascii")
    if text.startswith(LINK_PREFIX):
        link = context.links.admit(text)
        return Caller("link", link.identity, link=link)
    record = context.tokens.admit(text)
    return Caller("token", record.id, frozenset(record.roles))


def count_events(context: ServiceContext, caller: Caller, number: int) -> None:
    """Count the events of a batch before they are taken.

    Raises:
        RequestError: if the caller sent too many within a minute (429); then none of them was counted.
    """
    _refuse_excess(context.rates.events.take(caller.id, number), "events")


def _count(context: ServiceContext, caller: Caller) -> None:
    _refuse_excess(context.rates.requests[caller.kind].take(caller.id), "requests")


def _refuse_excess(wait_s: float, what: str) -> None:
    if wait_s > 0:
        seconds = str(math.ceil(wait_s))
        fix = f"Send it again in {seconds} seconds."
        raise RequestError(429, f"The limit of {what} per minute is reached.", fix, {"Retry-After": seconds})


def _household(host: str | None) -> str:
    """Return what is counted as one address: of IPv6 the network of one household."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return "elsewhere"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), 64), strict=False))
