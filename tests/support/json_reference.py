"""The reference of what commands print with `--json`, made from the classes they print.

`python -m tests.support.json_reference` writes docs/reference/json.md anew; a test compares.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from tests.docs.anchors import heading_anchor
from wevent.cli.answers import ANSWERS

TARGET = Path(__file__).parents[2] / "docs/reference/json.md"
_INTRODUCTION = """# JSON of the commands

With `--json` a command prints one object with everything that the screen says, in plain ASCII, and nothing else on
standard output; `publish` prints one line, when the run ends. Exit codes are the same. What is not known is `null`.
This page is made from the classes that are printed (`src/wevent/cli/answers/`), and the real output of every command
is held to them by `tests/unit/cli/test_answers.py`. A JSON schema of each:
`msgspec.json.schema(wevent.cli.answers.ANSWERS["status"])`. Fields may be added; one that goes is in the changelog.

`wevent releases` and `publish --out` write releases themselves, one JSON object per line; `status --statement` prints
the privacy statement.
"""


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    seen: set[Any] = set()
    later: list[Any] = []
    for kind in ANSWERS.values():
        parts.append(_section(kind, later))
        seen.add(kind)
    parts.append("## Parts\n\nObjects inside the others.\n")
    while later:
        kind = later.pop(0)
        if kind not in seen:
            seen.add(kind)
            parts.append(_section(kind, later).replace("## ", "### ", 1))
    return "\n".join(parts)


def _section(kind: Any, later: list[Any]) -> str:
    about = {**attributes_of(kind)}
    first = (inspect.getdoc(kind) or "").splitlines()[0]
    title = _title(kind)
    text = first if title == kind.__name__ else first.split("`", 2)[2].lstrip(",;. ")
    rows = [
        f"| `{field.encode_name}` | {_type(field.type, later)} | {about[field.name]} |"
        for field in msgspec.structs.fields(kind)
    ]
    head = [f"## `{title}`", "", *([text[0].upper() + text[1:], ""] if text else [])]
    return "\n".join([*head, "| key | value | meaning |", "|---|---|---|", *rows, ""])


def _title(kind: Any) -> str:
    """The command that answers so; of an object inside others its name."""
    command = re.match(r"`wevent (.*?) --json`", inspect.getdoc(kind) or "")
    return command[1] if command else str(kind.__name__)


def attributes_of(kind: Any) -> dict[str, str]:
    """What the attributes of a class and its bases are, from their docstrings and annotations."""
    found: dict[str, str] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items() if isinstance(kind, type) else ():
        for meta in getattr(hint, "__metadata__", ()):
            found[name] = meta.description[0].lower() + meta.description[1:]
    for one in reversed(getattr(kind, "__mro__", ())):
        entries = (inspect.getdoc(one) or "").partition("Attributes:\n")[2]
        for entry in re.split(r"\n(?= {4}\w)", entries):
            names, _, text = entry.strip().partition(":")
            for name in names.split(", "):
                found[name] = re.sub(r"\s+", " ", text).strip()
    return found


def _type(kind: Any, later: list[Any]) -> str:
    args = getattr(kind, "__args__", ())
    names = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): "null"}
    if kind in names:
        return names[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        later.append(kind)
        return f"[{kind.__name__}](#{heading_anchor(_title(kind))})"
    if getattr(kind, "__origin__", None) is list:
        return f"array of {_type(args[0], later)}"
    if getattr(kind, "__origin__", None) is dict:
        return f"object, name to {_type(args[1], later)}"
    return " or ".join(_type(one, later) for one in args)


if __name__ == "__main__":
    TARGET.write_text(page())
