"""A picture of releases: a panel per cell with its band, or a heatmap of many cells. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from wevent.core.arrays import BoolArray
from wevent.drawing.canvas import picture
from wevent.drawing.heat import LADDER
from wevent.drawing.looks import INK, look_of
from wevent.drawing.marks import heading, time_axis
from wevent.drawing.released import Released, band_note, facts_of, mechanisms_of

_COLUMN = 4  # panels below each other; from the next one on there are two columns
_DOTS = 60  # fresh slots that get a dot on the line; more would hide it
_LABELS = 36  # cells whose name fits beside a heatmap

_FRESH = "Ticks at the bottom: slots that were measured (fresh)."


def draw_lines(released: Released, path: Path) -> None:
    """A panel per cell: what was published, its band where there is one, and ticks where it was measured."""
    released = _literally(released)
    number = len(released.cells)
    columns = 1 if number <= _COLUMN else 2
    rows = math.ceil(number / columns)
    size = (9.0 if columns == 1 else 12.0, 1.35 + 1.55 * max(rows, 2 if rows == 1 else rows))
    with picture(path, rows, columns, size=size, sharex=True) as (drawn, axes):
        heading(drawn, _title(released), facts_of(released), f"{band_note(released)} {_FRESH}")
        places = _places(released)
        for place, axis in enumerate(axes.T.flat):
            if place >= number:
                axis.set_visible(False)
                continue
            _draw_cell(axis, released, place, places)
        for axis in axes[-1]:
            time_axis(axis, *_times(released))
        for column in range(columns):  # a column may end above the last row
            below = [axis for axis in axes[:, column] if axis.get_visible()][-1]
            below.tick_params(labelbottom=True)
            time_axis(below, *_times(released))


def draw_heatmap(released: Released, path: Path) -> None:
    """Cells from top to bottom, slots from left to right, values as colours; ticks where it was measured."""
    released = _literally(released)
    number = len(released.cells)
    size = (10.0, 1.9 + min(6.0, max(2.4, 0.17 * number)))
    with picture(path, 1, 1, size=size) as (drawn, axes):
        axis = axes[0, 0]
        note = "Colour: published value; light is large. Ticks at the top: slots that were measured (fresh)."
        heading(drawn, f"Published: {number:,} cells", facts_of(released), note)
        places = _places(released)
        axis.grid(visible=False)
        seen = axis.pcolormesh(
            [*places, _after(released, places)],
            np.arange(number + 1) - 0.5,
            np.ma.masked_invalid(released.values.T),
            cmap=_ladder(),
            rasterized=True,
        )
        axis.spines["left"].set_visible(False)
        axis.set_ylim(number - 0.5, -0.5)
        shown = range(number) if number <= _LABELS else range(0, number, math.ceil(number / _LABELS))
        axis.set_yticks(list(shown), [released.cells[place] for place in shown])
        axis.tick_params(axis="y", length=0, labelsize=8 if number <= 25 else 7)
        axis.set_facecolor("#eeeeee")
        axis.set_title(" ", fontsize=7)  # room for the ticks
        _rug(axis, [places[place] for place in released.fresh], 1.004, 1.016)
        time_axis(axis, *_times(released))
        bar = drawn.colorbar(seen, ax=axis, pad=0.015, shrink=0.8, aspect=28)
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        bar.outline.set_visible(False)


def _literally(released: Released) -> Released:
    """The same with names that matplotlib takes for no formula: a dollar is a dollar."""
    name, *cells = (text.replace("$", r"\$") for text in (released.name, *released.cells))
    return replace(released, name=name, cells=cells)


def _draw_cell(axis: Any, released: Released, cell: int, places: Sequence[Any]) -> None:
    axis.set_title(released.cells[cell])
    fresh = released.fresh
    for mechanism in mechanisms_of(released):
        own = np.array([name == mechanism for name in released.mechanisms])
        values, low, high = (
            np.where(own, table[:, cell], np.nan) for table in (released.values, released.low, released.high)
        )
        look = look_of(mechanism)
        until = [*places, _after(released, places)]  # the last slot is as wide as the others
        low, high, line = (np.append(table, table[-1]) for table in (low, high, values))
        axis.fill_between(until, low, high, step="post", color=look.colour, alpha=0.22, linewidth=0)
        axis.step(until, line, where="post", color=look.colour, linewidth=1.4)
        alone = _alone(np.isfinite(low[:-1]))
        axis.vlines(
            [places[place] for place in alone], low[alone], high[alone], color=look.colour, linewidth=2.2, alpha=0.35
        )
        measured = [place for place in fresh if own[place]]
        if len(fresh) <= _DOTS:
            at = [places[place] for place in measured]
            axis.plot(at, values[measured], "o", color=look.colour, markersize=3)
    axis.margins(x=0.01)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _rug(axis, [places[place] for place in fresh])


def _alone(known: BoolArray) -> list[int]:
    """Slots with an interval between slots without one: too narrow for a band."""
    padded = np.concatenate([[False], known, [False]])
    return np.flatnonzero(padded[1:-1] & ~padded[:-2] & ~padded[2:]).tolist()


def _rug(axis: Any, at: Sequence[Any], low: float = 0.0, high: float = 0.045) -> None:
    """Ticks at these places, from the bottom of the axis up unless told otherwise."""
    into = axis.get_xaxis_transform()
    axis.vlines(at, low, high, transform=into, color=INK, linewidth=0.7, alpha=0.7, clip_on=False)


def _title(released: Released) -> str:
    named = ", ".join(released.cells[:4]) + (f" and {len(released.cells) - 4} more" if len(released.cells) > 4 else "")
    return f"Published: {named}"


def _places(released: Released) -> list[Any]:
    return list(released.slots if released.starts is None else released.starts)


def _after(released: Released, places: Sequence[Any]) -> Any:
    """Where the last slot ends."""
    return places[-1] + 1 if released.ends is None else released.ends[-1]


def _times(released: Released) -> tuple[datetime | None, Any]:
    if released.starts is None or released.ends is None:
        return None, None
    return released.starts[0].astimezone(UTC), released.ends[0] - released.starts[0]


def _ladder() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heat", LADDER)
