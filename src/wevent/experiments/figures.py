"""Pictures of comparisons and plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wevent.experiments.comparison import Comparison
from wevent.experiments.forecast import Forecast, Move, describe
from wevent.experiments.formatting import change, change_and_interval, is_higher, is_lower, short, spoken
from wevent.experiments.intervals import Interval
from wevent.plotting.annotations import (
    Dot,
    Ending,
    draw_dots,
    heading,
    mechanism_dot,
    name_ends,
    plain_numbers,
    slot_places,
    time_axis,
)
from wevent.plotting.canvas import picture
from wevent.plotting.style import GAIN, GREY, INK, LOSS, look_of

_NEXT = 2  # mechanisms in grey behind the best one
_STRETCH = 168  # slots of a comparison that are shown: more would be a thicket


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw truth and releases in the busiest cell, and below it the error of every mechanism with its interval."""
    cell = int(comparison.truth.mean(axis=0).argmax())
    rows = comparison.ranked
    repeats = len(rows[0].scores.amre)
    size = (9, 4.6 + 0.27 * len(rows))
    ratios = {"height_ratios": [2.6, 0.6 + 0.27 * len(rows)]}
    with picture(path, 2, 1, size=size, gridspec_kw=ratios) as (drawn, axes):
        above, below = axes[:, 0]
        heading(
            drawn,
            _finding(comparison),
            f"{rows[0].stream}, {_facts(comparison)}, {repeats} {'repeats' if repeats > 1 else 'repeat'}, "
            f"seed {comparison.seed}. A simulation: it sees the truth.",
            _band_note(comparison),
        )
        slots = len(comparison.truth)
        part = f", the last {_STRETCH} of {slots:,} slots" if slots > _STRETCH else ""
        above.set_title(f"users in cell {comparison.cells[cell]}, first repeat{part}")
        time_axis(above, *comparison.times)
        draw_dots(
            below,
            [
                mechanism_dot(row.mechanism, *row.amre, f"{_with_half(row.amre)}   ({_users(row.amre.mean)})")
                for row in rows
            ],
            logarithmic=True,
        )
        interval = "± and whisker: 95 % interval of the mean" if repeats > 1 else "one repeat, so no interval"
        below.set_title(f"mean squared error per slot and cell, in brackets its root; {interval}")
        plain_numbers(below.xaxis, spoken)
        name_ends(drawn, [(above, _draw_releases(above, comparison, cell, last=_STRETCH))])


def draw_plan(forecast: Forecast, path: Path) -> None:
    """Draw expected errors with intervals, and beside them the change by every move between levels."""
    best = forecast.expected[0]
    repeats = len(best.scores.amre)
    height = 1.7 + max(0.27 * len(forecast.expected), 0.42 * len(forecast.moves), 1.2)
    columns = 2 if forecast.moves else 1
    with picture(path, 1, columns, size=(6.2 * columns, height)) as (drawn, axes):
        heading(
            drawn,
            forecast.advice()[0],
            f"{forecast.stream}, {_count(forecast.population.users, 'user')} on "
            f"{_count(len(forecast.population), 'level')}, {_count(repeats, 'repeat')}, seed {forecast.seed}. A simulation.",
            "Dot: mean of repeats; whisker: 95 % interval" + ("." if repeats > 1 else ": none with one repeat."),
        )
        left = axes[0, 0]
        errors = [(row, row.typical_error) for row in forecast.expected]
        draw_dots(
            left, [mechanism_dot(row.mechanism, *error, _with_ends(error)) for row, error in errors], logarithmic=True
        )
        left.set_title("typical error, users per cell and slot")
        plain_numbers(left.xaxis, spoken)
        left.axvline(forecast.mean_count, color=INK, linewidth=1, zorder=1)
        left.annotate(
            f"mean count {short(forecast.mean_count)}",
            xy=(forecast.mean_count, 0.0),
            xycoords=left.get_xaxis_transform(),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=8,
        )
        if forecast.moves:
            _draw_moves(axes[0, 1], forecast)


def _draw_moves(axis: Any, forecast: Forecast) -> None:
    """Draw ratios on a logarithmic axis, so that half and double lie equally far from no change."""
    rows = []
    for move in forecast.moves:
        name = f"{_count(move.users, 'user')}: {describe(move.source)}\n→ {describe(move.target)}"
        colour = GAIN if move.lowers else LOSS if move.raises else GREY
        rows.append(Dot(name, *move.ratio, colour, text=_with_change(move)))
    draw_dots(axis, rows, logarithmic=True, size=5.5)
    axis.set_title(f"squared error of {forecast.expected[0].mechanism} if users moved (grey: within noise)")
    ends = np.array([[row.value, row.low, row.high] for row in rows])
    reach = max(1.3, float(np.nanmax(np.maximum(ends, 1 / np.maximum(ends, 1e-12))))) ** 1.08
    axis.set_xlim(1 / reach, reach)
    axis.axvline(1.0, color=INK, linewidth=0.8, zorder=1)
    axis.set_xticks(_ratio_ticks(reach))
    plain_numbers(axis.xaxis, change)


def _ratio_ticks(reach: float) -> list[float]:
    """Return round ratios, evenly spread on the logarithmic axis and the same on both sides of 1."""
    pairs = ((1.1, 1.2), (1.25, 1.5), (1.5, 2.0), (2.0, 4.0), (3.0, 10.0), (10.0, 100.0), (100.0, 1e4), (1e3, 1e6))
    steps = next((pair for pair in pairs if pair[1] >= reach**0.6), pairs[-1])
    return sorted([1.0, *(1 / step for step in steps if step <= reach), *(step for step in steps if step <= reach)])


def _draw_releases(axis: Any, comparison: Comparison, cell: int, *, last: int | None = None) -> list[Ending]:
    """Draw the truth, the best mechanism with its band and the next ones in grey; return names for their right ends."""
    seen = slice(-last if last else None, None)
    places = slot_places(len(comparison.truth), *comparison.times)[seen]
    truth = comparison.truth[seen, cell]
    best, *others = comparison.ranked[: 1 + _NEXT]
    endings = [Ending(float(truth[-1]), "truth", INK)]
    for row in reversed(others):
        values = row.example.releases[seen, cell]
        axis.step(places, values, where="post", linewidth=0.8, color="#b4b4b4", zorder=2)
        endings.append(Ending(float(values[-1]), row.mechanism, GREY))
    look = look_of(best.mechanism)
    example = best.example
    low, high = (
        np.where(example.has_valid_interval, ends[:, cell], np.nan)[seen] for ends in (example.low, example.high)
    )
    axis.fill_between(places, low, high, step="post", color=look.colour, alpha=0.22, linewidth=0, zorder=3)
    axis.plot(places, truth, color=INK, linewidth=1.0, zorder=4)
    axis.step(places, example.releases[seen, cell], where="post", linewidth=1.5, color=look.colour, zorder=5)
    endings.append(Ending(float(example.releases[-1, cell]), best.mechanism, look.colour, bold=True))
    axis.margins(x=0.01)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return endings


def _band_note(comparison: Comparison) -> str:
    best = comparison.ranked[0]
    others = " and ".join(row.mechanism for row in comparison.ranked[1 : 1 + _NEXT])
    grey = f" In grey: {others}, next by error." if others else ""
    if not best.example.has_valid_interval.any():
        return f"No band: {best.mechanism} states no interval for the true count.{grey}"
    return f"Band: the 95 % interval for the true count that {best.mechanism} states beside each value.{grey}"


def _finding(comparison: Comparison) -> str:
    """State the best mechanism against the next."""
    best, *others = comparison.ranked
    if not others:
        return f"{best.mechanism}: a typical error of {_users(best.amre.mean)}"
    ratio, second = comparison.against_next(0), others[0].mechanism
    start = f"{best.mechanism} has the smallest error, {_users(best.amre.mean)}"
    if ratio is None or np.isnan(ratio.high):
        return start
    if is_higher(ratio):
        return f"{start}, in the mean; in a typical repeat {second} has a smaller one"
    return f"{start}: {f'ahead of {second} beyond noise' if is_lower(ratio) else f'{second} is within noise of it'}"


def _facts(comparison: Comparison) -> str:
    slots, cells = comparison.truth.shape
    length = comparison.times.length
    return f"{comparison.users:,} users, {_count(cells, 'cell')}, {slots:,} slots" + (
        "" if length is None else f" of {_length(length.total_seconds())}"
    )


def _length(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _users(squared: float) -> str:
    return f"{spoken(float(np.sqrt(squared)))} users"


def _with_half(interval: Interval) -> str:
    half = (interval.high - interval.low) / 2
    return spoken(interval.mean) + ("" if np.isnan(half) else f" ± {spoken(float(f'{half:.1e}'))}")


def _with_ends(interval: Interval) -> str:
    ends = "" if np.isnan(interval.low) else f"   ({spoken(interval.low)} to {spoken(interval.high)})"
    return spoken(interval.mean) + ends


def _with_change(move: Move) -> str:
    mean, ends = change_and_interval(move.ratio)
    return mean if ends == "-" else f"{mean}   ({ends})"
