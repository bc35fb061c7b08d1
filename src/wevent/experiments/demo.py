"""One mechanism over one synthetic stream, measured against the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.experiments.city import CityStream
from wevent.experiments.metrics import worst_window_share
from wevent.publisher.publisher import Publisher


@dataclass(frozen=True)
class DemoResult:
    """How well one mechanism did, and what it cost."""

    mechanism: str
    histograms: FloatArray
    mean_squared_error: float
    mean_absolute_error: float
    fresh: int
    worst_window_share: float

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain types."""
        return {
            "mechanism": self.mechanism,
            "mean_squared_error": self.mean_squared_error,
            "mean_absolute_error": self.mean_absolute_error,
            "fresh": self.fresh,
            "worst_window_share": self.worst_window_share,
        }


def run_mechanism(mechanism: str, city: CityStream, *, advance: Callable[[], object]) -> DemoResult:
    """Publish the whole stream with secure noise; `advance` is called after each slot."""
    publisher = Publisher(city.population, city.cells, mechanism)
    releases = []
    for counts in city.counts:
        releases.append(publisher.step(counts))
        advance()
    histograms = np.array([release.histogram for release in releases])
    error = histograms - city.truth
    charges = np.array([release.charges for release in releases])
    return DemoResult(
        mechanism,
        histograms,
        float((error**2).mean()),
        float(np.abs(error).mean()),
        sum(release.fresh for release in releases),
        worst_window_share(charges, city.population),
    )
