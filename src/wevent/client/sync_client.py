"""The client for blocking programs: the asynchronous one over a transport whose coroutines never wait.

A coroutine that never waits ends in its first step, without an event loop. So every call is written once.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from wevent.client.async_client import AsyncClient
from wevent.client.transport import KEPT_S, require_httpx

with suppress(ImportError):  # an extra: `require_httpx` says so
    import httpx

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    """Return a method of the asynchronous client as one that blocks."""

    @wraps(method)
    def call(client: Client, /, *args: P.args, **options: P.kwargs) -> T:
        return _finish(method(client._asynchronous, *args, **options))

    return call


def _iterating(
    method: Callable[Concatenate[AsyncClient, P], AsyncIterator[T]],
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    """Return an asynchronous generator of the client as one that blocks."""

    @wraps(method)
    def call(client: Client, /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
        items = cast(Any, method(client._asynchronous, *args, **options))
        try:
            with suppress(StopAsyncIteration):
                while True:
                    yield _finish(items.__anext__())
        finally:
            _finish(items.aclose())

    signature = inspect.signature(method)
    returned = signature.return_annotation.removeprefix("Async")
    cast(Any, call).__signature__ = signature.replace(return_annotation=returned)
    return call


def _finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("a blocking transport never waits")


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)


class Client:  # noqa: D101  below
    __doc__ = (AsyncClient.__doc__ or "").replace("asynchronous programs", "blocking programs")

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        patience_s: float = 30.0,
        plain_http: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        require_httpx()
        self._transport = transport or httpx.HTTPTransport(limits=httpx.Limits(keepalive_expiry=KEPT_S))
        self._asynchronous = AsyncClient(
            url,
            token=token,
            timeout_s=timeout_s,
            patience_s=patience_s,
            plain_http=plain_http,
            transport=cast(Any, self._transport),  # `read_chunks` reads both kinds
        )
        self._asynchronous._sleep = _sleep

    def __repr__(self) -> str:
        return repr(self._asynchronous).replace("AsyncClient", "Client")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    about = _blocking(AsyncClient.about)
    levels = _blocking(AsyncClient.levels)
    ledger = _blocking(AsyncClient.ledger)
    statement = _blocking(AsyncClient.statement)
    overview = _blocking(AsyncClient.overview)
    wait_until_ready = _blocking(AsyncClient.wait_until_ready)
    releases = _iterating(AsyncClient.releases)
    release_table = _blocking(AsyncClient.release_table)
    stream = _iterating(AsyncClient.stream)
    send = _blocking(AsyncClient.send)
    set_requirement = _blocking(AsyncClient.set_requirement)
    requirement = _blocking(AsyncClient.requirement)
    remove_requirement = _blocking(AsyncClient.remove_requirement)
    erase = _blocking(AsyncClient.erase)
    export = _blocking(AsyncClient.export)
    import_requirements = _blocking(AsyncClient.import_requirements)
    link = _blocking(AsyncClient.link)
    revoke_links = _blocking(AsyncClient.revoke_links)
    end_link = _blocking(AsyncClient.end_link)
