"""A bar on standard error for commands that take a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Show = Callable[[str, int, int | None], object]


@contextmanager
def progress_bar(console: Console, unit: str, *, stays: bool = False) -> Iterator[Show]:
    """Call what it yields with what is at work, how many are done and how many there are (None: nobody knows).

    Args:
        console: of standard error; one that is no terminal gets nothing.
        unit: what is counted.
        stays: whether the bar is left there at the end.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}, {{task.fields[rate]}}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    begun = time.monotonic()

    def show(label: str, done: int, total: int | None) -> None:
        nonlocal begun
        if not done:
            begun = time.monotonic()
        rate = f"{done / max(time.monotonic() - begun, 1e-9):,.3g}"
        progress.update(task, description=label, completed=done, total=total, rate=rate)

    disabled = console.quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=not stays, disable=disabled) as progress:
        task = progress.add_task("", total=None, rate="-")
        yield show
