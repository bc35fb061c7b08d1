"""A picture of releases: a panel per cell with its band, or a heatmap of many cells. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wevent.plotting.annotations import heading, time_axis
from wevent.plotting.canvas import picture
from wevent.plotting.release_data import ReleaseData, describe_band, describe_data
from wevent.plotting.style import INK, look_of

_COLUMN = 4  # panels below each other; from the next one on there are two columns
_LABELS = 36  # cells whose name fits beside a heatmap


def draw_lines(data: ReleaseData, path: Path) -> None:
    """Draw a panel per cell: the values, their band where there is one, and ticks at measured slots."""
    data = _escaped(data)
    count = len(data.cells)
    columns = 1 if count <= _COLUMN else 2
    rows = math.ceil(count / columns)
    size = (9.0 if columns == 1 else 12.0, 1.35 + 1.55 * max(rows, 2))
    with picture(path, rows, columns, size=size, sharex=True) as (drawn, axes):
        named = ", ".join(data.cells[:4]) + (f" and {count - 4} more" if count > 4 else "")
        note = f"{describe_band(data)} Ticks at the bottom: slots that were measured (fresh)."
        heading(drawn, f"Published: {named}", describe_data(data), note)
        for place, axis in enumerate(axes.T.flat):
            axis.set_visible(place < count)
            if place < count:
                _draw_cell(axis, data, place)
        for column in range(columns):  # a column may end above the last row
            lowest = [axis for axis in axes[:, column] if axis.get_visible()][-1]
            lowest.tick_params(labelbottom=True)
            time_axis(lowest, data.start, data.length)


def draw_heatmap(data: ReleaseData, path: Path) -> None:
    """Draw cells from top to bottom, slots from left to right, values as colours; ticks at measured slots."""
    data = _escaped(data)
    count = len(data.cells)
    size = (10.0, 1.9 + min(6.0, max(2.4, 0.17 * count)))
    with picture(path, 1, 1, size=size) as (drawn, axes):
        axis = axes[0, 0]
        note = "Colour: published value; light is large. Ticks at the top: slots that were measured (fresh)."
        heading(drawn, f"Published: {count:,} cells", describe_data(data), note)
        axis.grid(visible=False)
        seen = axis.pcolormesh(
            data.edges, np.arange(count + 1) - 0.5, np.ma.masked_invalid(data.values.T), cmap="cividis", rasterized=True
        )
        axis.spines["left"].set_visible(False)
        axis.set_ylim(count - 0.5, -0.5)
        shown = range(0, count, math.ceil(count / _LABELS))
        axis.set_yticks(list(shown), [data.cells[place] for place in shown])
        axis.tick_params(axis="y", length=0, labelsize=8 if count <= 25 else 7)
        axis.set_facecolor("#eeeeee")
        axis.set_title(" ", fontsize=7)  # room for the ticks
        _mark_fresh(axis, data, 1.004, 1.016)
        time_axis(axis, data.start, data.length)
        bar = drawn.colorbar(seen, ax=axis, pad=0.015, shrink=0.8, aspect=28)
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        bar.outline.set_visible(False)


def _escaped(data: ReleaseData) -> ReleaseData:
    """Escape the names, which matplotlib would read as formulas: a dollar is a dollar."""
    name, *cells = (text.replace("$", r"\$") for text in (data.name, *data.cells))
    return replace(data, name=name, cells=cells)


def _draw_cell(axis: Any, data: ReleaseData, cell: int) -> None:
    axis.set_title(data.cells[cell])
    for mechanism in data.mechanism_names:
        own = np.array([name == mechanism for name in data.mechanisms])
        values, low, high = (np.where(own, table[:, cell], np.nan) for table in (data.values, data.low, data.high))
        colour = look_of(mechanism).colour
        if np.isfinite(high).any():
            axis.stairs(high, data.edges, baseline=low, fill=True, color=colour, alpha=0.22, linewidth=0)
        axis.stairs(values, data.edges, baseline=None, color=colour, linewidth=1.4)
    axis.margins(x=0.01)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _mark_fresh(axis, data, 0.0, 0.045)


def _mark_fresh(axis: Any, data: ReleaseData, low: float, high: float) -> None:
    """Mark the beginnings of measured slots between these heights of the axis."""
    at: Sequence[Any] = [data.edges[place] for place in data.fresh]
    axis.vlines(at, low, high, transform=axis.get_xaxis_transform(), color=INK, linewidth=0.7, alpha=0.7, clip_on=False)
