"""Repeats of several settings side by side: drawn, published together where a mechanism can, and scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wevent.experiments import metrics
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.reproduce.replicated import ENGINES
from wevent.experiments.reproduce.replicated.replicates import ReplicatedRun, Replicates
from wevent.experiments.scores import Scores, SlotErrors
from wevent.experiments.trial import Assigned, noise_seed, publish
from wevent.noise import SeededNoise

_BYTES = 400_000_000  # of arrays at a time


def batches(stream: Stream, draws: Sequence[tuple[Assigner, int]], *, seed: int) -> Iterator[Replicates]:
    """Repeats of one setting or of several, (how requirements are assigned, number of the repeat), side by side.

    As many at a time as memory allows. Every mechanism meets the same people and requirements in repeat r.
    """
    drawn = []
    size = 0
    for number, (assigner, repeat) in enumerate(draws):
        trial = Assigned(assigner, seed).trial(stream, repeat)
        drawn.append(trial)
        size += trial.counts.nbytes + 32 * trial.counts.shape[0] * trial.counts.shape[2]
        if size * (1.0 + 1.0 / len(drawn)) > _BYTES or number == len(draws) - 1:
            yield Replicates.of(drawn)
            drawn, size = [], 0


def run_replicates(choice: Choice, replicates: Replicates, *, seed: int, first: int = 0) -> ReplicatedRun:
    """Publish all replicates: together if the mechanism can, else one by one. `first` is the first one's number."""
    engine = ENGINES.get(choice.label)
    if engine is None:
        return run_publishers(choice, replicates, seed=noise_seed(choice, seed, first))
    return engine(replicates, np.random.default_rng(noise_seed(choice, seed, first)))


def run_publishers(choice: Choice, replicates: Replicates, *, seed: Sequence[int]) -> ReplicatedRun:
    """Publish every replicate with the publisher itself: what the engines are held against."""
    run = ReplicatedRun.empty(replicates)
    run.reach = np.full(run.releases.shape, np.nan)
    for number, trial in enumerate(replicates.trials):
        published = publish(choice, trial, SeededNoise([*seed, number]))
        run.releases[:, number] = published.releases
        run.fresh[:, number] = published.fresh
        assert published.charges is not None, "of a publisher"
        run.charges[:, number, : len(trial.population)] = published.charges
        run.reach[:, number] = (published.high - published.low) / 2.0
    return run


def score_replicates(run: ReplicatedRun, replicates: Replicates) -> Scores:
    """Compare with the truth: one figure per replicate."""
    shares, covered = [], []
    for number, population in enumerate(replicates.populations):
        releases, reach = run.releases[:, number], run.reach[:, number]
        shares.append(metrics.worst_window_share(run.charges[:, number, : len(population)], population))
        covered.append(metrics.coverage(replicates.truth[:, number], releases - reach, releases + reach))
    return Scores.of(SlotErrors.of(run.releases, replicates.truth), run.fresh, shares, covered)
