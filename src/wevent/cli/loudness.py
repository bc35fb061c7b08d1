"""How much a command says: `--quiet` and `--verbose`, before the command's name or behind it."""

from __future__ import annotations

import logging
from typing import Any

import click

_QUIET, _VERBOSE = "wevent.quiet", "wevent.verbose"
_LEVELS = {0: "warning", 1: "info", 2: "debug"}
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def say_how_loud(command: click.Command) -> click.Command:
    """Give a command, and all commands in it, the two options; once."""
    known = {name for parameter in command.params for name in parameter.opts}
    if "--quiet" not in known:
        command.params += [
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_note,
                help="Say only what was asked for, warnings and errors: no progress, no remarks.",
            ),
            click.Option(
                ["-v", "--verbose"],
                count=True,
                expose_value=False,
                callback=_note,
                help="Log more to standard error; -vv even more.",
            ),
        ]
    if isinstance(command, click.Group):
        for one in command.commands.values():
            say_how_loud(one)
    return command


def is_quiet() -> bool:
    """Whether the command that runs was told to be quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def log_to_standard_error(level: str | None = None) -> None:
    """Log from here on, as much as the command was told.

    Args:
        level: said by name (`--log`), which wins over `--verbose`; None: not said.
    """
    context = click.get_current_context(silent=True)
    told = 0 if context is None else int(context.meta.get(_VERBOSE, 0))
    logging.basicConfig(level=(level or _LEVELS[min(told, 2)]).upper(), format=_FORMAT, force=True)


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if not value:
        return
    context.meta[_QUIET if parameter.name == "quiet" else _VERBOSE] = value
    if _QUIET in context.meta and _VERBOSE in context.meta:
        raise click.UsageError("--quiet and --verbose exclude each other. Remove one.", context)
    if _VERBOSE in context.meta:
        log_to_standard_error()
