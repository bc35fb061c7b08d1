"""Flags for the options of a stream, made from the list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from wevent.cli.parameter_types import MECHANISM, Word
from wevent.core.settings import option_kinds

Command = Callable[..., Any]


def option_flags(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """A flag for every option; values are text as the configuration file's, switches are None unless given."""

    def decorate(command: Command) -> Command:
        for name, kind in reversed(list(option_kinds().items())):
            if name in without:
                continue
            flag = f"--{name.replace('_', '-')}"
            kept: dict[str, Any] = {}
            if kind.type is bool:
                flag, kept = f"{flag}/--{kind.off}", {"default": None}
            elif kind.type is int:
                kept = {"metavar": "INTEGER"}
            elif kind.choices:
                kept = {"type": Word(*kind.choices, checked=False)}
            elif name == "mechanism":
                kept = {"type": MECHANISM}
            command = click.option(flag, help=kind.help, **kept)(command)
        return command

    return decorate
