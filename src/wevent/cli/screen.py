"""Consoles for people: standard output for results, standard error for remarks.

Nothing is coloured with NO_COLOR, and no control code is written where no terminal is; rich sees to that.
"""

from __future__ import annotations

import os

from rich.console import Console

from wevent.cli.loudness import is_quiet

_PIPE_WIDTH = 110


def remarks(*, silent: bool = False) -> Console:
    """Standard error, for progress and remarks beside the result; nothing with --quiet.

    Args:
        silent: whether nothing is said anyway, as beside JSON.
    """
    return Console(stderr=True, quiet=silent or is_quiet(), highlight=False)


def has_width() -> bool:
    """Whether standard output has a width: a terminal's, or $COLUMNS for a pipe."""
    return Console().is_terminal or os.environ.get("COLUMNS", "").isdecimal()


def results() -> Console:
    """Standard output: a terminal in its width; a pipe or file in $COLUMNS, or in one that shows most tables whole."""
    return Console(width=None if has_width() else _PIPE_WIDTH, highlight=False)
