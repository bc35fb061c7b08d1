"""The figures as pictures, one panel per stream."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wevent.experiments.canvas import panels, save
from wevent.experiments.reproduce.campaign import MECHANISMS, Figure

_MARKERS = "os^Dv<>PX*"


def draw_figure(figure: Figure, rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Lines per mechanism against the figure's axis; AMRE on the ln scale, with intervals."""
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    drawn, axes = panels(1, len(streams), figsize=(4.2 * len(streams), 4.2))
    names = sorted({row["mechanism"] for row in rows}, key=_order)
    for axis, stream in zip(axes[0], streams, strict=True):
        for number, name in enumerate(names):
            points = [row for row in rows if row["stream"] == stream and row["mechanism"] == name]
            axis.errorbar(
                [row[figure.axis] for row in points],
                [_height(figure, row[figure.measure]) for row in points],
                yerr=[_below(figure, points), _above(figure, points)],
                label=name,
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=4,
                linewidth=1.1,
                capsize=2,
            )
        axis.set_title(stream)
        axis.set_xlabel(figure.horizontal)
        axis.grid(alpha=0.3)
        if figure.measure == "ajsd":
            axis.set_yscale("log")
    axes[0][0].set_ylabel(figure.vertical)
    handles, labels = axes[0][0].get_legend_handles_labels()
    drawn.legend(handles, labels, ncols=len(names), loc="outside upper center", fontsize="small", frameon=False)
    save(drawn, path, dpi=110, metadata={"Software": None})


def _order(name: str) -> tuple[int, str]:
    return (MECHANISMS.index(name) if name in MECHANISMS else len(MECHANISMS), name)


def _height(figure: Figure, value: float) -> float:
    return math.log(value) if figure.measure == "amre" else value


def _below(figure: Figure, points: Sequence[Mapping[str, Any]]) -> list[float]:
    return [_length(figure, row, max(row["low"], 0.05 * row[figure.measure])) for row in points]


def _above(figure: Figure, points: Sequence[Mapping[str, Any]]) -> list[float]:
    return [_length(figure, row, row["high"]) for row in points]


def _length(figure: Figure, row: Mapping[str, Any], end: float) -> float:
    return 0.0 if math.isnan(end) else abs(_height(figure, end) - _height(figure, row[figure.measure]))
