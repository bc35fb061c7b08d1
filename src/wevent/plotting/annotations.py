"""Headings, names at the ends of lines, dots with whiskers, axes of time."""

from __future__ import annotations

import datetime
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib.dates
import matplotlib.ticker
import numpy as np

from wevent.plotting.style import INK, PALE, SOFT, look_of

_LABEL_POINTS = 11.0  # from one name at the end of a line to the next
_TITLE_LETTERS, _FACT_LETTERS = 9.0, 13.5  # that fit in an inch


def heading(drawn: Any, title: str, *facts: str) -> None:
    """Write the title, which states the finding, and the facts below it."""
    width, height = drawn.get_size_inches()
    above = textwrap.wrap(title, int(width * _TITLE_LETTERS))
    below = [line for fact in facts for line in textwrap.wrap(fact, int(width * _FACT_LETTERS))]
    first = 0.13 + 0.21 * len(above)
    drawn.get_layout_engine().set(rect=(0.0, 0.0, 1.0, 1.0 - (first + 0.02 + 0.18 * len(below)) / height))
    drawn.text(0.1 / width, 1.0 - 0.1 / height, "\n".join(above), va="top", fontsize=12, fontweight="bold")
    at = 1.0 - first / height
    drawn.text(0.1 / width, at, "\n".join(below), va="top", fontsize=9, color=SOFT, linespacing=1.4)


class Ending(NamedTuple):
    """A name for the right end of a line."""

    height: float
    text: str
    colour: str
    bold: bool = False


def name_ends(drawn: Any, ends: Sequence[tuple[Any, Sequence[Ending]]]) -> None:
    """Write names beside the right ends of each axis's lines, apart from each other, with thin lines to the ends.

    Call it when everything else is drawn: it settles the layout and keeps the limits of the vertical axes.
    """
    for axis, _ in ends:
        axis.set_ylim(*axis.get_ylim())
    drawn.draw_without_rendering()
    for axis, endings in ends:
        gap = _LABEL_POINTS * drawn.dpi / 72 / axis.get_window_extent().height
        into = axis.transData + axis.transAxes.inverted()
        right = axis.get_xlim()[1]
        wanted = [min(max(float(into.transform((right, end.height))[1]), 0.0), 1.0) for end in endings]
        for ending, at, place in zip(endings, wanted, spread(wanted, gap), strict=True):
            axis.annotate(
                ending.text,
                xy=(1.0, at),
                xytext=(14, (place - at) * axis.get_window_extent().height * 72 / drawn.dpi),
                xycoords="axes fraction",
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                fontweight="bold" if ending.bold else "normal",
                color=INK,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": ending.colour,
                    "linewidth": 0.7,
                    "relpos": (0.0, 0.5),
                    "shrinkA": 1,
                    "shrinkB": 1,
                },
            )


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places as near to the wanted ones as a gap between neighbours allows, in the same order.

    >>> [round(place, 2) for place in spread([0.5, 0.5, 0.9], 0.1)]
    [0.45, 0.55, 0.9]
    """
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    groups: list[tuple[float, list[int]]] = []  # neighbours that touch: their middle and their numbers
    for number in order:
        middle, members = wanted[number], [number]
        while groups and middle - groups[-1][0] < gap * (len(members) + len(groups[-1][1])) / 2:
            _, before = groups.pop()
            members = before + members
            middle = sum(wanted[member] for member in members) / len(members)
        groups.append((middle, members))
    places = [0.0] * len(wanted)
    for middle, members in groups:
        for place, member in enumerate(members):
            places[member] = middle + gap * (place - (len(members) - 1) / 2)
    return places


class Dot(NamedTuple):
    """A dot with a whisker: a name, a value with the ends of its interval (NaN: none), and its look."""

    name: str
    value: float
    low: float
    high: float
    colour: str
    marker: str = "o"
    filled: bool = True
    text: str = ""


def mechanism_dot(label: str, value: float, low: float, high: float, text: str) -> Dot:
    """Return the dot of a mechanism."""
    look = look_of(label)
    return Dot(label, value, low, high, look.colour, look.marker, look.filled, text)


def draw_dots(axis: Any, rows: Sequence[Dot], *, logarithmic: bool, size: float = 6.5) -> None:
    """Draw rows from top to bottom: a dot, a whisker over its interval, the figure at the right."""
    if logarithmic:
        axis.set_xscale("log")
    values = [row.value for row in rows]
    for place, row in enumerate(rows):
        axis.axhline(place, color=PALE, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        if not math.isnan(row.low):
            floor = min(value for value in values if value > 0) / 3 if logarithmic and max(values) > 0 else -math.inf
            axis.plot([max(row.low, floor), row.high], [place, place], color=row.colour, linewidth=2.2, zorder=2)
        axis.plot(
            [row.value],
            [place],
            marker=row.marker,
            markersize=size,
            color=row.colour,
            markerfacecolor=row.colour if row.filled else "white",
            markeredgewidth=1.6,
            zorder=3,
        )
        axis.annotate(
            row.text,
            xy=(1.0, place),
            xytext=(6, 0),
            xycoords=axis.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=INK,
            annotation_clip=False,
        )
    axis.set_yticks(range(len(rows)), [row.name for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


def plain_numbers(axis: Any, write: Callable[[float], str]) -> None:
    """Format the numbers of an axis; none between the marked places."""
    formatter = matplotlib.ticker.FuncFormatter(lambda value, _: write(value))
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def slot_places(slots: int, start: datetime.datetime | None, length: datetime.timedelta | None) -> list[Any]:
    """Return the starts of slots: times; days from the first slot on if only their length is known; else numbers from 1."""
    if length is None:
        return [float(slot) for slot in range(1, slots + 1)]
    if start is None:
        return [slot * length / datetime.timedelta(days=1) for slot in range(slots)]
    return [start + slot * length for slot in range(slots)]


def time_axis(axis: Any, start: datetime.datetime | None, length: datetime.timedelta | None) -> None:
    """Format the horizontal axis for `slot_places`."""
    if length is None:
        axis.set_xlabel("slot")
    elif start is None:
        axis.xaxis.set_major_locator(_HourLocator(9, steps=[1, 2, 3, 6, 10], integer=True))
        axis.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: _day_and_hour(value)))
    else:
        dates: Any = matplotlib.dates  # its classes have no types
        locator = dates.AutoDateLocator(minticks=4, maxticks=10, tz=datetime.UTC)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=datetime.UTC))
        axis.set_xlabel("UTC")


class _HourLocator(matplotlib.ticker.MaxNLocator):
    """Round hours on an axis of days, round days if it has more than two."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        unit = 24.0 if vmax - vmin <= 2.25 else 1.0
        return np.asarray(super().tick_values(vmin * unit, vmax * unit)) / unit


def _day_and_hour(days: float) -> str:
    """Return `day 1` at midnight, the time of day between."""
    minutes = round(days * 24 * 60)
    day, rest = divmod(minutes, 24 * 60)
    clock = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{clock}\nday {day + 1}" if rest == 0 else clock
