"""The runs of an experiment, in this process or in several: the figures do not depend on which."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from wevent.core.arrays import BoolArray
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.mechanism_specs import Spec
from wevent.experiments.scores import Scores, SlotErrors, score
from wevent.experiments.trial import Draw, Published, Trial, run_spec

Progress = Callable[[str, int, int], object]
"""Called with the label of the next run, the number of finished runs and of all runs."""


class Job(NamedTuple):
    """One mechanism over the people of one repeat: `draw` is the number of their draw."""

    draw: int
    repeat: int
    spec: Spec


@dataclass(frozen=True)
class Finished:
    """The result of a job; the releases of the first repeat only, for pictures. `mean_count` is per slot and cell."""

    job: Job
    scores: Scores
    errors: SlotErrors
    fresh: BoolArray
    example: Published | None
    mean_count: float


def run_jobs(
    stream: Stream,
    draws: Sequence[Draw],
    jobs: Sequence[Job],
    *,
    seed: int,
    processes: int,
    progress: Progress,
    done: int = 0,
    total: int,
) -> list[Finished]:
    """Run all jobs, in their order; `done` runs of `total` were made before."""
    results = []
    worker = _Worker(stream, draws, seed)
    pool = (
        ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (worker,))
        if processes > 1
        else None
    )
    try:
        running = iter(map(worker.run, jobs) if pool is None else pool.map(_run, jobs))
        for number, job in enumerate(jobs):
            progress(job.spec.label, done + number, total)
            results.append(next(running))
    finally:
        if pool is not None:
            pool.shutdown(wait=len(results) == len(jobs), cancel_futures=True)
    return results


class _Worker:
    """Runs jobs on a stream, and keeps the people of the last one, who are often those of the next one too."""

    def __init__(self, stream: Stream, draws: Sequence[Draw], seed: int) -> None:
        self._stream, self._draws, self._seed = stream, draws, seed
        self._last: tuple[tuple[int, int], Trial] | None = None

    def run(self, job: Job) -> Finished:
        place = job.draw, job.repeat
        if self._last is None or self._last[0] != place:
            self._last = place, self._draws[job.draw].trial(self._stream, job.repeat)
        trial = self._last[1]
        published = run_spec(job.spec, trial, self._seed, job.repeat)
        errors = SlotErrors.of(published.releases, trial.truth)
        example = published if job.repeat == 0 else None
        return Finished(
            job, score(published, trial, errors), errors, published.fresh, example, float(trial.truth.mean())
        )


_worker: _Worker | None = None  # of a worker process


def _begin(worker: _Worker) -> None:
    global _worker
    _worker = worker


def _run(job: Job) -> Finished:
    assert _worker is not None
    return _worker.run(job)
