"""The command line: one file per command, each thin; nothing is imported before the command is known."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from wevent.cli.interrupts import interrupted_at_once, stopped_at_once


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and end the process."""
    with stopped_at_once(sys.argv[1:] if arguments is None else arguments):
        with interrupted_at_once():
            from wevent.cli.group import run
        sys.exit(run(arguments))
