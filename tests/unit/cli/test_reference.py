"""docs/reference/cli.md knows every command and every option."""

from __future__ import annotations

import click

from tests.support.cli_reference import MARKER, TARGET, options_part
from wevent.cli.group import cli


def test_the_reference_is_made_from_the_commands() -> None:
    assert TARGET.read_text().partition(MARKER)[1:] == (MARKER, options_part().removeprefix(MARKER)), (
        "run python -m tests.support.cli_reference"
    )


def test_every_command_and_option_is_in_the_reference_with_a_word_about_it() -> None:
    page = TARGET.read_text()
    context = click.Context(cli, info_name="wevent")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert f"`wevent {name}`" in page
        within = command.commands.values() if isinstance(command, click.Group) else ()
        for one in (command, *within):
            assert one.help
            for parameter in one.params:
                if isinstance(parameter, click.Option):
                    assert parameter.help, f"wevent {name} {parameter.opts[0]}"
                    assert all(option in page for option in parameter.opts)


def test_the_page_says_how_to_switch_completion_on() -> None:
    page = TARGET.read_text()
    for shell in ("bash", "zsh", "fish"):
        assert f"_WEVENT_COMPLETE={shell}_source wevent" in page
