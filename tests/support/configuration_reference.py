"""The table of every key of a configuration, made from the declaration of settings and from what a journal pins.

`python -m tests.support.configuration_reference` writes the end of docs/reference/configuration.md anew; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from wevent.cli.group import cli
from wevent.core.settings import Kind, kinds
from wevent.journal.terms import EPOCHAL, PERMANENT
from wevent.settings import SETTINGS, ServiceSettings

TARGET = Path(__file__).parents[2] / "docs/reference/configuration.md"
MARKER = "<!-- From here on made from the code: python -m tests.support.configuration_reference -->\n"
_PINNED_AS = {"slot": "length_us", "start": "origin_us"}


def tables() -> str:
    """Everything behind the marker."""
    rows = [f"| `{key}` | {_option(key)} | {_facts(key, SETTINGS)} | {_pinned(key)} |" for key in SETTINGS]
    service = kinds(ServiceSettings)
    return "\n".join(
        [
            MARKER,
            "## All keys\n",
            "What the code takes, what holds if nothing is said, and what a journal pins. What a key means is above.\n",
            "| key | option | values | if not said | a journal pins it |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "In `[service]`, which no journal pins:\n",
            "| key | values | if not said |",
            "|---|---|---|",
            *(f"| `{key}` | {_facts(key, service)} |" for key in service),
            "",
        ]
    )


def _option(key: str) -> str:
    command = cli.get_command(click.Context(cli), "publish")
    assert command is not None
    flags = [one for one in command.params if isinstance(one, click.Option) and one.name == key]
    names = [name for flag in flags for name in (*flag.opts, *flag.secondary_opts)]
    return "EVENTS" if key == "inputs" else ", ".join(f"`{name}`" for name in names)


def _facts(key: str, declared: Mapping[str, Kind]) -> str:
    """Values and default, in the words of the declaration."""
    kind = declared[key]
    values = "a file, or dates" if key == "calendar" else str(kind).replace("True or False", "true or false")
    values = re.sub(r"'([^']*)'", r"`\1`", values)
    values = values.replace(", ".join(kind.choices), ", ".join(f"`{word}`" for word in kind.choices), 1)
    if key in ("inputs", "cells", "slot"):
        return f"{values} | must be said"
    plain = "`" in kind.shown or " " in kind.shown
    default = kind.shown if plain else f"`{kind.shown}`" if kind.shown else "not set"
    return f"{values} | {default}"


def _pinned(key: str) -> str:
    name = _PINNED_AS.get(key, key)
    if name in PERMANENT:
        return "for life"
    return "until a new epoch" if name in EPOCHAL else ""


if __name__ == "__main__":
    TARGET.write_text(TARGET.read_text(encoding="utf-8").partition(MARKER)[0] + tables(), encoding="utf-8")
