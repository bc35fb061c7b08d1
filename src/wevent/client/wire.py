"""From a call to a request of HTTP, the same for blocking and asynchronous clients.

Requests go through httpx's transports, not through its clients: those log every address, ids in it included, follow
redirects, and use proxies that the environment names.
"""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from wevent.client.calls import Call
from wevent.client.failures import missing_httpx
from wevent.errors import InvalidOption

with suppress(ImportError):  # an extra: `Address` says so
    import httpx

STREAM_SILENCE_S = 45.0
"""A stream without a byte for three heartbeats is broken."""

KEPT_S = 2.0
"""How long an idle connection is used again: less than a server or a proxy keeps it."""


class Address:
    """Where the service is, and the token to show there; neither the token nor a path is ever printed.

    Raises:
        InvalidOption: if httpx is missing, the address is none, or a token would travel unencrypted.
    """

    def __init__(self, url: str, token: str | None, timeout_s: float, *, plain_http: bool) -> None:
        if find_spec("httpx") is None:
            raise missing_httpx()
        self.base = _checked(url, plain_http=plain_http or token is None)
        self._token = _checked_token(token)
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"<Address {self.base}>"

    def request(self, call: Call[Any], *, silence_s: float | None = None) -> httpx.Request:
        """The request of a call; of a stream, with how long it may be silent."""
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


def was_sent(error: httpx.RequestError) -> bool:
    """Whether the service may have seen the request."""
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def is_hopeless(error: httpx.RequestError) -> bool:
    """Whether trying again cannot help: a certificate stays what it is."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def reason_of(error: httpx.RequestError) -> str:
    """What happened, in words; a message of httpx only where there was no connection, since it holds nothing of ours."""
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
