"""A bar on standard error for commands that take a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Show = Callable[[str, int, int], object]


@contextmanager
def progress_bar(console: Console, unit: str, *, stays: bool = False) -> Iterator[Show]:
    """Call what it yields with what is at work, how many are done and how many there are; it `stays` at the end or not."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=not stays) as progress:
        task = progress.add_task("", total=None)
        yield lambda label, done, total: progress.update(task, description=label, completed=done, total=total)
