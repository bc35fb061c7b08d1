"""The commands by name, each in a file of its own that is imported when it runs; and their exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from wevent import __version__
from wevent.cli.commands import SuggestingGroup
from wevent.cli.interrupts import INTERRUPTED, interrupted_at_once
from wevent.cli.loudness import say_how_loud
from wevent.cli.mistakes import check_text, of_the_system
from wevent.cli.standard_output import guarded
from wevent.errors import StorageFailed, WeventError

TEMPORARY = 75
"""Exit code of a fault that may pass without a person (EX_TEMPFAIL)."""

_SECTIONS = {
    "Publish": {
        "init": "Create a configuration, from an example or from your own events.",
        "check": "Validate settings and inputs without publishing.",
        "publish": "Publish files or a live stream from standard input.",
        "serve": "Publish events received over HTTP and serve the releases.",
    },
    "Inspect": {
        "status": "Show progress and remaining budgets.",
        "releases": "Print or export releases.",
        "plot": "Draw releases as a picture or an offline page.",
        "levels": "List privacy levels and how many users chose each.",
    },
    "Users and access": {
        "users": "Manage registered users and their requirements.",
        "token": "Manage access tokens and personal links.",
    },
    "Journals": {
        "verify": "Verify that no window of a journal exceeds its epsilon.",
        "backup": "Copy a journal while it is in use.",
        "restore": "Replace a damaged or lost journal with a backup.",
        "doctor": "Check that this machine can publish.",
    },
    "Mechanisms": {
        "mechanisms": "List mechanisms.",
        "compare": "Compare mechanisms on a stream with known truth.",
        "plan": "Estimate the error before you deploy.",
        "audit": "Test whether a mechanism keeps its guarantee.",
        "demo": "Compare all mechanisms on a synthetic city.",
        "reproduce": "Reproduce the experiments of the paper.",
    },
}
_COMMANDS = {name: text for section in _SECTIONS.values() for name, text in section.items()}


class _LazyGroup(SuggestingGroup):
    """Group that imports a command when it is used, so that `wevent --help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        with interrupted_at_once():
            command: click.Command = importlib.import_module(f"wevent.cli.{cmd_name}").command
        return say_how_loud(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="wevent")
def cli() -> None:
    """Publish histograms of user event streams with personalised differential privacy.

    Exit codes: 0 success, 1 finding, 2 operator action needed, 3 audit without a conclusion, 75 temporary failure,
    130 interrupted.

    Tab completion: eval "$(_WEVENT_COMPLETE=bash_source wevent)", or zsh_source, or fish_source.
    """


say_how_loud(cli)


def run(arguments: Sequence[str] | None) -> int:
    """Run a command; its exit code. A user's mistake is one sentence and exit code 2, a fault that may pass 75."""
    try:
        return guarded(lambda: _run(arguments))
    except WeventError as error:
        click.echo(f"Error: {error}", err=True)
        return TEMPORARY if isinstance(error, StorageFailed) and error.passing else 2


def _run(arguments: Sequence[str] | None) -> int:
    """The exit code of a command: what click would end the process with, but never 1, which means a finding."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    check_text(given)
    try:
        code = cli.main(args=given, prog_name="wevent", standalone_mode=False)
        return int(code or 0)
    except SystemExit as ended:
        return int(ended.code or 0)
    except click.ClickException as error:
        error.show()
        return 2
    except OSError as error:
        raise of_the_system(error) from None
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
