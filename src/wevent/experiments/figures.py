"""Pictures of comparisons and plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.experiments.canvas import panels, save
from wevent.experiments.comparison import Comparison
from wevent.experiments.datasets.city import SLOTS_PER_DAY
from wevent.experiments.forecast import Forecast, describe
from wevent.experiments.intervals import Interval


def draw_city(comparison: Comparison, path: Path, *, best: int = 3) -> None:
    """Truth against the releases of the `best` mechanisms, one panel for each of the two busiest districts."""
    busiest = np.argsort(comparison.truth.mean(axis=0))[::-1][:2].tolist()
    hours = np.arange(len(comparison.truth)) * 24 / SLOTS_PER_DAY
    picture, axes = panels(2, 1, figsize=(9, 5.6), sharex=True)
    for axis, cell in zip(axes[:, 0], busiest, strict=True):
        _draw_releases(axis, comparison, cell, hours, best, "truth (never published)")
        axis.set_ylabel(f"users in {comparison.cells[cell]}")
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
        axis.grid(alpha=0.3)
    above, below = axes[:, 0]
    above.legend(ncols=best + 1, fontsize="small", frameon=False, loc="upper left")
    above.set_title("What wevent publishes, with every user's window kept within their epsilon")
    below.set_xlabel("hours")
    save(picture, path)


def draw_comparison(comparison: Comparison, path: Path, *, best: int = 3) -> None:
    """Above: truth and the releases of the best mechanisms in the busiest cell; below: errors with intervals."""
    cell = int(comparison.truth.mean(axis=0).argmax())
    picture, axes = panels(2, 1, figsize=(9, 7))
    above, below = axes[:, 0]
    _draw_releases(above, comparison, cell, np.arange(1.0, len(comparison.truth) + 1.0), best, "truth")
    above.set_title(f"{comparison.ranked[0].stream}: cell {comparison.cells[cell]}, first repeat")
    above.set_xlabel("slot")
    above.set_ylabel("users")
    above.legend(ncols=best + 1, fontsize="small", frameon=False)
    _draw_bars(below, [row.mechanism for row in comparison.ranked], [row.amre for row in comparison.ranked])
    below.set_xlabel("mean squared error per slot and cell, with 95 % intervals over repeats")
    for axis in (above, below):
        axis.grid(alpha=0.3)
    save(picture, path)


def draw_plan(forecast: Forecast, path: Path) -> None:
    """Left: expected errors with intervals; right: what moves between levels would change."""
    picture, axes = panels(1, 2, figsize=(12, 4.8))
    left, right = axes[0]
    names = [row.mechanism for row in forecast.expected]
    _draw_bars(left, names, [row.typical_error for row in forecast.expected])
    left.set_xlabel("typical error, users per cell and slot")
    left.axvline(forecast.mean_count, color="black", linestyle=":", label="mean count")
    left.legend(frameon=False, fontsize="small")
    labels = [f"{describe(move.source)}\n→ {describe(move.target)}" for move in forecast.moves]
    changes = [100.0 * (move.ratio.mean - 1.0) for move in forecast.moves]
    colours = ["#4f9d69" if change < 0 else "#c2705b" for change in changes]
    right.barh(labels[::-1], changes[::-1], color=colours[::-1])
    right.tick_params(axis="y", labelsize="small")
    right.set_xlabel(f"change of the squared error of {names[0]} in % if users moved")
    for axis in (left, right):
        axis.grid(alpha=0.3)
    save(picture, path)


def _draw_releases(axis: Any, comparison: Comparison, cell: int, places: FloatArray, best: int, truth: str) -> None:
    axis.plot(places, comparison.truth[:, cell], color="black", linewidth=1.4, label=truth)
    for row in comparison.ranked[:best]:
        axis.step(places, row.example[:, cell], where="post", linewidth=1.0, label=row.mechanism)


def _draw_bars(axis: Any, names: Sequence[str], intervals: Sequence[Interval]) -> None:
    """Means with their intervals on a logarithmic axis, the first one on top."""
    means = np.array([interval.mean for interval in intervals])
    halves = np.nan_to_num(np.array([(interval.high - interval.low) / 2 for interval in intervals]))
    axis.barh(names[::-1], means[::-1], xerr=np.minimum(halves, 0.99 * means)[::-1], color="#7aa6c2", capsize=3)
    axis.set_xscale("log")
