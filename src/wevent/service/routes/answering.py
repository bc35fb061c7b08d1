"""What all routes share: the context, JSON answers, the user in a path."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote_to_bytes

import msgspec
from fastapi import Depends, Path, Request, Response

from wevent.service.bodies import JSON
from wevent.service.problems import NotReady, RequestRefused
from wevent.service.service_context import ServiceContext


def context_of(request: Request) -> ServiceContext:
    """Return the parts of the service.

    Raises:
        NotReady: before the journal can be read (503); readiness is answered from the start.
    """
    context: ServiceContext = request.app.state.context
    if not context.feed.is_open and request.url.path != "/readyz":
        raise NotReady("one that does not run yet")
    return context


Context = Annotated[ServiceContext, Depends(context_of)]


def json_answer(answer: msgspec.Struct | dict[str, object], status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(msgspec.json.encode(answer), status, media_type=JSON)


def user_in_path(
    user: Annotated[str, Path(description="The id, percent-encoded: a slash in it is %2F.", min_length=1)],
) -> str:
    """The id in a path. Paths of users come as they were sent, so that a slash in an id stays one.

    Raises:
        RequestRefused: if it is no text (400).
    """
    try:
        return unquote_to_bytes(user).decode()
    except UnicodeDecodeError:
        raise RequestRefused(400, "an id in UTF-8", "other bytes", "Percent-encode the id as UTF-8.") from None


User = Annotated[str, Depends(user_in_path)]


async def check_parameters(request: Request) -> None:
    """Refuse what a call has no parameter for: `?dryrun=true` would do what it was to rehearse.

    Raises:
        RequestRefused: if there is such a one (400).
    """
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    if any(name not in known for name in request.query_params):
        raise RequestRefused(
            400,
            f"parameters out of {', '.join(known)} in the query" if known else "a call without a query",
            "another parameter",
            "Correct its name, or leave it out: see /openapi.json.",
        )
