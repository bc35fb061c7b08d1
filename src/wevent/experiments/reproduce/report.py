"""The report of a reproduction: a picture per figure, and `README.md` with the table of claims."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wevent.experiments.formatting import spoken
from wevent.experiments.intervals import Interval, mean_interval
from wevent.experiments.reproduce.campaign import FIGURES, SETTINGS, Figure, keys_on
from wevent.experiments.reproduce.claims import Judged
from wevent.experiments.reproduce.results import Results
from wevent.file_io import atomic_write_text
from wevent.plotting.annotations import Ending, heading, name_ends, plain_numbers
from wevent.plotting.canvas import picture
from wevent.plotting.style import GREY, look_of

_IN_COLOUR = ("pft", "pbd", "pba", "bd", "ba")  # the subjects of the paper, and pft
_BEHIND = "#bdbdbd"
_NOTES = (
    "AMRE is the mean squared error per slot and cell: the paper's formula, which it calls relative; pictures have a "
    "logarithmic axis where the paper draws ln(AMRE). Intervals are 95 % over repeats (Student's t). Changes in the "
    "claims table are typical ones (mean of log ratios, repeat by repeat on the same people), followed by the ratio of "
    "means, which is how the paper averages. A claim holds if every comparison agrees beyond noise, partly if some do. "
    "The published BA and PBA errors came from code that did not record the spent budget; honest ones are larger, so "
    "absolute numbers are not compared here."
)


def write_report(results: Results, figures: Sequence[str], judged: Sequence[Judged], absent: Mapping[str, str]) -> Path:
    """Draw the figures that have results and write `README.md` beside them; return its path."""
    drawn = [name for name in figures if _draw(results, FIGURES[name])]
    lines = ["# Reproduction of the paper's experiments", "", _facts(results.settings), "", _NOTES, ""]
    for name, reason in absent.items():
        lines += [f"Absent: **{name}**. {html.escape(reason, quote=False)}", ""]
    lines += [*(f"![{FIGURES[name].title}]({name}.png)" for name in drawn), "", "## Claims", ""]
    lines += ["| claim | paper | BD/BA at | verdict | measured |", "|---|---|---|---|---|"]
    for claim in judged:
        lines.append(f"| {claim.claim} | {claim.paper} | {claim.baseline} | **{claim.verdict}** | {claim.measured} |")
    report = results.folder / "README.md"
    atomic_write_text(report, "\n".join(lines) + "\n")
    return report


def _facts(settings: Mapping[str, Any]) -> str:
    drawn = "printed in the paper" if settings["variant"] == "printed" else "drawn by the authors' code"
    return (
        f"wevent {settings['version']}, seed {settings['seed']}; "
        f"{settings['users']} users (synthetic streams), {settings['slots']} slots, {settings['repeats']} repeats; "
        f"streams as {drawn}; times over {settings['timed_slots']} slots of single runs with secure noise. "
        "All numbers are in `results.csv`."
    )


class _Point(NamedTuple):
    """The value of a mechanism at a place of an axis."""

    place: float
    value: Interval
    repeats: int


def _points(results: Results, figure: Figure, stream: str) -> dict[str, list[_Point]]:
    """Return the points of every mechanism with results on a stream."""
    found: dict[str, list[_Point]] = {}
    for key in keys_on(figure.axis):
        for mechanism in results.mechanisms:
            values = results.values(stream, key, mechanism, figure.measure)
            if values is not None:
                repeats = values[:1] if figure.measure == "ms_per_slot" else values  # a time is of one run
                point = _Point(SETTINGS[key].places[figure.axis], mean_interval(repeats.tolist()), len(repeats))
                found.setdefault(mechanism, []).append(point)
    return found


def _draw(results: Results, figure: Figure) -> bool:
    """Draw a panel per stream on a logarithmic axis, the mechanisms of the paper in colour; False without results."""
    panels = {stream: points for stream in results.streams if (points := _points(results, figure, stream))}
    if not panels:
        return False
    path = results.folder / f"{figure.name}.png"
    with picture(path, 1, len(panels), size=(4.3 * len(panels), 4.9), dpi=110, sharey=True) as (drawn, axes):
        heading(drawn, _finding(figure, panels), _describe_runs(figure, panels, results.settings), _legend(panels))
        ends = []
        for axis, (stream, points) in zip(axes[0], panels.items(), strict=True):
            ends.append((axis, _draw_lines(axis, points)))
            axis.set_yscale("log")
            axis.margins(x=0.03)
            axis.set_title(stream)
            axis.set_xlabel(figure.horizontal)
            axis.set_xticks([SETTINGS[key].places[figure.axis] for key in keys_on(figure.axis)])
        axes[0, 0].set_ylabel(figure.vertical)
        plain_numbers(axes[0, 0].yaxis, spoken)
        name_ends(drawn, ends)
    return True


def _draw_lines(axis: Any, mechanisms: Mapping[str, Sequence[_Point]]) -> list[Ending]:
    """Draw the grey lines first; return the names for their ends."""
    endings = []
    for name in sorted(mechanisms, key=lambda name: (name in _IN_COLOUR, name)):
        points, look, front = mechanisms[name], look_of(name), name in _IN_COLOUR
        colour = look.colour if front else _BEHIND
        for place, value, _ in points:
            if not math.isnan(value.low):
                ends = [max(value.low, 0.05 * value.mean), value.high]
                axis.plot([place] * 2, ends, color=colour, linewidth=1.8 if front else 1.0, zorder=2 + front)
        axis.plot(
            [point.place for point in points],
            [point.value.mean for point in points],
            color=colour,
            linestyle=look.line,
            linewidth=1.6 if front else 0.9,
            marker=look.marker,
            markersize=4.5 if front else 3.5,
            markerfacecolor=colour if look.filled else "white",
            zorder=4 if front else 2,
        )
        endings.append(Ending(points[-1].value.mean, name, colour if front else GREY, bold=front))
    return endings


def _finding(figure: Figure, panels: Mapping[str, Mapping[str, Sequence[_Point]]]) -> str:
    """Name the lowest mechanism of each stream, in the mean of logarithms along the axis."""
    lowest: dict[str, list[str]] = {}
    for stream, mechanisms in panels.items():
        logs = {
            name: sum(math.log(point.value.mean) for point in points) / len(points)
            for name, points in mechanisms.items()
            if all(point.value.mean > 0 for point in points)
        }
        if logs:
            lowest.setdefault(min(logs, key=lambda name: logs[name]), []).append(stream)
    found = "; ".join(f"{name} on {', '.join(streams)}" for name, streams in lowest.items())
    return f"Lowest {figure.vertical}: {found}" if found else figure.title


def _describe_runs(
    figure: Figure, panels: Mapping[str, Mapping[str, Sequence[_Point]]], settings: Mapping[str, Any]
) -> str:
    repeats = max(point.repeats for points in panels.values() for own in points.values() for point in own)
    if figure.measure == "ms_per_slot":
        runs = f"single runs of {settings['timed_slots']:,} slots with secure noise, no interval"
    elif repeats == 1:
        runs = f"{settings['slots']:,} slots, one repeat, so no interval"
    else:
        runs = f"{settings['slots']:,} slots, {repeats} repeats; whiskers: 95 % interval of the mean"
    return f"{figure.title}: {settings['users']:,} users (synthetic streams), {runs}; seed {settings['seed']}."


def _legend(panels: Mapping[str, Mapping[str, object]]) -> str:
    names = {name for mechanisms in panels.values() for name in mechanisms}
    front = ", ".join(name for name in _IN_COLOUR if name in names)
    variants = "; :std: one budget for all, threshold √2/ε" if any(":std" in name for name in names) else ""
    return f"In colour: {front or 'none'}. Solid: personal budgets; dashed: one budget for all{variants}."
