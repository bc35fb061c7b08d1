"""Every command and option has a help text; the reference page is generated from them."""

from __future__ import annotations

import click

from wevent.cli.group import cli


def test_every_command_and_option_has_help() -> None:
    assert list(_without_help(cli, click.Context(cli, info_name="wevent"))) == []


def _without_help(command: click.Command, context: click.Context) -> list[str]:
    missing = [] if command.help else [context.command_path]
    options = [one for one in command.params if isinstance(one, click.Option)]
    missing += [f"{context.command_path} {option.opts[0]}" for option in options if not option.help]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            missing += _without_help(inner, click.Context(inner, info_name=name, parent=context))
    return missing
