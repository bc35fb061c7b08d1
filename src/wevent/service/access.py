"""Callers from the Authorization header and their roles, as dependencies of routes.

Refusals name the required access, never the request.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from wevent.service.problems import RequestError
from wevent.service.request_limits import CallerKind
from wevent.service.tokens import LINK_PREFIX, CredentialRefused, Link
from wevent.service.tokens_file import InvalidTokens, Role

if TYPE_CHECKING:
    from wevent.service.context import ServiceContext

_CREDENTIAL = re.compile(rb"bearer +([!-~]{1,600})", re.IGNORECASE)  # the scheme is case-insensitive (RFC 9110, 11.1)
_CHALLENGE = {"WWW-Authenticate": "Bearer"}

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Caller:
    """The sender of a request.

    Attributes:
        kind: kind of their id.
        id: of their token or link; without either, their network address.
        roles: of their token.
        link: their personal link.
    """

    kind: CallerKind
    id: str = field(repr=False)
    roles: frozenset[Role] = frozenset()
    link: Link | None = field(default=None, repr=False)

    @property
    def user(self) -> str | None:
        """Whose link it is, None without one."""
        return None if self.link is None else self.link.user


Dependency = Callable[..., Awaitable[Caller]]


class _Scheme(HTTPBearer):
    """The security of a route in the OpenAPI document; `recognise` checks the header."""

    async def __call__(self, request: Request) -> None:  # type: ignore[override]
        return None


_TOKEN_SCHEME = _Scheme(scheme_name="token", description="`wev_…`, made by `wevent token create`.")
_LINK_SCHEME = _Scheme(scheme_name="link", description="`wel_…`, from a person's own link.")


async def any_caller(request: Request) -> Caller:
    """Return a caller with any valid token or link, or anybody where the service is public; count the request."""
    return recognise(request.app.state.context, request.scope["headers"], _host(request), anonymous_ok=True)


def needs(role: Role) -> Dependency:
    """Return a dependency that admits tokens for a role or for `admin`, and counts the request."""

    async def token_holder(request: Request, _: Annotated[None, Depends(_TOKEN_SCHEME)]) -> Caller:
        caller = recognise(request.app.state.context, request.scope["headers"], _host(request))
        if role not in caller.roles and "admin" not in caller.roles:
            raise RequestError(
                403,
                f"a token for {role!r}",
                "a personal link" if caller.link is not None else "a token for something else",
                "Use another token, or ask the operator for one (`wevent token create --role`).",
            )
        return caller

    return token_holder


async def link_holder(request: Request, _: Annotated[None, Depends(_LINK_SCHEME)]) -> Caller:
    """Return a user with a personal link; count the request."""
    caller = recognise(request.app.state.context, request.scope["headers"], _host(request))
    if caller.link is None:
        raise RequestError(
            403, "a personal link", "a token", "With a token for 'enrol', use the calls under /v1/users."
        )
    return caller


def recognise(context: ServiceContext, headers: Headers, host: str | None, *, anonymous_ok: bool = False) -> Caller:
    """Return the caller and count the request.

    A token that is sent must be valid, also where none is needed. Calls without a valid one count for the address.

    Args:
        context: tokens, links, limits and settings.
        headers: of the request, as they came.
        host: the network address that it came from, None if it has none.
        anonymous_ok: whether a public service needs no token here.

    Raises:
        RequestError: if they are nobody we know (401), come too often (429), or tokens cannot be checked (503).
    """
    nobody = Caller("address", _address(host))
    try:
        sent = presented(headers)
        if sent is not None:
            caller = _known(context, sent)
        elif anonymous_ok and context.settings.public:
            caller = nobody
        else:
            raise CredentialRefused(
                "a token (Authorization: Bearer TOKEN)", "none", "Send one; `wevent token create` makes them."
            )
    except CredentialRefused as error:
        _count(context, nobody)
        raise RequestError(401, error.expected, error.received, error.remedy, _CHALLENGE) from None
    except InvalidTokens:
        raise RequestError(
            503,
            "to check the token",
            "a tokens file that cannot be used",
            "Nobody with a token is admitted until the operator has put it right (`wevent token list` says what it is).",
        ) from None
    _count(context, caller)
    return caller


def is_still_admitted(context: ServiceContext, headers: Headers) -> bool:
    """Return whether a request would be admitted again by its token or link; one without either stays admitted."""
    try:
        sent = presented(headers)
        if sent is not None:
            _known(context, sent)
    except (CredentialRefused, InvalidTokens):
        return False
    return True


def presented(headers: Headers) -> str | None:
    """The token in the one Authorization header, None without such a header.

    Raises:
        CredentialRefused: for several headers, another scheme, or what can be no token.
    """
    found = [value for name, value in headers if name.lower() == b"authorization"]
    if not found:
        return None
    match = _CREDENTIAL.fullmatch(found[0].strip(b" \t")) if len(found) == 1 else None
    if match is None:
        raise CredentialRefused(
            "one header `Authorization: Bearer TOKEN`",
            "several" if len(found) > 1 else "another value",
            "Send the token as it was shown, once.",
        )
    return match[1].decode("ascii")


def count_events(context: ServiceContext, caller: Caller, number: int) -> None:
    """Count the events of a batch before they are taken.

    Raises:
        RequestError: if the caller sent too many within a minute (429); then none of them was counted.
    """
    _refuse_haste(context.rates.events.take(caller.id, number), "events")


def _known(context: ServiceContext, sent: str) -> Caller:
    if sent.startswith(LINK_PREFIX):
        link = context.links.admit(sent)
        return Caller("link", link.identity, link=link)
    record = context.tokens.admit(sent)
    return Caller("token", record.id, frozenset(record.roles))


def _count(context: ServiceContext, caller: Caller) -> None:
    _refuse_haste(context.rates.requests[caller.kind].take(caller.id), "requests")


def _refuse_haste(wait_s: float, what: str) -> None:
    if wait_s > 0:
        seconds = math.ceil(wait_s)
        raise RequestError(
            429,
            f"fewer {what} per minute",
            "more than the limit",
            f"Send it again in {seconds} seconds.",
            {"Retry-After": str(seconds)},
        )


def _host(request: Request) -> str | None:
    return None if request.client is None else request.client.host


def _address(host: str | None) -> str:
    """What is counted as one address: of IPv6 the network that one household has."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return "elsewhere"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), 64), strict=False))
