"""The reference of every command and option, made from the commands themselves.

`python -m tests.support.cli_reference` writes the second half of docs/reference/cli.md anew; a test compares.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click

from wevent.cli.group import cli

TARGET = Path(__file__).parents[2] / "docs/reference/cli.md"
MARKER = "<!-- From here on made from the commands: python -m tests.support.cli_reference -->\n"
_EVERYWHERE = {"--help", "--quiet", "--verbose"}


def options_part() -> str:
    """Everything behind the marker."""
    context = click.Context(cli, info_name="wevent")
    parts = [MARKER]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        parts += _sections(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(parts)


def _sections(command: click.Command, context: click.Context, depth: int = 2) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"{'#' * depth} `{context.command_path}`", "", _text(command.help or ""), "", "```text", usage, "```", ""]
    options = [one for one in command.params if isinstance(one, click.Option) and _EVERYWHERE.isdisjoint(one.opts)]
    if options:
        lines += ["| option | what |", "|---|---|", *(_row(one, context) for one in options), ""]
    if command.epilog:
        lines += [re.sub(r"^Example: (.*)$", r"Example: `\1`", command.epilog), ""]
    sections = ["\n".join(lines)]
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            sections += _sections(inner, click.Context(inner, info_name=name, parent=context), depth + 1)
    return sections


def _text(help_text: str) -> str:
    """Paragraphs of a command's help; what is laid out by hand stays so."""
    paragraphs = inspect.cleandoc(help_text).split("\n\n")
    return "\n\n".join(
        "```text\n" + part.strip("\b\n") + "\n```" if part.startswith("\b") else part.replace("\n", " ")
        for part in paragraphs
    )


def _row(option: click.Option, context: click.Context) -> str:
    """Not as click shows it: versions of click differ, and this page must not."""
    names = ", ".join(option.opts) + "".join(f" / {name}" for name in option.secondary_opts)
    value = "" if option.is_flag else f" {_value(option)}"
    default = f" [default: {option.default}]" if option.show_default else ""
    required = " [required]" if option.required else ""
    text = " ".join((option.help or "").split())
    return f"| `{_escaped(names + value)}` | {_escaped(text + default + required)} |"


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    words = getattr(option.type, "known", None) or getattr(option.type, "choices", None)
    return f"[{'|'.join(words)}]" if words else option.type.name.split()[0].upper()


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(TARGET.read_text().partition(MARKER)[0] + options_part())
