"""The commands by name, each in a file of its own that is imported when it runs; and how each of them ends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from wevent import __version__
from wevent.cli.interrupts import INTERRUPTED, interrupted_at_once
from wevent.cli.loudness import say_how_loud
from wevent.cli.mistakes import check_text, of_the_system
from wevent.cli.standard_output import guarded
from wevent.cli.suggesting import SuggestingGroup
from wevent.errors import StorageFailed, WeventError

TEMPORARY = 75
"""Exit code of a fault that may pass without a person (EX_TEMPFAIL)."""

_COMMANDS = {
    "compare": "Compare mechanisms on a stream whose truth is known.",
    "publish": "Publish a stream of events: files or live lines in, private histograms out.",
    "serve": "Publish what is sent over HTTP, and serve the releases and the page.",
    "check": "Say what publishing would meet, before anything is spent.",
    "status": "Show how far a journal is and what budget is left.",
    "releases": "Print or export the releases of a journal.",
    "plot": "Draw the releases of a journal or a file: a picture, or a page that opens offline.",
    "verify": "Re-check every window of every class of a journal.",
    "audit": "Test whether a mechanism keeps its guarantee.",
    "users": "List and change who is registered with which requirement.",
    "token": "Make, list and revoke the service's tokens and people's own links.",
    "levels": "Show which levels are offered, what they protect, and how many hold them.",
    "backup": "Copy a journal while it is in use.",
    "restore": "Put a backup back in place of a journal that is damaged or lost.",
    "doctor": "Check that this machine can publish.",
    "demo": "Compare all mechanisms on an invented city.",
    "init": "Write a commented example that can be published at once.",
    "mechanisms": "List the mechanisms.",
    "plan": "Say what error to expect before anything is deployed.",
    "reproduce": "Run the experiments of the paper again, with a report.",
}


class _LazyGroup(SuggestingGroup):
    """Knows its commands by name and imports them one at a time: `wevent --help` stays quick."""

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
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="wevent")
def cli() -> None:
    """Live histograms of user event streams under personalised w-event differential privacy.

    Exit codes: 0 fine, 1 a finding, 2 a fault that needs a person, 3 an audit that cannot say, 75 a fault that may pass
    (a full disk, a database that is away: run the same command again), 130 interrupted.

    Every command has --help, --quiet and --verbose; those that print facts have --json. The tab key completes after
    eval "$(_WEVENT_COMPLETE=bash_source wevent)" in bash; zsh_source and fish_source for other shells.
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
