"""A bar on standard error for commands that take a while; a line a minute where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Show = Callable[[str, int, int | None], object]
_EVERY_S = 60.0  # a line


@contextmanager
def progress_bar(
    console: Console,
    unit: str,
    *,
    stays: bool = False,
    usual: float = 0.0,
    now_s: Callable[[], float] = time.monotonic,
) -> Iterator[Show]:
    """Call what it yields with what is at work, how many are done and how many there are (None: nobody knows).

    Args:
        console: of standard error; one that is no terminal gets a line a minute.
        unit: what is counted.
        stays: whether the bar is left there at the end.
        usual: how many a minute nobody needs to be told of: those of a live stream that keeps up.
        now_s: the clock.
    """
    if not console.is_terminal:
        yield _lines(console, unit, usual, now_s)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}, {{task.fields[rate]}}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    begun = now_s()

    def show(label: str, done: int, total: int | None) -> None:
        nonlocal begun
        if not done:
            begun = now_s()
        rate = f"{done / max(now_s() - begun, 1e-9):,.3g}"
        progress.update(task, description=label, completed=done, total=total, rate=rate)

    with Progress(*columns, console=console, transient=not stays, disable=console.quiet) as progress:
        task = progress.add_task("", total=None, rate="-")
        yield show


def _lines(console: Console, unit: str, usual: float, now_s: Callable[[], float]) -> Show:
    """What is done, now and then: for logs."""
    said_s, before = now_s(), 0

    def show(label: str, done: int, total: int | None) -> None:
        nonlocal said_s, before
        minutes = (now_s() - said_s) / _EVERY_S
        if minutes < 1.0:
            return
        if done - before > 1.5 * usual * minutes:
            of = "" if total is None else f" of {total:,}"
            text = f"{label}: {done:,}{of} {unit} done" if label else f"{done:,}{of} {unit} done"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        said_s, before = now_s(), done

    return show
