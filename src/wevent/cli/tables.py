"""Tables for people: numbers that fit, and a width that does not cut them off in a pipe."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

_PIPE_WIDTH = 110


def short(value: float, *, digits: int = 3) -> str:
    """A number with a few significant digits: 37,100 or 2.54e+08 or 0.0123."""
    if value != value:
        return "-"
    rounded = float(f"{value:.{digits - 1}e}")
    if 1e-3 <= abs(rounded) < 1e6:
        return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"
    return f"{value:.{digits - 1}e}" if rounded else "0"


def print_table(table: Table) -> None:
    """To the terminal in its width, to a pipe or file in one that shows every column."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PIPE_WIDTH)
    console.print(table)
