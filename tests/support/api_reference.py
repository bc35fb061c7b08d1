"""The reference of every public Python name, made from signatures and docstrings.

`python -m tests.support.api_reference` writes docs/reference/api-names.md anew; a test compares.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import wevent.errors
from tests.support.json_reference import attributes_of
from wevent.core.settings import kinds

TARGET = Path(__file__).parents[2] / "docs/reference/api-names.md"
MODULES = (
    "wevent",
    "wevent.local",
    "wevent.client",
    "wevent.experiments",
    "wevent.checks",
    "wevent.spark",
    "wevent.errors",
)
_INTRODUCTION = """# Every public name

Made from the signatures and docstrings of the code by `python -m tests.support.api_reference`; a test compares, and
looks for every public name. [Python API](api.md) says what belongs together, [specification](specification.md) what
"spec 6" means. Names that are not here are internal and may change.
"""
_SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises")
_SIMPLE = (int, float, str, bool, type(None), tuple, bytes)


def page() -> str:
    """The whole page."""
    described: set[int] = set()
    parts = [_INTRODUCTION]
    for module in MODULES:
        parts += _module(module, described)
    return "\n".join(parts)


def public_names() -> list[tuple[str, str]]:
    """Every module and public name that people import."""
    return [(module, name) for module in MODULES for name in _names(_found(module))]


def title_of(module: str, name: str) -> str:
    """How a name is called on the page."""
    return name if module == "wevent" else f"{module.removeprefix('wevent.')}.{name}"


def _module(name: str, described: set[int]) -> list[str]:
    module = _found(name)
    parts = [f"## `{name}`", "", _prose(_first_part(module)), ""]
    elsewhere = []
    for short in _names(module):
        thing = getattr(module, short)
        if id(thing) in described:
            elsewhere.append(f"`{short}`")
        elif not isinstance(thing, types.ModuleType):
            described.add(id(thing))
            parts += _thing(title_of(name, short), thing)
    return [*parts, *([f"Also here, and described above: {', '.join(elsewhere)}.", ""] if elsewhere else [])]


def _found(name: str) -> types.ModuleType:
    return wevent.local if name == "wevent.local" else importlib.import_module(name)


def _names(module: types.ModuleType) -> list[str]:
    if module is wevent.errors:
        return [
            name
            for name, thing in vars(module).items()
            if isinstance(thing, type) and not name.startswith("_") and thing.__module__ == module.__name__
        ]
    return list(module.__all__)


def _thing(title: str, thing: Any) -> list[str]:
    parts = [f"### `{title}`", ""]
    call = _call(title, thing)
    if call:
        parts += ["```text", call, "```", ""]
    if isinstance(thing, type) or callable(thing):
        parts += _docs(thing)
        if thing is wevent.RunOptions:
            parts += ["**Attributes**", "", *(f"- `{name}`: {kind.help}" for name, kind in kinds(thing).items()), ""]
    else:
        parts += [f"A mapping with the keys {', '.join(f'`{key}`' for key in thing)}.", ""]
    if isinstance(thing, type):
        members = list(_members(thing))
        short = [_short(name, member) for name, member in members if not _is_method(member)]
        parts += [*short, ""] if short else []
        for name, member in members:
            if _is_method(member):
                parts += _method(f"{title}.{name}", _inner(member))
    return parts


def _call(title: str, thing: Any) -> str:
    """How it is called; nothing for what is not called: protocols, words, and errors that the library raises."""
    if isinstance(thing, type):
        told = issubclass(thing, wevent.errors.WeventError) and thing is not wevent.errors.WeventError
        if told or issubclass(thing, enum.Enum) or getattr(thing, "_is_protocol", False):
            return ""
    elif not callable(thing):
        return ""
    return title + _signature(thing)


def _signature(thing: Any) -> str:
    """Parameters with what they take and their defaults, the same in every version of Python."""
    shown, star = [], False
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
        kind = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        shown.append(text + kind + (default if kind else default.replace(" ", "")))
    returned = inspect.signature(thing).return_annotation
    end = ")" if isinstance(thing, type) or returned is inspect.Signature.empty else f") -> {_type(returned)}"
    line = f"({', '.join(shown)}{end}"
    return line if len(line) < 110 else "(\n    " + ",\n    ".join(shown) + f",\n{end}"


def _type(annotation: Any) -> str:
    annotation = getattr(annotation, "__forward_arg__", annotation)
    annotation = annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)


def _default(value: Any) -> str:
    return repr(value) if isinstance(value, _SIMPLE) and len(repr(value)) < 40 else "…"


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of its own, in the order of the code; of words, the words."""
    if issubclass(kind, enum.Enum):
        yield from ((word.name, word) for word in kind)
        return
    for name, member in vars(kind).items():
        if name.startswith("_") or not _documented(member):
            continue
        yield name, member


def _inner(member: Any) -> Any:
    return member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def _is_method(member: Any) -> bool:
    return isinstance(_inner(member), types.FunctionType)


def _documented(member: Any) -> bool:
    inner = _inner(member)
    return isinstance(inner, (types.FunctionType, property, functools.cached_property)) and bool(inner.__doc__)


def _short(name: str, member: Any) -> str:
    """A property, or a word of several."""
    if isinstance(member, enum.Enum):
        return f"- `{name}`: `{member.value!r}`"
    return f"- `.{name}`: {_one_line(inspect.cleandoc(member.__doc__))}"


def _method(title: str, function: types.FunctionType) -> list[str]:
    return [f"#### `{title}()`", "", "```text", title + _signature(function), "```", "", *_docs(function)]


def _docs(thing: Any) -> list[str]:
    """A docstring as Markdown: prose, then its sections as lists, then its example."""
    text = inspect.cleandoc(thing.__doc__ or "")
    text, _, example = _split_example(text)
    pieces = re.split(rf"^({'|'.join(_SECTIONS)}):\n", text, flags=re.MULTILINE)
    parts = [_prose(pieces[0]), ""]
    if isinstance(thing, type) and issubclass(thing, msgspec.Struct) and "Attributes" not in pieces:
        lines = [f"- `{name}`: {text}" for name, text in attributes_of(thing).items() if name]
        parts += ["**Attributes**", "", *lines, ""] if lines else []
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        parts += [f"**{name}**", "", *_section(name, body), ""]
    if example:
        parts += ["```text", example, "```", ""]
    return parts


def _split_example(text: str) -> tuple[str, str, str]:
    place = text.find(">>> ")
    return (text, "", "") if place < 0 else (text[:place], ">>> ", text[place:].strip())


def _section(name: str, body: str) -> list[str]:
    """A list of what a section explains one by one; a paragraph of what it says at once."""
    entries = re.split(r"\n(?= {4}\S)", "\n" + body.rstrip())[1:]
    if name in ("Returns", "Yields") or not all(re.match(r" {4}[\w*, ]+:", entry) for entry in entries):
        return [_prose(inspect.cleandoc(body))]
    lines = []
    for entry in entries:
        names, _, meaning = entry.strip().partition(":")
        lines.append(f"- {', '.join(f'`{one}`' for one in names.split(', '))}: {_one_line(meaning)}")
    return lines


def _prose(text: str) -> str:
    return "\n\n".join(
        _one_line(part) if not part.lstrip().startswith("- ") else part for part in text.split("\n\n")
    ).strip()


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _first_part(module: types.ModuleType) -> str:
    return _split_example(inspect.cleandoc(module.__doc__ or ""))[0]


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
