"""The figures as pictures: one panel per stream, a few mechanisms in colour over the others in grey."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wevent.drawing.canvas import picture
from wevent.drawing.looks import GREY, Look, look_of
from wevent.drawing.marks import Ending, few_numbers, heading, name_ends, plain_numbers
from wevent.experiments.reproduce.campaign import Figure
from wevent.experiments.wording import spoken

_IN_COLOUR = ("pft", "pbd", "pba", "bd", "ba")  # what the paper is about, and pft
_GAP = 8.0  # times: from here on mechanisms far above the others get a strip of their own
_BEHIND = "#bdbdbd"

Row = Mapping[str, Any]


def draw_figure(figure: Figure, rows: Sequence[Row], path: Path, settings: Mapping[str, Any]) -> None:
    """Values against the figure's axis on a logarithmic scale, with intervals over repeats where there are any."""
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    strips = _strips(figure, rows)
    ratios = {"height_ratios": [0.55 + 0.16 * len(strip) for strip in strips[:-1]] + [5.0]}
    size = (4.3 * len(streams), 4.9 + 0.9 * (len(strips) - 1))
    with picture(
        path, len(strips), len(streams), size=size, dpi=110, gridspec_kw=ratios, sharex="col", sharey="row"
    ) as (
        drawn,
        axes,
    ):
        heading(drawn, _finding(figure, rows), _facts(figure, rows, settings), _legend(rows, strips))
        pending = []
        for column, stream in enumerate(streams):
            for place, strip in enumerate(strips):
                axis = axes[place, column]
                points = [row for row in rows if row["stream"] == stream and row["mechanism"] in strip]
                pending.append((axis, _draw_lines(axis, figure, points)))
                axis.set_yscale("log")
                axis.margins(x=0.03)
                axis.spines["bottom"].set_visible(place == len(strips) - 1)
                axis.tick_params(axis="x", length=3.5 if place == len(strips) - 1 else 0)
            axes[0, column].set_title(stream)
            axes[-1, column].set_xlabel(figure.horizontal)
            axes[-1, column].set_xticks(sorted({row[figure.axis] for row in rows}))
        axes[-1, 0].set_ylabel(figure.vertical)
        for place, line in enumerate(axes):  # each is on one scale
            _settle(line[0], 4 if place == len(strips) - 1 else 2)
        name_ends(drawn, pending)


def _draw_lines(axis: Any, figure: Figure, rows: Sequence[Row]) -> list[Ending]:
    """The grey lines first; returns the names for their ends."""
    endings = []
    for name in sorted({row["mechanism"] for row in rows}, key=lambda name: (name in _IN_COLOUR, name)):
        points = [row for row in rows if row["mechanism"] == name]
        look, front = look_of(name), name in _IN_COLOUR
        colour = look.colour if front else _BEHIND
        across = [row[figure.axis] for row in points]
        up = [row[figure.measure] for row in points]
        for row in points:
            if not math.isnan(row["low"]):
                ends = [max(row["low"], 0.05 * row[figure.measure]), row["high"]]
                axis.plot([row[figure.axis]] * 2, ends, color=colour, linewidth=1.8 if front else 1.0, zorder=2 + front)
        axis.plot(across, up, **_line(look, colour, front=front))
        endings.append(Ending(up[-1], name, colour if front else GREY, bold=front))
    return endings


def _line(look: Look, colour: str, *, front: bool) -> dict[str, Any]:
    return {
        "color": colour,
        "linestyle": look.line,
        "linewidth": 1.6 if front else 0.9,
        "marker": look.marker,
        "markersize": 4.5 if front else 3.5,
        "markerfacecolor": colour if look.filled else "white",
        "zorder": 4 if front else 2,
    }


def _strips(figure: Figure, rows: Sequence[Row]) -> list[set[str]]:
    """Mechanisms from top to bottom, parted where those above are at least `_GAP` times those below, everywhere."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["mechanism"], []).append(row[figure.measure])
    names = sorted(values, key=lambda name: max(values[name]))
    for number in range(len(names) - 1, 0, -1):
        below, above = names[:number], names[number:]
        highest = max(max(values[name]) for name in below)
        if min(min(values[name]) for name in above) >= _GAP * highest > 0:
            return [set(above), set(below)]
    return [set(names)]


def _finding(figure: Figure, rows: Sequence[Row]) -> str:
    """Which mechanism is lowest on which stream, in the mean of logarithms along the axis."""
    lowest: dict[str, list[str]] = {}
    for stream in dict.fromkeys(row["stream"] for row in rows):
        logs: dict[str, list[float]] = {}
        for row in rows:
            if row["stream"] == stream and row[figure.measure] > 0:
                logs.setdefault(row["mechanism"], []).append(math.log(row[figure.measure]))
        if logs:
            best = min(logs, key=lambda name: sum(logs[name]) / len(logs[name]))
            lowest.setdefault(best, []).append(stream)
    found = "; ".join(f"{name} on {', '.join(streams)}" for name, streams in lowest.items())
    return f"Lowest {figure.vertical}: {found}" if found else figure.title


def _settle(axis: Any, most: int) -> None:
    low, high = axis.get_ylim()
    plain_numbers(axis.yaxis, spoken)
    if high < 100 * low:
        few_numbers(axis.yaxis, most)


def _facts(figure: Figure, rows: Sequence[Row], settings: Mapping[str, Any]) -> str:
    repeats = max(int(row["repeats"]) for row in rows)
    if figure.measure == "ms_per_slot":
        runs = f"single runs of {settings['timed_slots']:,} slots with secure noise, no interval"
    elif repeats == 1:
        runs = f"{settings['slots']:,} slots, one repeat, so no interval"
    else:
        runs = f"{settings['slots']:,} slots, {repeats} repeats; whiskers: 95 % interval of the mean"
    return f"{figure.title}: {settings['users']:,} users (synthetic streams), {runs}; seed {settings['seed']}."


def _legend(rows: Sequence[Row], strips: Sequence[set[str]]) -> str:
    names = {row["mechanism"] for row in rows}
    front = ", ".join(name for name in _IN_COLOUR if name in names)
    variants = "; :std: one budget for all, threshold √2/ε" if any(":std" in name for name in names) else ""
    apart = f" {', '.join(sorted(strips[0]))}: in a strip above, far from the others." if len(strips) > 1 else ""
    return f"In colour: {front or 'none'}. Solid: personal budgets; dashed: one budget for all{variants}.{apart}"
