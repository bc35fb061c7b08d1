"""Releases as one page that opens offline. Needs plotly, and holds nothing but what was released."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
from plotly import graph_objects
from plotly.subplots import make_subplots

from wevent.errors import InvalidOption
from wevent.file_io import atomic_write
from wevent.plotting.release_data import ReleaseData, describe_band, describe_data
from wevent.plotting.style import look_of

MOST_VALUES = 100_000
"""On one page: more would make a browser slow."""


def write_page(data: ReleaseData, path: Path, *, as_lines: bool) -> None:
    """Write a chart per cell with its band, or a heatmap of all cells.

    Raises:
        InvalidOption: for more values than fit on a page.
    """
    if data.values.size > MOST_VALUES:
        raise InvalidOption(
            f"{len(data.slots):,} slots × {len(data.cells):,} cells are more than the {MOST_VALUES:,} values of a page.",
            "Choose some with --from, --to and --cells, or draw a picture with --out.",
            option="html",
        )
    figure = _lines(data) if as_lines else _heatmap(data)
    note = f"{describe_band(data)} Dots: slots that were measured (fresh)." if as_lines else "Colour: published value."
    figure.update_layout(
        template="plotly_white",
        title={"text": html.escape(describe_data(data)), "subtitle": {"text": note}},
        margin={"t": 110},
        showlegend=False,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as unfinished:
        figure.write_html(unfinished, include_plotlyjs=True, div_id="releases", config={"displaylogo": False})


def _lines(data: ReleaseData) -> Any:
    count = len(data.cells)
    titles = [html.escape(label) for label in data.cells]
    figure = make_subplots(rows=count, cols=1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.35 / count)
    edges = data.edges
    for cell in range(count):
        for mechanism in data.mechanism_names:
            own = np.array([name == mechanism for name in data.mechanisms])
            colour = look_of(mechanism).colour
            values = np.where(own, data.values[:, cell], np.nan)
            stated = np.flatnonzero(own & np.isfinite(data.low[:, cell])).tolist()
            lows, highs = data.low[:, cell].tolist(), data.high[:, cell].tolist()
            band = {
                "x": [at for place in stated for at in (*(edges[place + side] for side in (0, 1, 1, 0)), None)],
                "y": [y for at in stated for y in (lows[at], lows[at], highs[at], highs[at], None)],
            }
            figure.add_scatter(
                **band, mode="lines", line_width=0, fill="toself", fillcolor=colour, opacity=0.24, hoverinfo="skip",
                row=cell + 1, col=1,
            )  # fmt: skip
            sizes = [5 if word == "fresh" else 0 for word in data.outcomes]
            figure.add_scatter(
                x=edges, y=[*values, values[-1]], mode="lines+markers", line={"color": colour, "shape": "hv"},
                marker={"size": [*sizes, 0], "opacity": 1}, hoverinfo="text",
                hovertext=[_describe(data, place, cell) for place in range(len(data.slots))],
                row=cell + 1, col=1,
            )  # fmt: skip
    figure.update_layout(height=140 + 190 * count)
    return figure


def _heatmap(data: ReleaseData) -> Any:
    count = len(data.cells)
    texts = [[_describe(data, place, cell) for place in range(len(data.slots))] for cell in range(count)]
    heatmap = graph_objects.Heatmap(
        x=data.edges, z=data.values.T, colorscale="Cividis", hoverinfo="text", hovertext=texts
    )
    figure = graph_objects.Figure(heatmap)
    labels = [html.escape(label) for label in data.cells]
    figure.update_yaxes(autorange="reversed", tickvals=list(range(count)), ticktext=labels)
    figure.update_layout(height=200 + max(240, 16 * count))
    return figure


def _describe(data: ReleaseData, place: int, cell: int) -> str:
    """Return what a pointer at a slot shows: cell, slot, time, value, interval and outcome."""
    when = f", {data.edges[place]:%Y-%m-%d %H:%M:%S} UTC" if data.start is not None else ""
    value, low, high = (float(table[place, cell]) for table in (data.values, data.low, data.high))
    shown = "no value" if np.isnan(value) else f"{value:,.6g}"
    interval = "" if np.isnan(low) else f" ({low:,.6g} to {high:,.6g})"
    return html.escape(f"{data.cells[cell]}, slot {data.slots[place]}{when}: {shown}{interval}, {data.outcomes[place]}")
