"""Tables of settings, JSON objects and HTTP calls, generated from the code when the site is built; a hook of mkdocs.

A page that contains the line `<!-- generated: NAME -->` shows the table of that name there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from wevent import schemas
from wevent.cli.answers import ANSWERS
from wevent.core.options import Kind, kinds
from wevent.journal.terms import EPOCHAL, PERMANENT
from wevent.service.app import make_app
from wevent.service.context import ServiceContext
from wevent.service.publishing_thread import PublisherState
from wevent.settings import SETTINGS, ServiceSettings

_MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
_PINNED_AS = {"slot": "length_us", "start": "origin_us"}
_ROLES = {"events": "ingest", "people": "enrol", "operator": "admin"}
_PLAIN = {int: "integer", float: "number", str: "text", bool: "boolean", type(None): "null"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page by their tables."""
    tables = {"settings": settings_tables, "json": json_tables, "http": http_tables}
    return _MARK.sub(lambda match: "\n".join(tables[match[1]]()), markdown)


def settings_tables() -> Iterator[str]:
    """Yield the settings of a configuration, then those of `[service]`."""
    yield "| key | meaning | values | default | pinned by the journal |\n|---|---|---|---|---|"
    for key, kind in SETTINGS.items():
        name = _PINNED_AS.get(key, key)
        pinned = "for life" if name in PERMANENT else "until reconfigured" if name in EPOCHAL else ""
        default = "required" if key in ("inputs", "cells", "slot") else _default(kind)
        yield f"| `{key}` | {kind.help} | {_values(kind)} | {default} | {pinned} |"
    yield "\n## Service\n\nKeys of `[service]`, for `wevent serve`:\n"
    yield "| key | meaning | values | default |\n|---|---|---|---|"
    for key, kind in kinds(ServiceSettings).items():
        yield f"| `{key}` | {kind.help} | {_values(kind)} | {_default(kind)} |"


def _values(kind: Kind) -> str:
    return "one of " + ", ".join(f"`{choice}`" for choice in kind.choices) if kind.choices else str(kind)


def _default(kind: Kind) -> str:
    if not kind.shown or " " in kind.shown or "`" in kind.shown:
        return kind.shown or "not set"
    return f"`{kind.shown}`"


def json_tables() -> Iterator[str]:
    """Yield the object that each command prints with `--json`, then the objects inside them."""
    inner: list[Any] = []
    for command, kind in ANSWERS.items():
        yield from _object(f"## `{command}`", kind, inner)
    yield "\n## Parts\n"
    for kind in inner:  # grows while it is read
        yield from _object(f"### `{kind.__name__}`", kind, inner)


def _object(heading: str, kind: Any, inner: list[Any]) -> Iterator[str]:
    about = _meanings(kind)
    yield f"\n{heading}\n\n| key | value | meaning |\n|---|---|---|"
    for field in msgspec.structs.fields(kind):
        yield f"| `{field.encode_name}` | {_json_type(field.type, inner)} | {about[field.name]} |"


def _json_type(kind: Any, inner: list[Any]) -> str:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in inner:
            inner.append(kind)
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    args = getattr(kind, "__args__", ())
    if getattr(kind, "__origin__", None) is list:
        return f"array of {_json_type(args[0], inner)}"
    if getattr(kind, "__origin__", None) is dict:
        return f"object of {_json_type(args[1], inner)}"
    return " or ".join(_json_type(arg, inner) for arg in args)


def _meanings(kind: Any) -> dict[str, str]:
    """Return the meaning of each attribute from annotations and from "Attributes:" in docstrings."""
    found: dict[str, str] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items() if kind is not None else ():
        for meta in getattr(hint, "__metadata__", ()):
            found[name] = meta.description
    for base in reversed(getattr(kind, "__mro__", ())):
        entries = (inspect.getdoc(base) or "").partition("Attributes:\n")[2]
        for entry in re.split(r"\n(?= {4}\w)", entries):
            names, _, text = entry.strip().partition(":")
            found.update(dict.fromkeys(names.split(", "), re.sub(r"\s+", " ", text).strip()))
    return found


def http_tables() -> Iterator[str]:
    """Yield the calls of the HTTP API and the objects they take and return, from the OpenAPI document."""
    api = make_app(ServiceContext(ServiceSettings(), Path("run.journal"), PublisherState(0, 0), {})).openapi()
    yield "## All calls\n\n| call | role | purpose | answers |\n|---|---|---|---|"
    for path, methods in api["paths"].items():
        for method, call in methods.items():
            purpose, answers = call["description"].splitlines()[0], ", ".join(sorted(call["responses"]))
            yield f"| `{method.upper()} {path}` | {_role(call)} | {purpose} | {answers} |"
    yield "\n## Objects"
    for name, schema in sorted(api["components"]["schemas"].items()):
        about = _meanings(getattr(schemas, name, None))
        yield f"\n### `{name}`\n\n{str(schema.get('description', '')).partition(chr(10))[0]}\n"
        yield "| key | value | meaning |\n|---|---|---|"
        for key, value in schema["properties"].items():
            yield f"| `{key}` | {_http_type(value)} | {about.get(key, value.get('description', ''))} |"


def _role(call: dict[str, Any]) -> str:
    security = call.get("security")
    if security is None or {} in security:
        return "none" if security is None else "none, or read"
    return "personal link" if "link" in security[0] else _ROLES[call["tags"][0]]


def _http_type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(map(_http_type, value["anyOf"]))
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if value.get("type") == "array":
        return f"array of {_http_type(value['items'])}" if value.get("items") else "array"
    if "additionalProperties" in value:
        return f"object of {_http_type(value['additionalProperties'])}"
    return "time" if value.get("format") == "date-time" else str(value.get("type", "anything"))
