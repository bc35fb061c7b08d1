"""Before a deployment: what error to expect, and what it would be if people chose other levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.core.requirements import Levels, Population, Requirement
from wevent.errors import InvalidOption
from wevent.experiments.choices import Choice
from wevent.experiments.intervals import Interval, is_beyond_noise, mean_interval, ratio_interval
from wevent.experiments.replicates import Replicates
from wevent.experiments.streams.source import Recorded, Stream
from wevent.experiments.streams.synthetic import Binary, Daily
from wevent.experiments.trial import Scores, run_choice, score

_MOVED = 0.25  # of a class's users
_FEW = 5  # users of a class whose size gives them away

Progress = Callable[[str], object]


@dataclass(frozen=True)
class Expected:
    """What one mechanism would do."""

    mechanism: str
    scores: Scores

    @property
    def typical_error(self) -> Interval:
        """Root of the mean squared error: users per cell and slot, with its interval over repeats."""
        return mean_interval(np.sqrt(self.scores.amre).tolist())


@dataclass(frozen=True)
class Move:
    """Users choosing another level, and the squared error of the best mechanism then, against what it was."""

    source: Requirement
    target: Requirement
    users: int
    ratio: Interval


@dataclass(frozen=True)
class Plan:
    """What to expect of each mechanism, the best first; what moves would change; what to mind."""

    population: Population
    expected: tuple[Expected, ...]
    mean_count: float
    moves: tuple[Move, ...]
    warnings: tuple[str, ...]

    def advice(self) -> list[str]:
        """In sentences."""
        best = self.expected[0]
        error = best.typical_error.mean
        share = error / self.mean_count if self.mean_count else float("inf")
        sentences = [
            f"Use {best.mechanism}: a typical error of {error:,.3g} users per cell, "
            f"{share:.0%} of the mean count of {self.mean_count:,.3g}."
        ]
        if len(self.expected) > 1 and len(best.scores.amre) > 1:
            second = self.expected[1]
            ratio = ratio_interval(best.scores.amre.tolist(), second.scores.amre.tolist())
            if not is_beyond_noise(ratio):
                sentences.append(f"{second.mechanism} is within noise of it: choose by other needs.")
        if share > 0.5:
            sentences.append(
                "That is too much for single cells: use fewer cells, longer slots, shorter windows or larger epsilons."
            )
        helpful = [move for move in self.moves if move.ratio.high < 0.95]
        if helpful:
            most = min(helpful, key=lambda move: move.ratio.mean)
            sentences.append(
                f"Most would be gained if {most.users} users moved from {describe(most.source)} to "
                f"{describe(most.target)}: {most.ratio.mean - 1:+.0%} squared error."
            )
        elif self.moves:
            sentences.append("None of the moves lowers the error by more than noise.")
        return sentences


def describe(requirement: Requirement) -> str:
    """Short: `ε 0.6 in 120 slots`."""
    return f"ε {requirement.epsilon:g} in {requirement.window} slots"


def parse_class(text: str) -> tuple[Requirement, int]:
    """`120:0.6=7000` (window, epsilon, users) or `High/Large=7000` (words of the default levels).

    Raises:
        InvalidOption: for anything else.
        InvalidRequirement: for numbers that no promise can be built on.

    >>> parse_class("120:0.6=7000")
    (Requirement(window=120, epsilon=0.6), 7000)
    """
    level, _, users = text.rpartition("=")
    privacy, slash, window = level.partition("/")
    if users.strip().isdigit() and slash:
        return Levels.default().requirement(privacy.strip(), window.strip()), int(users)
    window, colon, epsilon = level.partition(":")
    if users.strip().isdigit() and colon and window.strip().isdigit():
        return Requirement(int(window), epsilon.strip()), int(users)
    raise InvalidOption(
        "a class as WINDOW:EPSILON=USERS or PRIVACY/WINDOW=USERS",
        f"{text!r}",
        "For example --class 120:0.6=7000 or --class High/Large=7000.",
        option="class",
        value=text,
    )


def population_of(classes: Sequence[tuple[Requirement, int]]) -> Population:
    """The planned population; a level named twice counts together."""
    sizes: dict[Requirement, int] = {}
    for requirement, users in classes:
        sizes[requirement] = sizes.get(requirement, 0) + users
    return Population(sizes)


def make_plan(
    stream: Stream,
    population: Population,
    choices: Sequence[Choice],
    *,
    repeats: int,
    seed: int,
    progress: Progress = lambda label: None,
) -> Plan:
    """Simulate every mechanism on a stream like theirs with the planned population, then the moves with the best."""
    replicates = _replicates(stream, population, repeats, seed)
    expected = []
    for choice in choices:
        progress(choice.label)
        expected.append(Expected(choice.label, score(run_choice(choice, replicates, seed=seed), replicates)))
    expected.sort(key=lambda one: float(one.scores.amre.mean()))
    best = Choice.parse(expected[0].mechanism)
    moves = []
    for source, target, users, moved in _moved(population):
        progress(f"{best.label}, moved")
        batch = _replicates(stream, moved, repeats, seed)
        errors = score(run_choice(best, batch, seed=seed), batch).amre
        moves.append(Move(source, target, users, ratio_interval(errors.tolist(), expected[0].scores.amre.tolist())))
    return Plan(population, tuple(expected), float(replicates.truth.mean()), tuple(moves), _warnings(population))


def _replicates(stream: Stream, population: Population, repeats: int, seed: int) -> Replicates:
    """The planned users live the lives of the stream's users; who is on which level is drawn anew in each repeat."""
    counts = []
    for repeat in range(repeats):
        people = _resized(stream, population.users, [seed, repeat])
        rows = np.repeat(np.arange(len(population)), population.sizes)
        np.random.default_rng([seed, repeat, 3]).shuffle(rows)
        counts.append(people.count(rows, len(population), seed=[seed, repeat]))
    return Replicates.of([population] * repeats, counts)


def _resized(stream: Stream, users: int, seed: Sequence[int]) -> Stream:
    if isinstance(stream, Recorded):
        return stream.resampled(users, seed=seed)
    if isinstance(stream, Binary):
        return Binary(stream.name, users, stream.slots, stream.variant)
    assert isinstance(stream, Daily)
    return Daily(users, stream.slots, stream.cell_count, stream.slots_per_day, stream.present)


def _moved(population: Population) -> list[tuple[Requirement, Requirement, int, Population]]:
    """All of the most demanding class to the next one; a quarter of each to the least and to the most demanding one."""
    sizes = {requirement: size for requirement, size in population.items() if size}
    by_demand = sorted(sizes, key=lambda one: (one.nano / one.window, one.nano))
    if len(by_demand) < 2:
        return []
    wanted = [(by_demand[0], by_demand[1], sizes[by_demand[0]])]
    for target in (by_demand[-1], by_demand[0]):
        wanted += [(one, target, round(sizes[one] * _MOVED)) for one in by_demand if one != target]
    moves = []
    for source, target, users in wanted:
        changed = {**sizes, source: sizes[source] - users, target: sizes[target] + users}
        if users:
            moves.append((source, target, users, Population({one: size for one, size in changed.items() if size})))
    return moves


def _warnings(population: Population) -> tuple[str, ...]:
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
    rates = [(one.nano / one.window, size) for one, size in population.items() if size]
    strictest = min(rate for rate, _ in rates)
    holders = sum(size for rate, size in rates if rate == strictest)
    if len(rates) > 1 and holders < 0.05 * population.users:
        found.append(
            f"{holders} of {population.users} users hold the most demanding level. Mechanisms with one budget for all "
            "(bd, ba, uniform, sample, lbu) give everyone theirs."
        )
    return tuple(found)


def to_dict(plan: Plan) -> dict[str, Any]:
    """In plain types."""
    return {
        "classes": [
            {"window": one.window, "epsilon": one.epsilon, "users": size} for one, size in plan.population.items()
        ],
        "mean_count": plan.mean_count,
        "mechanisms": [_expected(one) for one in plan.expected],
        "moves": [
            {
                "from": {"window": move.source.window, "epsilon": move.source.epsilon},
                "to": {"window": move.target.window, "epsilon": move.target.epsilon},
                "users": move.users,
                "amre_ratio": move.ratio.mean,
            }
            for move in plan.moves
        ],
        "warnings": list(plan.warnings),
        "advice": plan.advice(),
    }


def _expected(one: Expected) -> dict[str, Any]:
    return {
        "mechanism": one.mechanism,
        "amre": float(one.scores.amre.mean()),
        "typical_error": one.typical_error.mean,
        "mre": float(one.scores.mre.mean()),
        "mae": float(one.scores.mae.mean()),
        "fresh": float(one.scores.fresh.mean()),
        "worst_window_share": float(one.scores.worst_window_share.max()),
    }
