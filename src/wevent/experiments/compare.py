"""Mechanisms side by side on one stream, ranked by their error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray
from wevent.experiments import metrics
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice
from wevent.experiments.intervals import Interval, is_beyond_noise, mean_interval, ratio_interval
from wevent.experiments.replicates import Replicates, Run
from wevent.experiments.single import milliseconds_per_slot
from wevent.experiments.streams.source import Stream
from wevent.experiments.trial import Scores, batches, run_choice, score

Progress = Callable[[str], object]
Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Compared:
    """One mechanism's figures."""

    stream: str
    mechanism: str
    scores: Scores
    ms_per_slot: float
    example: FloatArray
    """The releases of the first repeat, slots × cells, for pictures."""

    @property
    def amre(self) -> Interval:
        """The mean squared error with its interval over repeats."""
        return mean_interval(self.scores.amre.tolist())

    def to_dict(self, *, normalised: bool = False) -> dict[str, Any]:
        """The figures in plain types; only `ms_per_slot` differs between two runs with the same seed."""
        scores = self.scores
        divergence = scores.ajsd_normalised if normalised else scores.ajsd
        return {
            "stream": self.stream,
            "mechanism": self.mechanism,
            "amre": float(scores.amre.mean()),
            "amre_std": float(scores.amre.std(ddof=1)) if len(scores.amre) > 1 else 0.0,
            "ajsd": float(divergence.mean()),
            "mre": float(scores.mre.mean()),
            "mae": float(scores.mae.mean()),
            "fresh": float(scores.fresh.mean()),
            "ms_per_slot": self.ms_per_slot,
            "worst_window_share": float(scores.worst_window_share.max()),
            "repeats": len(scores.amre),
        }


@dataclass(frozen=True)
class Comparison:
    """All mechanisms, the one with the smallest error first."""

    ranked: tuple[Compared, ...]
    truth: FloatArray
    """Of the first repeat, slots × cells."""
    cells: Sequence[Any]
    per_slot: Columns

    def against_next(self, place: int) -> Interval | None:
        """The error of the mechanism at this place divided by that of the next one; None for the last."""
        if place + 1 >= len(self.ranked):
            return None
        return ratio_interval(self.ranked[place].scores.amre.tolist(), self.ranked[place + 1].scores.amre.tolist())

    def findings(self) -> list[str]:
        """Which differences are beyond noise, in sentences."""
        if len(self.ranked[0].scores.amre) < 2:
            return ["One repeat says nothing about noise: use --repeats 5 or more to tell differences from chance."]
        sentences = []
        for place in range(len(self.ranked) - 1):
            ratio = self.against_next(place)
            assert ratio is not None
            better, worse = self.ranked[place].mechanism, self.ranked[place + 1].mechanism
            verdict = "beyond noise" if is_beyond_noise(ratio) else "within noise"
            sentences.append(
                f"{better} has {ratio.mean:.3g} times the error of {worse} "
                f"(95 % interval {ratio.low:.3g} to {ratio.high:.3g}): {verdict}."
            )
        return sentences


def compare(
    stream: Stream,
    assigner: Assigner,
    choices: Sequence[Choice],
    *,
    repeats: int,
    seed: int,
    per_slot: bool = False,
    progress: Progress = lambda label: None,
) -> Comparison:
    """Run every mechanism on the same people, repeat by repeat; `progress` is called with a label before each run."""
    parts: dict[str, list[Scores]] = {choice.label: [] for choice in choices}
    examples: dict[str, FloatArray] = {}
    speeds: dict[str, float] = {}
    slot_columns: list[Columns] = []
    truth: FloatArray | None = None
    first = 0
    for replicates in batches(stream, [(assigner, repeat) for repeat in range(repeats)], seed=seed):
        for choice in choices:
            progress(choice.label)
            run = run_choice(choice, replicates, seed=seed, first=first)
            parts[choice.label].append(score(run, replicates))
            if per_slot:
                slot_columns.append(_slots(stream.name, choice, run, replicates, first))
            if first == 0:
                examples[choice.label] = run.releases[:, 0].copy()
                speeds[choice.label] = _speed(choice, replicates)
        if truth is None:
            truth = replicates.truth[:, 0].copy()
        first += len(replicates)
    compared = [
        Compared(
            stream.name,
            choice.label,
            Scores.joined(parts[choice.label]),
            speeds[choice.label],
            examples[choice.label],
        )
        for choice in choices
    ]
    compared.sort(key=lambda one: float(one.scores.amre.mean()))
    assert truth is not None
    columns = (
        {name: np.concatenate([part[name] for part in slot_columns]) for name in slot_columns[0]} if per_slot else {}
    )
    return Comparison(tuple(compared), truth, stream.cells, columns)


def _speed(choice: Choice, replicates: Replicates) -> float:
    population = replicates.populations[0]
    return milliseconds_per_slot(choice, population, replicates.counts[:, 0, : len(population)])


def _slots(stream: str, choice: Choice, run: Run, replicates: Replicates, first: int) -> Columns:
    """One row per repeat and slot."""
    slots, repeats = run.fresh.shape
    truth = replicates.truth
    return {
        "stream": np.full(slots * repeats, stream, dtype=object),
        "mechanism": np.full(slots * repeats, choice.label, dtype=object),
        "repeat": np.repeat(np.arange(first + 1, first + repeats + 1), slots),
        "slot": np.tile(np.arange(1, slots + 1), repeats),
        "fresh": run.fresh.T.ravel(),
        "squared_error": metrics.squared_errors(run.releases, truth).T.ravel(),
        "absolute_error": metrics.absolute_errors(run.releases, truth).T.ravel(),
        "relative_error": metrics.relative_errors(run.releases, truth).T.ravel(),
        "jensen_shannon": metrics.jensen_shannon(run.releases, truth).T.ravel(),
    }
