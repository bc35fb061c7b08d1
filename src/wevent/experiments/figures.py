"""Pictures, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from wevent.experiments.city import SLOTS_PER_DAY, CityStream
from wevent.experiments.demo import DemoResult


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
