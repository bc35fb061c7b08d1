"""What the tests of access share: a clock that is set by hand, and the parts of a service over one tokens file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
from fastapi import Depends, FastAPI, Request, Response

from wevent.errors import WeventError
from wevent.service.access import Buckets, Caller, any_caller, link_holder, needs
from wevent.service.problems import problem_of
from wevent.service.publishing_thread import PublisherState
from wevent.service.tokens import Tokens

NOW = 1_800_000_000


class Clock:
    """Seconds that pass when told, in place of the module `time`."""

    sleep, time_ns = staticmethod(time.sleep), staticmethod(time.time_ns)

    def __init__(self) -> None:
        self.now: float = NOW

    def time(self) -> float:
        return self.now

    monotonic = time


@dataclass
class AccessSettings:
    public: bool = False


@dataclass
class Parts:
    """A context as routes have it."""

    tokens: Tokens
    requests: dict[str, Buckets]
    events: Buckets
    settings: AccessSettings = field(default_factory=AccessSettings)
    state: PublisherState = field(default_factory=lambda: PublisherState(0, 0))


def parts(folder: Path, *, requests_per_minute: int = 0, events_per_minute: int = 0) -> Parts:
    requests = {kind: Buckets(requests_per_minute) for kind in ("token", "link", "address")}
    return Parts(Tokens(folder / "run.journal.tokens"), requests, Buckets(events_per_minute))


def guarded_app(context: Parts) -> FastAPI:
    """A route per role, one that may be public, one for links; errors as the service would answer them."""
    app = FastAPI()
    app.state.context = context

    @app.exception_handler(WeventError)
    async def refused(request: Request, error: WeventError) -> Response:
        return problem_of(error)

    dependencies: dict[str, Callable[..., Awaitable[Caller]]] = {
        **{role: needs(role) for role in ("ingest", "enrol", "read", "admin")},  # type: ignore[arg-type]
        "public": any_caller,
        "me": link_holder,
    }
    for name, dependency in dependencies.items():

        def answer(caller: Annotated[Caller, Depends(dependency)]) -> dict[str, Any]:
            return {"kind": caller.kind, "user": caller.user}

        answer.__annotations__["caller"] = Annotated[Caller, Depends(dependency)]
        app.get(f"/{name}")(answer)
    return app


class Door:
    """Calls an app, without a network."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return asyncio.run(self._get(path, headers or {}))

    async def _get(self, path: str, headers: dict[str, str]) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://test") as client:
            return await client.get(path, headers=headers)
