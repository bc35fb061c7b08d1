"""What came out, ready to be asked: values by stream, setting and mechanism, and their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.experiments.intervals import Interval, mean_interval
from wevent.experiments.reproduce.campaign import Axis, Figure, Setting, all_settings

Row = dict[str, Any]


class Results:
    """All finished tasks of a reproduction."""

    def __init__(self, results: Iterable[dict[str, Any]]) -> None:
        self._values: dict[tuple[str, str, str, str], FloatArray] = {}
        for result in results:
            for setting, measures in result["settings"].items():
                for measure, values in measures.items():
                    key = (result["stream"], setting, result["mechanism"], measure)
                    self._values[key] = np.asarray(values, dtype=np.float64)

    @property
    def streams(self) -> list[str]:
        """Those with results."""
        return sorted({stream for stream, _, _, _ in self._values})

    @property
    def mechanisms(self) -> list[str]:
        """Those with results."""
        return sorted({mechanism for _, _, mechanism, _ in self._values})

    def values(self, stream: str, setting: str, mechanism: str, measure: str) -> FloatArray | None:
        """One value per repeat; None if it was not run."""
        return self._values.get((stream, setting, mechanism, measure))

    def log_ratio(
        self, stream: str, settings: Sequence[str], left: str, right: str, measure: str = "amre"
    ) -> FloatArray | None:
        """ln(left/right) per repeat, averaged over settings; None if one of them was not run."""
        logs = []
        for setting in settings:
            above, below = self.values(stream, setting, left, measure), self.values(stream, setting, right, measure)
            if above is None or below is None:
                return None
            logs.append(np.log(above) - np.log(below))
        return np.asarray(np.mean(logs, axis=0), dtype=np.float64)

    def change(self, stream: str, mechanism: str, first: str, last: str, measure: str = "amre") -> FloatArray | None:
        """ln of the value in the last setting over that in the first, per repeat."""
        before, after = self.values(stream, first, mechanism, measure), self.values(stream, last, mechanism, measure)
        return None if before is None or after is None else np.log(after) - np.log(before)

    def reduction(self, stream: str, settings: Sequence[str], left: str, right: str, measure: str = "amre") -> float:
        """The paper's way: the mean over settings of 1 − (mean of left)/(mean of right)."""
        shares = []
        for setting in settings:
            above, below = self.values(stream, setting, left, measure), self.values(stream, setting, right, measure)
            if above is None or below is None:
                return float("nan")
            shares.append(1.0 - float(above.mean() / below.mean()))
        return float(np.mean(shares))

    def rows(self, figure: Figure) -> list[Row]:
        """The points of a figure with their intervals over repeats."""
        rows = []
        for stream in self.streams:
            for setting, place in on_axis(figure.axis):
                for mechanism in self.mechanisms:
                    values = self.values(stream, setting.key, mechanism, figure.measure)
                    if values is not None:
                        rows.append(_row(figure, stream, place, mechanism, mean_interval(values.tolist()), len(values)))
        return rows


def on_axis(axis: Axis) -> list[tuple[Setting, float]]:
    """The settings on an axis, in order."""
    found = [(setting, place) for setting in all_settings() for named, place in setting.places if named == axis]
    return sorted(found, key=lambda pair: pair[1])


def keys_on(axis: Axis) -> list[str]:
    """Their keys."""
    return [setting.key for setting, _ in on_axis(axis)]


def _row(figure: Figure, stream: str, place: float, mechanism: str, interval: Interval, repeats: int) -> Row:
    return {
        "figure": figure.name,
        "stream": stream,
        figure.axis: place,
        "mechanism": mechanism,
        figure.measure: interval.mean,
        "low": interval.low,
        "high": interval.high,
        f"ln_{figure.measure}": float(np.log(interval.mean)) if interval.mean > 0 else float("nan"),
        "repeats": repeats,
    }
