"""The application: routes, exception handlers and middleware."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from wevent import __version__
from wevent.errors import WeventError
from wevent.service import routes_events, routes_operator, routes_people, routes_releases
from wevent.service.context import ServiceContext
from wevent.service.middleware import Middleware
from wevent.service.openapi import document
from wevent.service.problems import problem, problem_of, problem_of_validation

_ROUTERS = (
    routes_releases.router,
    routes_events.router,
    routes_people.router,
    routes_people.own_router,
    routes_operator.router,
)


def make_app(context: ServiceContext) -> FastAPI:
    """Return the application of a service."""
    app = FastAPI(
        title="wevent",
        version=__version__,
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
    if isinstance(error, WeventError):
        return problem_of(error)
    if isinstance(error, RequestValidationError):
        return problem_of_validation(error)
    assert isinstance(error, HTTPException)
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
