"""Tables, progress and remarks for people: as wide as the screen at most, and never a number cut off.

Rich writes no colours with NO_COLOR, and no control codes where no terminal is.
"""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text, TextType

from wevent.cli.standard_output import as_shown, is_quiet
from wevent.streams.source import in_words

if TYPE_CHECKING:
    from wevent.publishing.loop import Summary
    from wevent.settings import Settings

_PIPE_WIDTH = 110


def remarks(*, silent: bool = False) -> Console:
    """Return standard error, for progress and remarks beside the result; empty with --quiet.

    Args:
        silent: whether nothing is said anyway, as beside JSON.
    """
    return Console(stderr=True, quiet=silent or is_quiet(), highlight=False)


def has_width() -> bool:
    """Return whether standard output has a width: a terminal's, or $COLUMNS for a pipe."""
    return Console().is_terminal or os.environ.get("COLUMNS", "").isdecimal()


def results() -> Console:
    """Return standard output in the width of the terminal, or $COLUMNS, or one that shows most tables whole."""
    return Console(width=None if has_width() else _PIPE_WIDTH, highlight=False)


_WIDE, _TIGHT = 3, 1  # columns between two columns
_EDGES = 2
_PLAIN_HEAD = Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True)
_LEAST = 8  # columns that words are folded into at worst


def new_table(
    title: str,
    words: Sequence[str],
    numbers: Sequence[str],
    *,
    prose: Sequence[str] = (),
    caption: str | None = None,
) -> Table:
    """Return a table whose first columns are words, then numbers, then sentences that may take several lines."""
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in prose:
        table.add_column(heading)
    return table


def print_table(table: Table) -> None:
    """Print a table; one that is too wide has its columns closer together, then is split, each part with the words."""
    console = results()
    layout = _Layout(table, console.width, console.encoding)
    for part in layout.parts():
        console.print(part)
    if layout.is_split and table.caption:
        console.print(layout.shown(table.caption), style="italic")


def print_entries(entries: Mapping[str, str]) -> None:
    """Print a line for every entry, its name first."""
    indent = max(map(len, entries)) + 2
    width = max(results().width - indent, _LEAST) if has_width() else None
    for name, text in entries.items():
        lines = textwrap.wrap(text, width, break_on_hyphens=False) if width is not None else [text]
        click.echo(f"{name:<{indent}}" + f"\n{'':<{indent}}".join(lines))


class _Layout:
    """How a table fits into a width.

    Args:
        table: as it was made.
        width: of the screen, in columns.
        encoding: of the screen: signs that it lacks are replaced before anything is measured.
    """

    def __init__(self, table: Table, width: int, encoding: str) -> None:
        self._table, self._width, self._encoding = table, width, encoding
        self._columns = table.columns
        self._cells = [[self.shown(cell) for cell in (column.header, *column.cells)] for column in table.columns]
        natural = [max(map(cell_len, cells)) for cells in self._cells]
        self._widths = [
            width if column.no_wrap else min(width, _LEAST)
            for width, column in zip(natural, self._columns, strict=True)
        ]
        self._gap = _WIDE
        if self._total(range(len(self._widths))) > width:
            self._gap = _TIGHT
        self._words = [place for place, one in enumerate(self._columns) if one.no_wrap and one.justify == "left"]
        self._others = [place for place in range(len(self._widths)) if place not in self._words]
        self._fold_words()
        self._split = self._parted()

    def parts(self) -> Iterator[Table]:
        """Yield the table, or several with some of its columns, the words in each."""
        for number, part in enumerate(self._split):
            title = None if number else self._table.title
            caption = None if self.is_split else self._table.caption
            yield self._part([*self._words, *part], title, caption)

    @property
    def is_split(self) -> bool:
        return len(self._split) > 1

    def shown(self, cell: object) -> str:
        """Return text as the screen can show it."""
        return as_shown(str(cell), self._encoding)

    def _fold_words(self) -> None:
        """Narrow the words where they leave no room for the widest number."""
        if not self._words or not self._others:
            return
        room = (
            self._width - self._total([max(self._others, key=self._widths.__getitem__)]) - self._gap * len(self._words)
        )
        if sum(self._widths[place] for place in self._words) > room:
            for place in self._words:
                self._widths[place] = max(min(self._widths[place], room // len(self._words)), _LEAST)

    def _part(self, chosen: list[int], title: TextType | None, caption: TextType | None) -> Table:
        made = Table(
            title=None if title is None else self.shown(title),
            caption=None if caption is None else self.shown(caption),
            box=SIMPLE_HEAD if self._encoding.startswith("utf") else _PLAIN_HEAD,
            pad_edge=False,
            padding=(0, (self._gap - 1) // 2),
        )
        for place in chosen:
            column, width = self._columns[place], self._widths[place]
            heading = Text(self._cells[place][0])
            most = width if column.no_wrap else None
            made.add_column(heading, justify=column.justify, overflow="fold", min_width=width, max_width=most)
        for row in zip(*(self._cells[place][1:] for place in chosen), strict=True):
            made.add_row(*map(Text, row))
        return made

    def _parted(self) -> list[list[int]]:
        parts: list[list[int]] = [[]]
        for place in self._others:
            if parts[-1] and self._total([*self._words, *parts[-1], place]) > self._width:
                parts.append([])
            parts[-1].append(place)
        return parts

    def _total(self, places: Sequence[int]) -> int:
        return _EDGES + sum(self._widths[place] for place in places) + self._gap * (len(places) - 1)


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
    """Return a callback that prints a line a minute, for logs."""
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


def say(console: Console, text: str) -> None:
    """Print a sentence without markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def report_run(console: Console, summary: Summary, settings: Settings) -> None:
    """Print the public result of a run; nothing here depends on events."""
    if summary.turns is not None:
        text = _of_replica(summary.turns, summary.last)
    elif summary.last < summary.first:
        text = f"Nothing new: slot {summary.last} was the last one." if summary.last else "No slot was published."
    elif summary.last == summary.first:
        text = f"Published slot {summary.last}."
    else:
        text = f"Published slots {summary.first} to {summary.last}."
    if summary.sent_again:
        text += f" {summary.sent_again} releases were missing in the output and were sent again."
    if summary.interrupted:
        text += f" Stopped as asked; everything is stored in {settings.journal}. Run the same command again to resume."
    say(console, text)


def _of_replica(turns: Sequence[tuple[int, int]], last: int) -> str:
    """Return the slots of one of several replicas, and the last slot of all."""
    if not turns:
        return f"Published no slot itself: slot {last} was the last one."
    spans = [f"{first} to {through}" for first, through in turns]
    text = f"Published slots {' and '.join(filter(None, (', '.join(spans[:-1]), spans[-1])))}."
    return text if last <= turns[-1][1] else f"{text[:-1]} as the writer, then stood by: slot {last} was the last one."


def report_private(console: Console, totals: dict[str, int], malformed: list[str]) -> None:
    """Print the one line that depends on events: totals of the whole run, for the operator. It is always printed."""
    counts = in_words(totals)
    where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
    text = f"Events not counted in this run (private: do not publish these numbers): {counts}{where}."
    say(console, text)
