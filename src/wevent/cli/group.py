"""The commands by name, each in a file of its own that is imported when it runs; and their exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from wevent import __version__
from wevent.cli.commands import SuggestingGroup
from wevent.cli.interrupts import INTERRUPTED, interrupted_at_once
from wevent.cli.standard_output import guarded, say_how_loud
from wevent.errors import InvalidOption, StorageFailed, WeventError, may_pass

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


_SHOWN = 60  # characters of a path
_CIRCUMSTANCES = {
    errno.ENAMETOOLONG: "Use a shorter name.",
    errno.ELOOP: "Remove the link that leads to itself.",
    errno.ENOTDIR: "Check the path: a part of it is a file.",
    errno.EACCES: "Check the permissions.",
    errno.EPERM: "Check the permissions.",
    errno.EROFS: "Choose a place that can be written.",
    errno.ENOSPC: "Make room and run the same command again.",
    errno.EDQUOT: "Make room and run the same command again.",
    errno.EIO: "Check the disk.",
    errno.EMFILE: "Raise the limit of open files.",
    errno.ENFILE: "Close other programs.",
}
"""Errors of a file that no mistake in the program causes, and what to do; any other is one, and gets a traceback."""


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse arguments, and a working folder, that are not UTF-8: they could be stored nowhere.

    Raises:
        InvalidOption: saying which one.
    """
    texts = {f"argument {number}": argument for number, argument in enumerate(arguments, 1)}
    with suppress(OSError):  # it was removed
        texts["the path of the working folder"] = os.getcwd()
    for name, text in texts.items():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidOption(
                f"Not UTF-8: {name}.",
                "Write it in UTF-8, and rename the file; nothing was read or written.",
                option=name,
            ) from None


def _system_error(error: OSError) -> WeventError:
    """Return the error of the operating system for a file, or for a missing working folder, in one sentence.

    Raises:
        OSError: the error itself, if it is not of a file or may come of a mistake in the program.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        fix = "Change to an existing folder and run the same command again."
        return StorageFailed("The working folder was removed.", fix, path=".")
    if error.filename is None or error.errno not in _CIRCUMSTANCES:
        raise error
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else str(error.filename)
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    problem = f"Cannot use {shown!r}: {(error.strerror or 'unknown error').lower()}."
    return StorageFailed(problem, _CIRCUMSTANCES[error.errno], path=path, passing=may_pass(error))


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
    """Return the exit code of a command: that of click, but never 1, which means a finding."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _check_text(given)
    try:
        code = cli.main(args=given, prog_name="wevent", standalone_mode=False)
        return int(code or 0)
    except SystemExit as ended:
        return int(ended.code or 0)
    except click.ClickException as error:
        error.show()
        return 2
    except OSError as error:
        raise _system_error(error) from None
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
