"""One mechanism on one stream, several times: what every experiment is made of."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.experiments import metrics
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice
from wevent.experiments.replicated import ENGINES
from wevent.experiments.replicates import Replicates, Run
from wevent.experiments.single import run_single
from wevent.experiments.streams.source import Stream

_BYTES = 400_000_000  # of arrays at a time


@dataclass(frozen=True)
class Scores:
    """One figure per repeat; see `wevent.experiments.metrics`."""

    amre: FloatArray
    ajsd: FloatArray
    ajsd_normalised: FloatArray
    mre: FloatArray
    mae: FloatArray
    fresh: FloatArray
    worst_window_share: FloatArray
    coverage: FloatArray

    @classmethod
    def joined(cls, parts: list[Scores]) -> Scores:
        """The repeats of several batches."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


def batches(stream: Stream, draws: Sequence[tuple[Assigner, int]], *, seed: int) -> Iterator[Replicates]:
    """Repeats of one setting or of several, (how requirements are assigned, number of the repeat), side by side.

    As many at a time as memory allows. Repeat r draws its own people (if the stream is invented) and requirements from
    (seed, r): every mechanism meets the same ones, so differences can be taken repeat by repeat.
    """
    drawn = []
    size = 0
    for number, (assigner, repeat) in enumerate(draws):
        assignment = assigner.assign(stream.user_labels, seed=[seed, repeat])
        counts = stream.count(assignment.rows, len(assignment.population), seed=[seed, repeat])
        drawn.append((assignment.population, counts))
        size += counts.nbytes + 32 * counts.shape[0] * counts.shape[2]
        if size * (1.0 + 1.0 / len(drawn)) > _BYTES or number == len(draws) - 1:
            populations, matrices = zip(*drawn, strict=True)
            yield Replicates.of(populations, matrices)
            drawn, size = [], 0


def run_choice(choice: Choice, replicates: Replicates, *, seed: int, first: int = 0) -> Run:
    """Publish all replicates: together if the mechanism can, else one by one. `first` is the first one's number."""
    seeds = [seed, zlib.crc32(choice.label.encode()), first]
    engine = ENGINES.get(choice.label)
    if engine is None:
        return run_single(choice, replicates, seed=seeds)
    return engine(replicates, np.random.default_rng(seeds))


def score(run: Run, replicates: Replicates) -> Scores:
    """Compare with the truth."""
    truth = replicates.truth
    relative = metrics.relative_errors(run.releases, truth)
    spent, covered = [], []
    for replicate, population in enumerate(replicates.populations):
        charges = run.charges[:, replicate, : len(population)]
        spent.append(metrics.worst_window_share(charges, population))
        covered.append(metrics.coverage(run.releases[:, replicate], truth[:, replicate], run.reach[:, replicate]))
    filled = ~np.isnan(relative)
    return Scores(
        amre=metrics.squared_errors(run.releases, truth).mean(axis=0),
        ajsd=metrics.jensen_shannon(run.releases, truth).mean(axis=0),
        ajsd_normalised=metrics.jensen_shannon(run.releases, truth, normalised=True).mean(axis=0),
        mre=np.where(filled, relative, 0.0).sum(axis=0) / np.maximum(filled.sum(axis=0), 1),
        mae=metrics.absolute_errors(run.releases, truth).mean(axis=0),
        fresh=run.fresh.sum(axis=0).astype(np.float64),
        worst_window_share=np.array(spent),
        coverage=np.array(covered),
    )
