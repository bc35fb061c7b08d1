"""The application: routes, exception handlers and middleware."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from wevent import __version__
from wevent.errors import WeventError
from wevent.service import routes_events, routes_people, routes_read
from wevent.service.context import ServiceContext
from wevent.service.middleware import Middleware
from wevent.service.openapi import document
from wevent.service.problems import problem, problem_of, problem_of_validation

_ROUTERS = (
    routes_read.router,
    routes_events.router,
    routes_people.router,
    routes_people.own_router,
    routes_read.operator_router,
)
_SENTENCES = {
    400: "Expected a request; received something else. Correct it.",
    404: "Expected a call of this service; received another path. See /openapi.json.",
    405: "Expected a method that this path has; received another one. See /openapi.json.",
}


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
    routes_read.add_pages(app)
    app.add_exception_handler(WeventError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_parameter)
    app.add_exception_handler(HTTPException, _refuse_path)
    app.add_middleware(Middleware)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, WeventError)
    return problem_of(error)


async def _refuse_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_of_validation(error)


async def _refuse_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = _SENTENCES.get(error.status_code, "Expected a request that can be answered; received another one.")
    allowed = _methods(request, error) if error.status_code == 405 else ""
    if allowed:
        detail = f"Expected a method that this path has ({allowed}); received another one. See /openapi.json."
    return problem(error.status_code, detail, {"Allow": allowed} if allowed else error.headers)


def _methods(request: Request, error: HTTPException) -> str:
    """Every method that a path has: of the API each of them is a route of its own; HEAD goes with GET."""
    routes = [route for router in _ROUTERS for route in router.routes]
    found = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in found for method in getattr(route, "methods", ())}
    methods |= set(filter(None, (error.headers or {}).get("Allow", "").split(", ")))
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
