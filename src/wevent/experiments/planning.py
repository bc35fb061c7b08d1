"""Expected errors before a deployment, and how they change if users choose other levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidPopulation
from wevent.experiments.comparison import check_counts, check_fit
from wevent.experiments.datasets import StreamRequest, as_stream
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.datasets.synthetic import Daily
from wevent.experiments.forecast import Expected, Forecast, Move, describe
from wevent.experiments.intervals import ratio_interval
from wevent.experiments.mechanism_specs import MechanismSpec, Spec, options_in_slots, select
from wevent.experiments.processes import Finished, Job, Progress, run_jobs
from wevent.experiments.scores import Scores
from wevent.experiments.trial import Trial

_MOVED = 0.25  # of a class's users
_FEW = 5  # users of a class whose size gives them away
_SLOTS, _CELLS, _SLOTS_PER_DAY = 500, 10, 24  # of the invented stream


@dataclass(frozen=True)
class Planned:
    """The planned users live the lives of the stream's users; who is on which level is drawn anew in each repeat."""

    population: Population
    seed: int

    def trial(self, stream: Stream, repeat: int) -> Trial:
        """Return as many users as planned, drawn from (seed, repeat)."""
        people = stream.resized(self.population.users, seed=[self.seed, repeat])
        rows = np.repeat(np.arange(len(self.population)), self.population.sizes)
        np.random.default_rng([self.seed, repeat, 3]).shuffle(rows)
        return Trial(self.population, people.count(rows, len(self.population), seed=[self.seed, repeat]))


def plan(
    population: Population,
    stream: Stream | StreamRequest | str | None = None,
    *,
    mechanisms: Sequence[str] | str | None = None,
    options: Mapping[str, Any] | None = None,
    repeats: int = 5,
    seed: int = 1,
    processes: int = 1,
    progress: Progress = lambda label, done, total: None,
) -> Forecast:
    """Simulate every mechanism on a stream like yours with the planned population, then moves with the best one.

    Every run is made by `wevent.Publisher` itself, with seeded noise; it sees the truth of the stream.

    Args:
        population: the levels people will hold, and how many users each.
        stream: one that resembles yours: a stream of `wevent.experiments.datasets`, a request for one, or its name;
            None for an invented one with ten cells, slots of an hour and a daily rhythm.
        mechanisms, options, repeats, seed, processes, progress: as of `wevent.experiments.compare`.

    Raises:
        InvalidPopulation: if nobody is in it.
        InvalidOption: for a stream or an option that cannot be; UnknownMechanism for a mechanism.

    >>> forecast = plan(Population({Requirement(24, 1): 900, Requirement(48, "0.5"): 100}), mechanisms=["pba"], repeats=2)
    >>> len(forecast.moves), forecast.warnings
    (3, ())
    """
    if not isinstance(population, Population) or not population.users:
        raise InvalidPopulation("The planned population has no user.", "Give the number of users of each level.")
    check_counts(repeats=repeats, seed=seed, processes=processes)
    daily = Daily(population.users, _SLOTS, _CELLS, _SLOTS_PER_DAY)
    source = daily if stream is None else as_stream(stream, options)
    specs, left_out = select(mechanisms, options_in_slots(options, source))
    everyone = Planned(population, seed)
    check_fit(specs, everyone.trial(source, 0))
    shifts = _moved(population)
    total = (len(specs) + len(shifts)) * repeats
    jobs = [Job(0, repeat, spec) for repeat in range(repeats) for spec in specs]
    finished = run_jobs(source, [everyone], jobs, seed=seed, processes=processes, progress=progress, total=total)
    expected = sorted(_expectations(specs, finished), key=lambda row: float(row.scores.amre.mean()))
    best = next(spec for spec in specs if spec.label == expected[0].mechanism)
    moved = run_jobs(
        source,
        [Planned(shift.population, seed) for shift in shifts],
        [Job(number, repeat, best) for number in range(len(shifts)) for repeat in range(repeats)],
        seed=seed,
        processes=processes,
        progress=progress,
        done=len(jobs),
        total=total,
    )
    before = expected[0].scores.amre.tolist()
    moves = []
    for number, shift in enumerate(shifts):
        own = moved[number * repeats : (number + 1) * repeats]
        after = Scores.joined([result.scores for result in own]).amre.tolist()
        moves.append(Move(shift.source, shift.target, shift.users, ratio_interval(after, before)))
    return Forecast(
        population,
        tuple(expected),
        float(np.mean([result.mean_count for result in finished])),
        tuple(moves),
        population_warnings(population),
        source.name,
        left_out,
        seed,
    )


def expect(
    population: Population,
    stream: Stream,
    mechanism: str,
    options: Mapping[str, Any],
    *,
    repeats: int = 2,
    seed: int = 1,
) -> Scores:
    """Return the scores of one mechanism on a stream like yours: the first part of `plan`, in this process."""
    spec = MechanismSpec.parse(mechanism, options)
    jobs = [Job(0, repeat, spec) for repeat in range(repeats)]
    finished = run_jobs(
        stream, [Planned(population, seed)], jobs, seed=seed, processes=1, progress=lambda *_: None, total=repeats
    )
    return Scores.joined([result.scores for result in finished])


def _expectations(specs: Sequence[Spec], finished: Sequence[Finished]) -> list[Expected]:
    scores: dict[str, list[Scores]] = {spec.label: [] for spec in specs}
    for result in finished:
        scores[result.job.spec.label].append(result.scores)
    return [Expected(label, Scores.joined(parts)) for label, parts in scores.items()]


@dataclass(frozen=True)
class _Shift:
    """Users who would move, and everyone's levels then."""

    source: Requirement
    target: Requirement
    users: int
    population: Population


def _moved(population: Population) -> list[_Shift]:
    """Move all of the most demanding class to the next one, and a quarter of each to the least and the most demanding."""
    sizes = {requirement: size for requirement, size in population.items() if size}
    by_demand = sorted(sizes, key=lambda level: (level.nano / level.window, level.nano))
    if len(by_demand) < 2:
        return []
    wanted = [(by_demand[0], by_demand[1], sizes[by_demand[0]])]
    for target in (by_demand[-1], by_demand[0]):
        wanted += [(level, target, round(sizes[level] * _MOVED)) for level in by_demand if level != target]
    moves = []
    for source, target, users in wanted:
        changed = {**sizes, source: sizes[source] - users, target: sizes[target] + users}
        if users:
            moves.append(
                _Shift(source, target, users, Population({level: size for level, size in changed.items() if size}))
            )
    return moves


def population_warnings(population: Population) -> tuple[str, ...]:
    """Warn of small classes, whose sizes are public, and of few users who set the budget of all."""
    found = []
    for requirement, size in population.items():
        if size == 1:
            found.append(
                f"The class {describe(requirement)} has one user. Class sizes are public: everyone can see that "
                "somebody asked for just this, and when they join or leave. Offer fewer levels, or give this user a "
                "stricter one."
            )
        elif 1 < size < _FEW:
            found.append(f"The class {describe(requirement)} has {size} users only, and class sizes are public.")
    rates = [(level.nano / level.window, size) for level, size in population.items() if size]
    strictest = min(rate for rate, _ in rates)
    holders = sum(size for rate, size in rates if rate == strictest)
    if len(rates) > 1 and holders < 0.05 * population.users:
        found.append(
            f"{holders} of {population.users} users hold the most demanding level. Mechanisms with one budget for all "
            "(bd, ba, uniform, sample, lbu) give everyone theirs."
        )
    return tuple(found)
