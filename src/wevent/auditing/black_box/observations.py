"""Public outputs of runs of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wevent.auditing.audit_subject import AuditSubject
from wevent.auditing.black_box.stream_pairs import Pair
from wevent.core.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Observations:
    """The outputs of runs, one run after the other.

    Attributes:
        values: published values: runs × slots × cells; NaN where nothing was published.
        dissimilarity: runs × slots; NaN where none was shown.
        outcomes: outcome of every slot, by run.
        thresholds: published thresholds, by run.
    """

    values: FloatArray
    dissimilarity: FloatArray
    outcomes: Sequence[tuple[str, ...]]
    thresholds: Sequence[str]

    def __len__(self) -> int:
        return len(self.outcomes)

    def fresh(self) -> BoolArray:
        """Return which slots were measured: runs × slots."""
        result: BoolArray = np.array([[outcome == "fresh" for outcome in run] for run in self.outcomes], dtype=bool)
        return result.reshape(self.values.shape[:2])

    def part(self, first: int, last: int | None) -> Observations:
        """Return some of the runs."""
        runs = slice(first, last)
        return Observations(self.values[runs], self.dissimilarity[runs], self.outcomes[runs], self.thresholds[runs])

    @classmethod
    def join(cls, parts: Iterable[Observations]) -> Observations:
        """Return runs on the same stream, one batch after the other."""
        batches = list(parts)
        return cls(
            np.concatenate([part.values for part in batches]),
            np.concatenate([part.dissimilarity for part in batches]),
            [outcomes for part in batches for outcomes in part.outcomes],
            [threshold for part in batches for threshold in part.thresholds],
        )


def observe(subject: AuditSubject, pair: Pair, stream: int, number: int) -> Observations:
    """Run new publishers of a subject, with noise of their own, on one of the two streams of a pair."""
    values = np.full((number, pair.slots, pair.cells), np.nan)
    distances = np.full((number, pair.slots), np.nan)
    runs: list[tuple[str, ...]] = []
    thresholds: list[str] = []
    for place in range(number):
        publisher = subject.make(pair.population, pair.cells, None)
        outcomes: list[str] = []
        shown: list[str] = []
        for slot, counts in enumerate(pair.streams[stream]):
            try:
                release = publisher.step(counts)
            except Exception as error:  # noqa: BLE001  everybody sees that the run stopped
                outcomes += [f"stopped with {type(error).__name__}"] * (pair.slots - slot)
                break
            outcomes.append(release.outcome)
            values[place, slot] = release.histogram
            shown.append(str(release.threshold))
            if release.dissimilarity is not None:
                distances[place, slot] = release.dissimilarity
        runs.append(tuple(outcomes))
        thresholds.append(" ".join(shown))
    return Observations(values, distances, runs, thresholds)
