"""The table of every key of a configuration, made from what the code takes, pins and says of it.

`python -m tests.support.configuration_reference` writes the end of docs/reference/configuration.md anew; a test compares.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from wevent.cli.group import cli
from wevent.core.settings import option_kinds
from wevent.journal.terms import EPOCHAL, PERMANENT
from wevent.publishing import configuration, service_table
from wevent.publishing.configuration import KEYS, Settings

TARGET = Path(__file__).parents[2] / "docs/reference/configuration.md"
MARKER = "<!-- From here on made from the code: python -m tests.support.configuration_reference -->\n"
_PINNED_AS = {"slot": "length_us", "start": "origin_us"}
_WORDS = {True: "`true`", False: "`false`", None: "not set", (): "not set"}


def tables() -> str:
    """Everything behind the marker."""
    rows = [f"| `{key}` | {_option(key)} | {_values(key)} | {_default(key)} | {_pinned(key)} |" for key in KEYS]
    numbers = [
        f"| `{key}` | a whole number from {least:,} to {most:,} | {default:,} |"
        for key, (default, least, most) in service_table.NUMBERS.items()
    ]
    others = [f"| `{key}` | {_of_service(key)} |" for key in service_table.KEYS if key not in service_table.NUMBERS]
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
            *others,
            *numbers,
            "",
        ]
    )


def _flags() -> dict[str, click.Option]:
    command = cli.get_command(click.Context(cli), "publish")
    assert command is not None
    return {str(one.name): one for one in command.params if isinstance(one, click.Option)}


def _option(key: str) -> str:
    flag = _flags().get(key)
    if flag is None:
        return "EVENTS" if key == "inputs" else ""
    return ", ".join(f"`{name}`" for name in (*flag.opts, *flag.secondary_opts))


def _values(key: str) -> str:
    if key in option_kinds() and key != "calendar":
        kind = option_kinds()[key]
        words = str(kind).replace("True or False", "true or false")
        return words.replace(", ".join(kind.choices), ", ".join(f"`{word}`" for word in kind.choices), 1)
    if key in configuration._CHOICES:
        return "one of " + ", ".join(f"`{word}`" for word in configuration._CHOICES[key])
    if key in configuration._LEAST:
        return f"a whole number, at least {configuration._LEAST[key]}"
    if key in configuration._FLAGS:
        return "true or false"
    if key in configuration._TABLES:
        return "a table"
    return {
        "inputs": "file names and globs, or `-`",
        "cells": "a number, labels, or a file",
        "slot": "a length",
        "start": "a time, or `auto`",
        "end": "a time",
        "grace": "a length",
        "due": "a length",
        "calendar": "a file, or dates",
        "timezone": "`UTC`, or an offset",
    }.get(key, "text")


def _default(key: str) -> str:
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    if key in ("inputs", "cells", "slot"):
        return "must be said"
    if key.endswith("_column") and key != "slot_column":
        return f"`{key.removesuffix('_column')}`"
    field = fields.get(key)
    value: Any = None if field is None or field.default is dataclasses.MISSING else field.default
    if key == "grace":
        return "`0s`"
    return _WORDS[value] if value is None or value == () or isinstance(value, bool) else f"`{value}`"


def _pinned(key: str) -> str:
    name = _PINNED_AS.get(key, key)
    if name in PERMANENT:
        return "for life"
    return "until a new epoch" if name in EPOCHAL else ""


def _of_service(key: str) -> str:
    return {
        "listen": f"HOST:PORT | `{service_table.LISTEN}`",
        "public": "true or false | `false`",
        "tokens": "a file | the journal's name with `.tokens` behind",
        "url": "an address | `http://` and `listen`",
    }[key]


if __name__ == "__main__":
    TARGET.write_text(TARGET.read_text(encoding="utf-8").partition(MARKER)[0] + tables(), encoding="utf-8")
