"""Tables for people: as wide as the screen at most, and never a number cut off."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import click
from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text, TextType

from wevent.cli.plain_signs import as_shown
from wevent.cli.screen import has_width, results

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
    """A table whose first columns are words, then numbers, and at the end sentences, which may take several lines."""
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in prose:
        table.add_column(heading)
    return table


def print_table(table: Table) -> None:
    """In the width of the screen; where it is too wide, closer together, then in parts, each with the first words."""
    console = results()
    layout = _Layout(table, console.width, console.encoding)
    for part in layout.parts():
        console.print(part)
    if layout.is_split and table.caption:
        console.print(layout.shown(table.caption), style="italic")


def print_entries(entries: Mapping[str, str]) -> None:
    """A line for every entry, its name first; where the screen is narrower, further lines below the text."""
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
        """The table, or several that have its columns, the first words in each."""
        for number, part in enumerate(self._split):
            title = None if number else self._table.title
            caption = None if self.is_split else self._table.caption
            yield self._part([*self._words, *part], title, caption)

    @property
    def is_split(self) -> bool:
        """Whether there are several."""
        return len(self._split) > 1

    def shown(self, cell: object) -> str:
        """Text as the screen can show it."""
        return as_shown(str(cell), self._encoding)

    def _fold_words(self) -> None:
        """Where words leave no room for the widest number, they share what is left."""
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
