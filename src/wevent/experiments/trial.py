"""One repeat of an experiment: its people, and a mechanism over all their slots."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, FloatArray
from wevent.core.mechanism import NoiseSource
from wevent.core.requirements import Population, Requirement
from wevent.experiments import metrics
from wevent.experiments.baselines import Baseline, BaselineAccountant, BaselineNoise
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.mechanism_specs import BaselineSpec, MechanismSpec, Spec
from wevent.experiments.requirement_sampling import Assigner, Registered
from wevent.noise import SeededNoise

TIMED_SLOTS = 200


@dataclass(frozen=True)
class Trial:
    """The people of one repeat: their classes, and users per slot, class and cell."""

    population: Population
    counts: npt.NDArray[np.int32]

    @property
    def cells(self) -> int:
        return int(self.counts.shape[2])

    @cached_property
    def truth(self) -> FloatArray:
        truth: FloatArray = self.counts.sum(axis=1, dtype=np.float64)
        return truth


class Draw(Protocol):
    """The people of every repeat: the same ones for every mechanism, so that differences can be taken in pairs."""

    def trial(self, stream: Stream, repeat: int) -> Trial:
        """Return the people of repeat 0, 1, …"""


@dataclass(frozen=True)
class Assigned:
    """The users of the stream, with requirements that an assigner gives them."""

    assigner: Assigner | Registered
    seed: int

    def trial(self, stream: Stream, repeat: int) -> Trial:
        """Draw people (if the stream is invented) and requirements from (seed, repeat)."""
        assignment = self.assigner.assign(stream.user_labels, seed=[self.seed, repeat])
        counts = stream.count(assignment.rows, len(assignment.population), seed=[self.seed, repeat])
        return Trial(assignment.population, counts)


@dataclass(frozen=True)
class Published:
    """The releases of all slots.

    Attributes:
        releases: published value per slot and cell.
        low, high: the stated 95 % interval per slot and cell; NaN where none is stated.
        fresh: whether a slot was measured anew.
        worst_window_share: the largest part of its epsilon that any class spent in any of its windows.
        has_valid_interval: whether a slot's interval is for the true count, not for the noise alone.
    """

    releases: FloatArray
    low: FloatArray
    high: FloatArray
    fresh: BoolArray
    worst_window_share: float
    has_valid_interval: BoolArray


def run_spec(spec: Spec, trial: Trial, seed: int, repeat: int) -> Published:
    """Run a mechanism or a baseline with seeded noise: every label and repeat has noise of its own."""
    noise = [seed, zlib.crc32(spec.label.encode()), 0, repeat]
    if isinstance(spec, BaselineSpec):
        return run_baseline(spec.baseline, trial, noise)
    return publish(spec, trial, SeededNoise(noise))


def publish(spec: MechanismSpec, trial: Trial, noise: NoiseSource | None) -> Published:
    """Publish every slot with `wevent.Publisher`; secure noise for None."""
    publisher = spec.publisher(trial.population, trial.cells, noise)
    releases = [publisher.step(counts) for counts in trial.counts.astype(np.int64)]
    low, high = np.full((2, *trial.truth.shape), np.nan)
    for slot, release in enumerate(releases):
        interval = release.noise_interval()
        if interval is not None:
            low[slot], high[slot] = interval
    charges = np.array([release.charges for release in releases], dtype=np.int64)
    return Published(
        np.array([release.histogram for release in releases], dtype=np.float64),
        low,
        high,
        np.array([release.fresh for release in releases], dtype=np.bool_),
        metrics.worst_window_share(charges, trial.population),
        np.array([release.honest for release in releases], dtype=np.bool_),
    )


def run_baseline(baseline: Baseline, trial: Trial, seed: Sequence[int]) -> Published:
    """Simulate every slot with a baseline, at the strictest requirement for all."""
    classes = trial.population.classes
    strictest = Requirement.from_nano(max(level.window for level in classes), min(level.nano for level in classes))
    accountant = BaselineAccountant(strictest)
    run = baseline.start(trial.cells, accountant, BaselineNoise(seed))
    steps = [run.step(counts) for counts in trial.counts.sum(axis=1, dtype=np.int64)]
    nothing = np.full(trial.truth.shape, np.nan)
    return Published(
        np.array([released for released, _ in steps], dtype=np.float64),
        nothing,
        nothing,
        np.array([fresh for _, fresh in steps], dtype=np.bool_),
        max(accountant.worst_window(level.window) / level.nano for level in classes),
        np.zeros(len(steps), dtype=np.bool_),
    )


def milliseconds_per_slot(spec: MechanismSpec, trial: Trial, *, slots: int = TIMED_SLOTS) -> float:
    """Return the time a publisher with secure noise takes for a slot, counting not included."""
    publisher = spec.publisher(trial.population, trial.cells, None)
    matrices = trial.counts[:slots].astype(np.int64)
    started = time.perf_counter()
    for matrix in matrices:
        publisher.step(matrix)
    return (time.perf_counter() - started) / len(matrices) * 1e3
