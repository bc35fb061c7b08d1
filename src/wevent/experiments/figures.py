"""Pictures, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from wevent.experiments.city import SLOTS_PER_DAY, CityStream
from wevent.experiments.compare import Comparison
from wevent.experiments.demo import DemoResult
from wevent.experiments.plan import Plan, describe


def draw_demo(city: CityStream, results: Sequence[DemoResult], path: Path, *, best: int = 3) -> None:
    """Truth against the releases of the `best` mechanisms, one panel for each of two districts."""
    busiest = np.argsort(city.truth.mean(axis=0))[::-1][:2]
    hours = np.arange(len(city.counts)) * 24 / SLOTS_PER_DAY
    figure, axes = plt.subplots(2, 1, figsize=(9, 5.6), sharex=True, layout="constrained")
    for axis, cell in zip(axes, busiest, strict=True):
        axis.plot(hours, city.truth[:, cell], color="black", linewidth=1.4, label="truth (never published)")
        for result in results[:best]:
            axis.step(hours, result.histograms[:, cell], where="post", linewidth=1.0, label=result.mechanism)
        axis.set_ylabel(f"users in {city.cells[cell]}")
        axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
        axis.grid(alpha=0.3)
    axes[0].legend(ncols=best + 1, fontsize="small", frameon=False, loc="upper left")
    axes[0].set_title("What wevent publishes, with every user's window kept within their epsilon")
    axes[1].set_xlabel("hours")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_comparison(comparison: Comparison, stream: str, path: Path, *, best: int = 3) -> None:
    """Above: truth and the releases of the best mechanisms in the busiest cell; below: errors with intervals."""
    cell = int(comparison.truth.mean(axis=0).argmax())
    slots = np.arange(1, len(comparison.truth) + 1)
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 7), layout="constrained")
    above.plot(slots, comparison.truth[:, cell], color="black", linewidth=1.4, label="truth")
    for one in comparison.ranked[:best]:
        above.step(slots, one.example[:, cell], where="post", linewidth=1.0, label=one.mechanism)
    above.set_title(f"{stream}: cell {comparison.cells[cell]}, first repeat")
    above.set_xlabel("slot")
    above.set_ylabel("users")
    above.legend(ncols=best + 1, fontsize="small", frameon=False)
    names = [one.mechanism for one in comparison.ranked]
    intervals = [one.amre for one in comparison.ranked]
    means = np.array([one.mean for one in intervals])
    halves = np.nan_to_num(np.array([(one.high - one.low) / 2 for one in intervals]))
    below.barh(names[::-1], means[::-1], xerr=np.minimum(halves, 0.99 * means)[::-1], color="#7aa6c2", capsize=3)
    below.set_xscale("log")
    below.set_xlabel("mean squared error per slot and cell, with 95 % intervals over repeats")
    for axis in (above, below):
        axis.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_plan(plan: Plan, path: Path) -> None:
    """Left: expected errors with intervals; right: what moves between levels would change."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    errors = [one.typical_error for one in plan.expected]
    means = np.array([one.mean for one in errors])
    halves = np.nan_to_num(np.array([(one.high - one.low) / 2 for one in errors]))
    names = [one.mechanism for one in plan.expected]
    left.barh(names[::-1], means[::-1], xerr=np.minimum(halves, 0.99 * means)[::-1], color="#7aa6c2", capsize=3)
    left.set_xscale("log")
    left.set_xlabel("typical error, users per cell and slot")
    left.axvline(plan.mean_count, color="black", linestyle=":", label="mean count")
    left.legend(frameon=False, fontsize="small")
    labels = [f"{describe(move.source)}\n→ {describe(move.target)}" for move in plan.moves]
    changes = np.array([100.0 * (move.ratio.mean - 1.0) for move in plan.moves])
    right.barh(labels[::-1], changes[::-1], color=["#4f9d69" if one < 0 else "#c2705b" for one in changes[::-1]])
    right.tick_params(axis="y", labelsize="small")
    right.set_xlabel(f"change of the squared error of {names[0]} in % if users moved")
    for axis in (left, right):
        axis.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
