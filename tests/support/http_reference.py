"""The tables of the HTTP API, made from its OpenAPI document.

`python -m tests.support.http_reference` writes the second half of docs/reference/http.md anew; a test compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.json_reference import attributes_of
from wevent import schemas
from wevent.service.app import make_app
from wevent.service.context import ServiceContext
from wevent.service.publishing_thread import PublisherState
from wevent.settings import ServiceSettings

TARGET = Path(__file__).parents[2] / "docs/reference/http.md"
MARKER = "<!-- From here on made from the OpenAPI document: python -m tests.support.http_reference -->\n"
_ROLES = {"events": "ingest", "people": "enrol", "operator": "admin"}


def document() -> dict[str, Any]:
    """The document of a service that does not run."""
    context = ServiceContext(ServiceSettings(), Path("run.journal"), PublisherState(0, 0))
    return make_app(context).openapi()


def tables() -> str:
    """Everything behind the marker."""
    made = document()
    calls = [
        f"| `{method.upper()} {path}` | {_who(call)} | {call['description'].splitlines()[0]} | {_statuses(call)} |"
        for path, methods in made["paths"].items()
        for method, call in methods.items()
    ]
    parts = [
        MARKER,
        "## All calls\n",
        "| call | who | what | answers |",
        "|---|---|---|---|",
        *calls,
        "",
        "## Objects\n",
    ]
    for name, schema in sorted(made["components"]["schemas"].items()):
        parts += [f"### `{name}`\n", _first(schema), "", "| key | value | meaning |", "|---|---|---|"]
        meanings = attributes_of(getattr(schemas, name, None))
        parts += [
            f"| `{key}` | {_value(kind)} | {meanings.get(key, kind.get('description', ''))} |"
            for key, kind in schema["properties"].items()
        ]
        parts.append("")
    return "\n".join(parts)


def _first(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).splitlines()[0]


def _who(call: dict[str, Any]) -> str:
    needed = call.get("security")
    if needed is None:
        return "anybody"
    if {} in needed:
        return "public"
    return "a link" if "link" in needed[0] else _ROLES[call["tags"][0]]


def _statuses(call: dict[str, Any]) -> str:
    return ", ".join(sorted(call["responses"]))


def _value(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind:
        return " or ".join(_value(one) for one in kind["anyOf"])
    if "enum" in kind:
        return ", ".join(f"`{word}`" for word in kind["enum"])
    if kind.get("format") == "date-time":
        return "time"
    words = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "true or false",
        "null": "null",
    }
    if kind.get("type") == "array":
        return f"array of {_value(kind['items'])}" if kind.get("items") else "array"
    if kind.get("type") == "object":
        return f"object, name to {_value(kind['additionalProperties'])}" if "additionalProperties" in kind else "object"
    return words.get(kind.get("type", ""), "anything")


if __name__ == "__main__":
    TARGET.write_text(TARGET.read_text().partition(MARKER)[0] + tables())
