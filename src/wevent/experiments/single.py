"""Single runs: the publisher itself over each repeat, one after the other, and how long a slot takes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wevent.core.requirements import Population
from wevent.experiments.choices import Choice
from wevent.experiments.replicates import Replicates, Run
from wevent.noise import SeededNoise

TIMED_SLOTS = 200


def run_single(choice: Choice, replicates: Replicates, *, seed: Sequence[int]) -> Run:
    """Publish every replicate with seeded noise: for mechanisms without a replicated version."""
    run = Run.empty(replicates)
    run.reach = np.full(run.releases.shape, np.nan)
    for replicate, population in enumerate(replicates.populations):
        publisher = choice.publisher(population, replicates.cells, SeededNoise([*seed, replicate]))
        classes = len(population)
        for slot, counts in enumerate(replicates.counts[:, replicate, :classes].astype(np.int64)):
            release = publisher.step(counts)
            run.releases[slot, replicate] = release.histogram
            run.fresh[slot, replicate] = release.fresh
            run.charges[slot, replicate, :classes] = release.charges
            interval = release.interval()
            if interval is not None:
                run.reach[slot, replicate] = (interval[1] - interval[0]) / 2.0
    return run


def milliseconds_per_slot(
    choice: Choice, population: Population, counts: npt.NDArray[np.int32], *, slots: int = TIMED_SLOTS
) -> float:
    """The time a publisher with secure noise takes for a slot, counting not included; over the first `slots` slots."""
    publisher = choice.publisher(population, counts.shape[2], None)
    matrices = counts[:slots].astype(np.int64)
    started = time.perf_counter()
    for matrix in matrices:
        publisher.step(matrix)
    return (time.perf_counter() - started) / len(matrices) * 1e3
