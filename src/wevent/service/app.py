"""The application: routes, exception handlers, and a middleware with security headers and a log line without ids."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wevent import __version__
from wevent.errors import WeventError
from wevent.service import routes_events, routes_operator, routes_people, routes_releases
from wevent.service.context import ServiceContext
from wevent.service.openapi import document
from wevent.service.problems import problem, problem_of

_ROUTERS = (
    routes_releases.router,
    routes_events.router,
    routes_people.router,
    routes_people.own_router,
    routes_operator.router,
)
_log = logging.getLogger("wevent.service")
_POLICY = (  # the charts are pictures as data; neither they nor the pages need inline styles
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS: list[tuple[bytes, bytes]] = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), interest-cohort=()"),
]
_STATIC = "/static/"
_USERS = b"/v1/users/"


def make_app(context: ServiceContext) -> FastAPI:
    """Return the application of a service."""
    app = FastAPI(
        title="wevent",
        version=__version__,
        summary="Histograms of an endless stream under personalised w-event privacy.",
        docs_url=None,  # both load what they need from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    app.state.context = context
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    for router in _ROUTERS:
        app.include_router(router)
    routes_operator.add_pages(app)
    for kind in (WeventError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refuse)
    app.add_middleware(Middleware)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return problem_of(error)
    if error.status_code == 405:
        allowed = _methods(request, error)
        return problem(405, f"The path has other methods ({allowed}). /openapi.json has all calls.", {"Allow": allowed})
    sentence = "The path does not exist." if error.status_code == 404 else "The request cannot be answered."
    return problem(error.status_code, f"{sentence} /openapi.json has all calls.", error.headers)


def _methods(request: Request, error: HTTPException) -> str:
    """Return all methods of a path. In the API each of them is a route of its own; HEAD goes with GET."""
    routes = [route for router in _ROUTERS for route in router.routes]
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in found for method in getattr(route, "methods", ())}
    methods |= set(filter(None, (error.headers or {}).get("Allow", "").split(", ")))
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


class Middleware:
    """An application with security headers, a log line and an answer to every error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = scope["method"]
        if asked == "HEAD":  # a copy: the server goes by its own, and sends no body
            scope = {**scope, "method": "GET"}
        _keep_slashes_of_users(scope)
        status = 0
        kept = scope["path"].startswith(_STATIC)

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *strict_headers(message, kept=kept)]
            elif asked == "HEAD":
                return
            await send(message)
            if asked == "HEAD":  # the end of the answer, also where GET would stream
                await send({"type": "http.response.body"})

        try:
            await self._app(scope, receive, guarded)
        except Exception as error:  # noqa: BLE001
            _log.error("%s failed, %s", _named(scope, asked), _place(error))
            if not status:
                sorry = problem(500, "The service failed. Its log has the place.")
                await sorry(scope, receive, guarded)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s %d", _named(scope, asked), status)


def strict_headers(message: Message, *, kept: bool = False) -> list[tuple[bytes, bytes]]:
    """Return the headers that every answer has besides its own."""
    said = {name.lower() for name, _ in message.get("headers", ())}
    keeping = b"no-cache" if kept else b"no-store"  # what may be kept is asked for again: it changes with the version
    return [*_ALWAYS, *([] if b"cache-control" in said else [(b"cache-control", keeping)])]


def _keep_slashes_of_users(scope: Scope) -> None:
    """Match paths of users as they were sent: in a path that is decoded, a slash in an id would be a part of the path."""
    raw = scope.get("raw_path")
    if isinstance(raw, bytes) and (raw.startswith(_USERS) or scope["path"].startswith(_USERS.decode())):
        # A path that was only spelt like one of users matches no route: it would be decoded twice.
        scope["path"] = raw.decode("latin-1")


def _named(scope: Scope, asked: str) -> str:
    """Return the call as it may be logged: its template, never its path."""
    route: Any = scope.get("route")
    return f"{asked} {getattr(route, 'path', '(no such path)')}"


def _place(error: BaseException) -> str:
    """Return type and origin of an error; its message may contain a user's data."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
