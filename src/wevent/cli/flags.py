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
            switch: dict[str, Any] = {"is_flag": True, "default": None} if kind.type is bool else {}
            if kind.type is int:
                switch = {"metavar": "INTEGER"}
            elif kind.choices:
                switch = {"type": Word(*kind.choices, checked=False)}
            elif name == "mechanism":
                switch = {"type": MECHANISM}
            command = click.option(f"--{name.replace('_', '-')}", help=kind.help, **switch)(command)
        return command

    return decorate
