"""Tables for people, in a width that does not cut numbers off in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

_PIPE_WIDTH = 110


def new_table(title: str, words: Sequence[str], numbers: Sequence[str], *, caption: str | None = None) -> Table:
    """A table whose first columns are words and whose last ones are numbers."""
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """To the terminal in its width, to a pipe or file in one that shows every column."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PIPE_WIDTH)
    console.print(table)
