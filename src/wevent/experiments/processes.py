"""The runs of an experiment, in this process or in several: the figures do not depend on which."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from wevent.core.arrays import BoolArray
from wevent.experiments.contenders import Contender, PeerChoice
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.scores import Scores, SlotErrors, score
from wevent.experiments.trial import Draw, Published, Trial, noise_seed, publish, publish_peer
from wevent.noise import SeededNoise

Progress = Callable[[str, int, int], object]
"""Called with what runs now, how many runs are done, and how many there are."""


@dataclass(frozen=True)
class Job:
    """One mechanism over the people of one repeat; `secure` draws noise as a real publisher does, not from the seed."""

    draw: Draw
    repeat: int
    choice: Contender
    seed: int
    secure: bool = False


@dataclass(frozen=True)
class Finished:
    """What came of a job: all that is needed of it afterwards."""

    job: Job
    scores: Scores
    errors: SlotErrors
    fresh: BoolArray
    example: Published | None
    """What was given out in the first repeat, for pictures; None of others."""
    mean_count: float
    """Users per slot and cell."""


class Workers:
    """Runs jobs on one stream, each with the publisher itself, or with a peer.

    Args:
        stream: what is published.
        processes: how many; 1 stays in this process.
    """

    def __init__(self, stream: Stream, processes: int = 1) -> None:
        self._own = _Worker(stream)
        self._pool = (
            None
            if processes == 1
            else ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _settle_in, (stream,))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=error is None, cancel_futures=True)

    def first_trial(self, draw: Draw, choices: Sequence[Contender]) -> Trial:
        """The people of the first repeat, once every mechanism could be built for them.

        Raises:
            InvalidOption: for options that do not fit these people or cells; nothing has run yet.
        """
        trial = self._own.trial(draw, 0)
        for choice in choices:
            if not isinstance(choice, PeerChoice):
                choice.publisher(trial.population, trial.cells, None)
        return trial

    def run(self, jobs: Sequence[Job], progress: Progress, *, done: int = 0, total: int) -> Iterator[Finished]:
        """All of them, in their order; `done` runs of `total` were made before."""
        results = iter(map(self._own.run, jobs) if self._pool is None else self._pool.map(_run, jobs))
        for number, job in enumerate(jobs):
            progress(job.choice.label, done + number, total)
            yield next(results)


class _Worker:
    """Where jobs run: a stream, and the people of the last job, who are often those of the next one too."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._last: tuple[Draw, int, Trial] | None = None

    def trial(self, draw: Draw, repeat: int) -> Trial:
        if self._last is None or self._last[:2] != (draw, repeat):
            self._last = draw, repeat, draw.trial(self._stream, repeat)
        return self._last[2]

    def run(self, job: Job) -> Finished:
        trial = self.trial(job.draw, job.repeat)
        published = _published(job, trial)
        errors = SlotErrors.of(published.releases, trial.truth)
        scores = score(published, trial, errors)
        example = published if job.repeat == 0 else None
        return Finished(job, scores, errors, published.fresh, example, float(trial.truth.mean()))


def _published(job: Job, trial: Trial) -> Published:
    seed = noise_seed(job.choice, job.seed, 0, job.repeat)
    if isinstance(job.choice, PeerChoice):
        return publish_peer(job.choice.peer, trial, seed)
    return publish(job.choice, trial, None if job.secure else SeededNoise(seed))


_worker: _Worker | None = None  # of a worker process


def _settle_in(stream: Stream) -> None:
    global _worker
    _worker = _Worker(stream)


def _run(job: Job) -> Finished:
    assert _worker is not None
    return _worker.run(job)
