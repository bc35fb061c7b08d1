"""The OpenAPI document, made from the routes and `wevent.schemas`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Literal

import msgspec
from fastapi import FastAPI, Response

from wevent import schemas
from wevent.service.problems import PROBLEM
from wevent.service.request_body import JSON

_KINDS = [kind for kind in vars(schemas).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
_SCHEMAS = "#/components/schemas/{name}"
_TOKEN: dict[str, list[str]] = {"token": []}
_LINK: dict[str, list[str]] = {"link": []}
_SECURITY = {"token": [_TOKEN], "link": [_LINK], "public": [{}, _TOKEN, _LINK]}
_REFUSALS = {"token": (401, 403, 429, 503), "link": (401, 403, 429, 503), "public": (401, 429, 503), "none": ()}
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "`wev_…`, made by `wevent token create`."},
    "link": {"type": "http", "scheme": "bearer", "description": "`wel_…`, from the personal link of a user."},
}

Content = dict[str, Any]


def reference(kind: type[msgspec.Struct]) -> Content:
    """Return a schema by its name."""
    return {"$ref": _SCHEMAS.format(name=kind.__name__)}


def json_content(kind: type[msgspec.Struct]) -> Content:
    """Return the schema of a JSON object by media type."""
    return {JSON: {"schema": reference(kind)}}


def described(
    answer: type[msgspec.Struct] | Content,
    *refusals: int,
    access: Literal["token", "link", "public", "none"] = "token",
    status: int = 200,
    body: Content | None = None,
    parameters: list[Content] | None = None,
    headers: Content | None = None,
) -> dict[str, Any]:
    """Return the arguments of a route's decorator beside its path.

    Args:
        answer: object of the answer, or schemas by media type.
        *refusals: status codes beyond those of the access.
        access: "public" needs a token unless the service is public.
        status: status code of the answer.
        body: schemas of the request body by media type.
        parameters: parameters that the route reads by itself.
        headers: headers of the answer.
    """
    content = answer if isinstance(answer, dict) else json_content(answer)
    problems = {PROBLEM: {"schema": reference(schemas.Problem)}}
    statuses = sorted({*_REFUSALS[access], *refusals, *((408, 413) if body else ())})
    extra = {
        "requestBody": {"required": True, "content": body} if body else None,
        "security": _SECURITY.get(access),
        "parameters": parameters,
    }
    return {
        "responses": {
            status: {"description": "As requested.", "content": content, **({"headers": headers} if headers else {})},
            **{code: {"description": HTTPStatus(code).phrase, "content": problems} for code in statuses},
        },
        "response_class": Response,
        "response_model": None,
        "status_code": status,
        "openapi_extra": {name: value for name, value in extra.items() if value},
    }


def parameter(name: str, place: Literal["header", "path"], description: str, schema: Content) -> Content:
    """Return a parameter that a route reads by itself."""
    return {"name": name, "in": place, "required": place == "path", "description": description, "schema": schema}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the whole document; made once."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        _, components = msgspec.json.schema_components(_KINDS, ref_template=_SCHEMAS)
        forbidden = {"not": {"type": "null"}}  # it counts as no key
        components["RequirementBody"]["oneOf"] = [
            {"required": names, "properties": dict.fromkeys(names, forbidden)} for names in schemas.REQUIREMENT_KEYS
        ]
        made["components"] = {"schemas": components, "securitySchemes": _SCHEMES}
        for path in made["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)  # the service answers 400 instead
    assert app.openapi_schema is not None
    return app.openapi_schema
