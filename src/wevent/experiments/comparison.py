"""Mechanisms side by side on one stream, ranked by their error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray
from wevent.errors import InvalidOption
from wevent.experiments.datasets import StreamRequest, as_stream
from wevent.experiments.datasets.stream import SlotTimes, Stream
from wevent.experiments.formatting import is_higher, is_lower
from wevent.experiments.intervals import Interval, known, mean_interval, ratio_interval
from wevent.experiments.mechanism_specs import MechanismSpec, options_in_slots, select
from wevent.experiments.processes import Finished, Job, Progress, run_jobs
from wevent.experiments.requirement_sampling import Assigner, Registered
from wevent.experiments.scores import Scores
from wevent.experiments.trial import TIMED_SLOTS, Assigned, Published, Trial, milliseconds_per_slot

SlotColumns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Compared:
    """One mechanism's figures; `ms_per_slot` is NaN if the time was not taken, as for baselines, which never publish."""

    stream: str
    mechanism: str
    scores: Scores
    ms_per_slot: float
    example: Published
    """The releases of the first repeat, for pictures."""

    @property
    def amre(self) -> Interval:
        """The mean squared error with its interval over repeats."""
        return mean_interval(self.scores.amre.tolist())

    def to_dict(self, *, normalised: bool = False) -> dict[str, Any]:
        """Return the figures in plain types; only `ms_per_slot` differs between two runs with the same seed."""
        scores, interval = self.scores, self.amre
        stated = scores.coverage[~np.isnan(scores.coverage)]
        return {
            "mechanism": self.mechanism,
            "amre": interval.mean,
            "amre_std": float(scores.amre.std(ddof=1)) if len(scores.amre) > 1 else 0.0,
            "amre_low": known(interval.low),
            "amre_high": known(interval.high),
            "ajsd": float((scores.ajsd_normalised if normalised else scores.ajsd).mean()),
            "mre": float(scores.mre.mean()),
            "mae": float(scores.mae.mean()),
            "fresh": float(scores.fresh.mean()),
            "ms_per_slot": known(self.ms_per_slot),
            "worst_window_share": float(scores.worst_window_share.max()),
            "covered": float(stated.mean()) if len(stated) else None,
        }


@dataclass(frozen=True)
class Comparison:
    """All mechanisms, the one with the smallest error first."""

    ranked: tuple[Compared, ...]
    truth: FloatArray
    """Of the first repeat, slots × cells."""
    cells: Sequence[Any]
    users: int
    """Registered ones of the first repeat."""
    times: SlotTimes
    """When the slots are, as far as the stream knows."""
    seed: int
    per_slot: SlotColumns
    """Errors by stream, mechanism, repeat and slot; empty unless asked for."""
    left_out: Mapping[str, str]
    """Mechanisms that do not take the options, and why."""

    def to_dict(self, *, normalised: bool = False) -> dict[str, Any]:
        """Return every mechanism's figures, the best first, and the findings in plain types.

        Args:
            normalised: whether the Jensen-Shannon divergence is of shares, not of raw counts as in the authors' code.
        """
        return {
            "stream": self.ranked[0].stream,
            "users": self.users,
            "slots": len(self.truth),
            "cells": list(self.cells),
            "mechanisms": [row.to_dict(normalised=normalised) for row in self.ranked],
            "findings": self.findings(),
            "left_out": dict(self.left_out),
        }

    def against_next(self, place: int) -> Interval | None:
        """Return the error of the mechanism at this place divided by that of the next one; None for the last."""
        if place + 1 >= len(self.ranked):
            return None
        return ratio_interval(self.ranked[place].scores.amre.tolist(), self.ranked[place + 1].scores.amre.tolist())

    def findings(self) -> list[str]:
        """State the differences that are beyond noise, in sentences."""
        if len(self.ranked[0].scores.amre) < 2:
            few = "One repeat cannot tell differences from chance: compare 5 repeats or more."
            return [few, *self._by_relative_error()]
        sentences = []
        for place in range(len(self.ranked) - 1):
            ratio = self.against_next(place)
            assert ratio is not None
            better, worse = self.ranked[place].mechanism, self.ranked[place + 1].mechanism
            figures = f"{ratio.mean:.3g} times the error of {worse} (95 % interval {ratio.low:.3g} to {ratio.high:.3g})"
            if is_higher(ratio):  # the mean, by which they are ranked, says something else than most repeats
                sentences.append(f"{better} has {figures} in a typical repeat, but fewer large ones: a smaller mean.")
            else:
                sentences.append(f"{better} has {figures}: {'beyond' if is_lower(ratio) else 'within'} noise.")
        return [*sentences, *self._by_relative_error()]

    def _by_relative_error(self) -> list[str]:
        """Name the best by relative error, where small counts weigh as much as large ones, if it is another one."""
        first = self.ranked[0]
        best = min(self.ranked, key=lambda row: float(row.scores.mre.mean()))
        if best is first:
            return []
        own, others = float(best.scores.mre.mean()), float(first.scores.mre.mean())
        return [f"By relative error {best.mechanism} comes first: {own:.3g}, {first.mechanism} has {others:.3g}."]


def compare(
    stream: Stream | StreamRequest | str = "sin",
    mechanisms: Sequence[str] | str | None = None,
    *,
    assigner: Assigner | Registered | None = None,
    options: Mapping[str, Any] | None = None,
    repeats: int = 5,
    seed: int = 1,
    processes: int = 1,
    timed_slots: int = TIMED_SLOTS,
    per_slot: bool = False,
    progress: Progress = lambda label, done, total: None,
) -> Comparison:
    """Publish a stream whose truth is known with every mechanism, several times, and measure the errors.

    Every run of a mechanism is made by `wevent.Publisher` itself; baselines, other published mechanisms in a corrected
    form, are simulated at the strictest requirement. It is a simulation: it sees the truth, and its noise is seeded, so
    the output protects nobody.

    Args:
        stream: a stream of `wevent.experiments.datasets`, a request for one, or its name, such as "sin" or
            "file:events.csv".
        mechanisms: one or several of `wevent.mechanisms()`, also with options of their own, such as "ba:std", "pbd:refund",
            and of the baselines spas, rescuedp, fast, pegasus, adapub; None for all that take the options.
        assigner: who asks for what; the paper's ten types if None.
        options: of `wevent.Publisher`, for all mechanisms, such as {"neighbours": "replace", "refund": True}.
        repeats: runs of each mechanism; repeat r has the same people and requirements for all of them.
        seed: the same seed gives the same figures, but for the time.
        processes: how many run at once. More than one needs the usual guard of a main module (`if __name__ …`), and
            mechanisms that are built in or installed, not registered by the calling program.
        timed_slots: slots over which the time of a slot is taken, with secure noise and alone; 0 takes none.
        per_slot: whether to keep the errors of every slot.
        progress: called before each run with what runs, how many runs are done and how many there are.

    Raises:
        InvalidOption: for a stream, an assignment or an option that cannot be; UnknownMechanism for a mechanism.

    >>> comparison = compare("log", ["pba", "uniform"], repeats=2, timed_slots=0)
    >>> print(*(row.mechanism for row in comparison.ranked))
    pba uniform
    """
    check_counts(repeats=repeats, seed=seed, processes=processes, timed_slots=timed_slots)
    source = as_stream(stream, options)
    options = options_in_slots(options, source)
    specs, left_out = select(mechanisms, options, baselines=True)
    draw = Assigned(assigner or Assigner(), seed)
    first = draw.trial(source, 0)
    check_fit(specs, first)
    jobs = [Job(0, repeat, spec) for repeat in range(repeats) for spec in specs]
    timed = [spec for spec in specs if isinstance(spec, MechanismSpec)] if timed_slots else []
    total = len(jobs) + len(timed)
    finished = run_jobs(source, [draw], jobs, seed=seed, processes=processes, progress=progress, total=total)
    speeds: dict[str, float] = {}
    for number, spec in enumerate(timed):
        progress(f"{spec.label}, time", len(jobs) + number, total)
        speeds[spec.label] = milliseconds_per_slot(spec, first, slots=timed_slots)
    compared = [_compared(source.name, spec.label, finished, speeds.get(spec.label, math.nan)) for spec in specs]
    compared.sort(key=lambda row: float(row.scores.amre.mean()))
    columns: SlotColumns = {}
    if per_slot:
        parts = [_slots_of(source.name, result) for result in finished]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Comparison(
        tuple(compared), first.truth, source.cells, first.population.users, source.times, seed, columns, left_out
    )


def check_counts(**numbers: object) -> None:
    """Check whole numbers; seed and timed_slots may be 0, others are at least 1.

    Raises:
        InvalidOption: naming the argument.
    """
    for name, value in numbers.items():
        least = 0 if name in ("seed", "timed_slots") else 1
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise InvalidOption(
                f"{name} must be a whole number, at least {least}.", "Correct it.", option=name, value=value
            )


def check_fit(specs: Sequence[object], trial: Trial) -> None:
    """Build every mechanism for these people before anything runs.

    Raises:
        InvalidOption: for options that do not fit these people or cells.
    """
    for spec in specs:
        if isinstance(spec, MechanismSpec):
            spec.publisher(trial.population, trial.cells, None)


def _compared(stream: str, label: str, finished: Sequence[Finished], speed: float) -> Compared:
    own = [result for result in finished if result.job.spec.label == label]
    example = own[0].example
    assert example is not None, "of the first repeat"
    return Compared(stream, label, Scores.joined([result.scores for result in own]), speed, example)


def _slots_of(stream: str, result: Finished) -> SlotColumns:
    slots = len(result.fresh)
    return {
        "stream": np.full(slots, stream, dtype=object),
        "mechanism": np.full(slots, result.job.spec.label, dtype=object),
        "repeat": np.full(slots, result.job.repeat + 1),
        "slot": np.arange(1, slots + 1),
        "fresh": result.fresh,
        "squared_error": result.errors.squared_error,
        "absolute_error": result.errors.absolute_error,
        "relative_error": result.errors.relative_error,
        "jensen_shannon": result.errors.jensen_shannon,
    }
