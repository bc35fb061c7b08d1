"""Both clients behind one face, so that every test asks both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from wevent.client import AsyncClient, Client


class Pauses(list[float]):
    """How long was waited: nobody does in tests."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)

    def now(self) -> float:
        return sum(self)


def ask_blocking(
    url: str, what: str, *arguments: Any, take: int = 0, pauses: Pauses | None = None, **options: Any
) -> Any:
    """Make one call with `Client`; of what is iterated, `take` items (0: all)."""
    settings = _settings(what, options)
    pauses = Pauses() if pauses is None else pauses
    with Client(url, **settings) as client:
        client._asynchronous._sleep, client._asynchronous._now = pauses.sleep, pauses.now
        found = getattr(client, what)(*arguments, **options)
        if not inspect.isgenerator(found):
            return found
        items = []
        for item in found:
            items.append(item)
            if len(items) == take:
                break
        found.close()
        return items


def ask_asynchronous(
    url: str, what: str, *arguments: Any, take: int = 0, pauses: Pauses | None = None, **options: Any
) -> Any:
    """The same with `AsyncClient`."""
    settings = _settings(what, options)
    pauses = Pauses() if pauses is None else pauses

    async def ask() -> Any:
        async with AsyncClient(url, **settings) as client:
            client._sleep, client._now = pauses.sleep, pauses.now
            found = getattr(client, what)(*arguments, **options)
            if not inspect.isasyncgen(found):
                return await found
            items = []
            async for item in found:
                items.append(item)
                if len(items) == take:
                    break
            await found.aclose()
            return items

    return asyncio.run(ask())


def _settings(what: str, options: dict[str, Any]) -> dict[str, Any]:
    """What of the options is the client's own; a stream has its own patience."""
    names = ("token", "timeout_s") if what == "stream" else ("token", "timeout_s", "patience_s")
    return {name: options.pop(name) for name in names if name in options}


both = pytest.mark.parametrize("ask", [ask_blocking, ask_asynchronous], ids=["blocking", "asynchronous"])
Ask = Callable[..., Any]
