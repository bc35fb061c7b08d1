"""The OpenAPI document, made from the routes and the structs of their answers."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi

from wevent import __version__, schemas
from wevent.service.problems import PROBLEM
from wevent.service.request_body import JSON

_KINDS = [kind for kind in vars(schemas).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
_SCHEMAS = "#/components/schemas/{name}"
_PROBLEM_SCHEMA = {
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was expected, what was received, what to do."},
    },
    "required": ["type", "title", "status", "detail"],
}
_SENTENCES = {
    400: "The request is not as it should be.",
    401: "No token, or none that is known and in force.",
    403: "A token for something else.",
    404: "Nobody or nothing is there.",
    406: "None of the formats that are asked for.",
    408: "The body came too slowly.",
    409: "The batch id was used for other content.",
    413: "The body or the batch is too large.",
    415: "The body is of another type, or packed in another way.",
    429: "Too often.",
    503: "The service cannot answer now.",
    507: "No room on the server's disk.",
}
_ALWAYS = (401, 403, 429, 503)
_OPEN = (401, 429, 503)

Content = dict[str, Any]


def reference(kind: type[msgspec.Struct]) -> Content:
    """A schema by its name."""
    return {"$ref": _SCHEMAS.format(name=kind.__name__)}


def described(
    answer: type[msgspec.Struct] | None,
    *statuses: int,
    access: str = "token",
    status: int = 200,
    content: Content | None = None,
    body: Content | None = None,
    parameters: list[Content] | None = None,
    headers: Content | None = None,
) -> dict[str, Any]:
    """What a route's decorator is told beside its path.

    Args:
        answer: what it answers with; None: see `content`.
        *statuses: how it may refuse, beyond what every call may.
        access: who may ask: "token", "link", "public" (perhaps without a token) or "none".
        status: of the answer.
        content: schemas by media type, for answers that are not one JSON object.
        body: schemas by media type of what it takes.
        parameters: that it reads by itself.
        headers: of the answer.
    """
    made = content if content is not None else {JSON: {"schema": reference(answer)}} if answer is not None else {}
    told: Content = {"description": "As asked.", "content": made, **({"headers": headers} if headers else {})}
    usual = {"token": _ALWAYS, "link": _ALWAYS, "public": _OPEN, "none": ()}[access]
    refusals = sorted({*usual, *statuses, *((408, 413) if body else ())})
    extra: Content = {}
    if body:
        extra["requestBody"] = {"required": True, "content": body}
    if access == "public":
        extra["security"] = [{}, {"token": []}, {"link": []}]
    if parameters:
        extra["parameters"] = parameters
    return {
        "responses": {status: told, **{number: _refusal(number) for number in refusals}},
        "response_class": Response,
        "response_model": None,
        "status_code": status,
        "openapi_extra": extra,
    }


def _said(names: list[str]) -> Content:
    """Return the schema of objects that have these keys; null is as good as no key."""
    return {"required": names, "properties": {name: {"not": {"type": "null"}} for name in names}}


def _refusal(status: int) -> Content:
    schema: Content = {"$ref": _SCHEMAS.format(name="Problem")}
    return {"description": _SENTENCES[status], "content": {PROBLEM: {"schema": schema}}}


def header(name: str, description: str, schema: Content) -> Content:
    """A header that a call may have."""
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document; made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title="wevent",
            version=__version__,
            summary="Histograms of an endless stream under personalised w-event privacy.",
            routes=app.routes,
        )
        _, components = msgspec.json.schema_components(_KINDS, ref_template=_SCHEMAS)
        for kind, ways in schemas.WAYS.items():
            components[kind.__name__] |= {"oneOf": [_said(names) for names in ways]}
        made.setdefault("components", {})["schemas"] = {"Problem": _PROBLEM_SCHEMA, **components}
        schemes = made["components"].setdefault("securitySchemes", {})
        schemes.setdefault("token", {"type": "http", "scheme": "bearer"})
        schemes.setdefault("link", {"type": "http", "scheme": "bearer"})
        for path in made["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)  # what FastAPI refuses, the service tells as 400
        app.openapi_schema = made
    return app.openapi_schema
