"""The black-box audit: an event is chosen on some runs of the publisher and counted on others.

Every requirement has one event that is counted, on runs that nothing was chosen on. Its share of alpha bounds its error.
The number of these runs is fixed before the first of them, by the speed of earlier runs: no output decides when to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from wevent.auditing.audit_subject import AuditSubject, Finding
from wevent.auditing.black_box.events import Event, best_event
from wevent.auditing.black_box.loss_bounds import proven_loss
from wevent.auditing.black_box.observations import Observations, observe
from wevent.auditing.black_box.stream_pairs import Pair, Victim, pairs_for
from wevent.core.requirements import Requirement
from wevent.errors import WeventError

Progress = Callable[[str, int, int | None], object]

PROMISES = (Requirement(1, 1), Requirement(2, 1), Requirement(3, 2))
"""Requirements of victims: epsilons that a few thousand runs can come near to."""
WHISPER = Requirement(1, "2e-9")
"""The strictest requirement: the widest noise."""
_STAGES = ((99, 0.2), (3, 0.3), (2, 0.4))  # how many pairs of a requirement are tried, until which part of the effort
_LEAST = 8  # runs of each stream to choose on
_COUNTED = 12  # runs of each stream to count on: as few as can prove anything
_BATCH = 10  # runs of one stream in a row


class Effort:
    """The effort of an audit: a duration, or a number of runs if the result must not depend on the machine."""

    def __init__(self, *, seconds: float = 0.0, trials: int = 0) -> None:
        self._seconds, self._trials = max(seconds, 1e-9), trials
        self._begun, self._made = time.perf_counter(), 0

    def add(self, trials: int) -> None:
        """Count runs that were made."""
        self._made += trials

    def part(self) -> float:
        """Return the part that was spent."""
        if self._trials:
            return self._made / self._trials
        return (time.perf_counter() - self._begun) / self._seconds

    def fits(self, part: float, seconds_per_run: float) -> int:
        """Return how many runs fit into a part of it."""
        if self._trials:
            return int(part * self._trials)
        return int(part * self._seconds / max(seconds_per_run, 1e-9))

    def progress(self) -> tuple[int, int]:
        """Return done and total, in runs or seconds."""
        total = self._trials or int(self._seconds)
        return min(int(self.part() * total), total), total


@dataclass
class _TriedPair:
    """A pair of streams and the runs on it so far."""

    pair: Pair
    parts: tuple[list[Observations], list[Observations]] = field(default_factory=lambda: ([], []))
    seconds: float = 0.0
    trials: int = 0

    @property
    def seconds_per_run(self) -> float:
        return self.seconds / max(self.trials, 1)

    def choice(self, future: int) -> tuple[float, Event]:
        """Return the best event by these runs, and the loss that `future` runs of each stream should prove with it."""
        here, there = (Observations.join(parts) for parts in self.parts)
        return best_event(self.pair, (here, there), future)

    def hits(self, event: Event) -> list[int]:
        """Return in how many runs of each stream an event happened."""
        return [event.hits(self.pair, Observations.join(parts)) for parts in self.parts]


def audit_black_box(
    subject: AuditSubject,
    effort: Effort,
    *,
    seed: int,
    confidence: float = 0.95,
    share: float = 1.0,
    promises: Sequence[Requirement] = (*PROMISES, WHISPER),
    progress: Progress | None = None,
) -> list[Finding]:
    """Return the largest loss that runs prove, for every requirement.

    Args:
        subject: the audited mechanism.
        effort: approximate effort; a few runs of every pair are made in any case.
        seed: decides which stream of a pair goes first; the noise is the subject's own and is not seeded.
        confidence: the probability that an honest subject is not called broken, all findings together.
        share: the part of 1 − confidence that belongs to this audit.
        promises: the requirements that are tried.
        progress: called with the current step, effort done and effort wanted.

    Raises:
        WeventError: from the subject if it refuses every pair of streams.
    """
    audit = _Audit(subject, effort, np.random.default_rng(seed), progress)
    explored = audit.explore(promises)
    alpha = (1.0 - confidence) * share / max(len(explored), 1)
    return [audit.prove(promise, alpha, confidence) for promise in explored]


def accepted_pairs(subject: AuditSubject, promises: Sequence[Requirement]) -> Iterator[Pair]:
    """Yield pairs of streams that a subject publishes; a refusal of a whole pair is no information about a user.

    Raises:
        WeventError: the last refusal if all are refused.
    """
    accepted, refusal = False, None
    for promise in promises:
        for pair in pairs_for(promise, Victim.from_options(subject.options), is_widest=promise == WHISPER):
            try:
                subject.make(pair.population, pair.cells, None)
            except WeventError as error:
                refusal = error
                continue
            accepted = True
            yield pair
    if refusal is not None and not accepted:
        raise refusal


class _Audit:
    def __init__(
        self, subject: AuditSubject, effort: Effort, random: np.random.Generator, progress: Progress | None
    ) -> None:
        self._subject, self._effort, self._random, self._progress = subject, effort, random, progress
        self._explored: dict[Requirement, list[_TriedPair]] = {}

    def explore(self, promises: Sequence[Requirement]) -> list[Requirement]:
        """Run every pair in turns; drop the least promising ones stage by stage."""
        for pair in accepted_pairs(self._subject, promises):
            self._explored.setdefault(pair.requirement, []).append(_TriedPair(pair))
        for number, until in _STAGES:
            tried = [self._best(pairs, number) for pairs in self._explored.values()]
            most = max(map(len, tried), default=0)
            while tried and (self._is_new(tried) or self._effort.part() < until):
                for turn in range(most):  # as many runs for every requirement, however few pairs it has
                    for pairs in tried:
                        self._add(pairs[turn % len(pairs)], _BATCH, "choosing")
        return list(self._explored)

    def prove(self, promise: Requirement, alpha: float, confidence: float) -> Finding:
        """Choose a pair and its event, then count on new runs."""
        begun = time.perf_counter()
        tried = self._explored[promise]
        choices = [(one, *one.choice(self._future(one))) for one in tried]
        chosen, _, event = max(choices, key=lambda choice: choice[1])
        number = self._future(chosen)  # fixed: no output from here on decides when to stop
        counted = _TriedPair(chosen.pair)
        for done in range(0, number, _BATCH):
            self._add(counted, min(_BATCH, number - done), "counting")
        hits = counted.hits(event)
        shown = proven_loss((hits[event.more_often], number), (hits[1 - event.more_often], number), alpha)
        seen = f"{hits[0]} of {number} runs, and in {hits[1]} of {number} of its neighbour"
        return Finding(
            audit="black box",
            requirement=promise,
            shown=shown,
            broken=shown > promise.epsilon,
            confidence=confidence,
            witness=f"{chosen.pair.name}: {event} in {seen}",
            trials=2 * number + sum(one.trials for one in tried),
            seconds=time.perf_counter() - begun + sum(one.seconds for one in tried),
        )

    def _best(self, tried: list[_TriedPair], number: int) -> list[_TriedPair]:
        """Return the most promising pairs; all of them before the first runs."""
        if len(tried) <= number or not tried[0].trials:
            return tried
        return sorted(tried, key=lambda one: one.choice(self._future(one))[0], reverse=True)[:number]

    def _future(self, one: _TriedPair) -> int:
        """Return how many runs of each stream there will be to count on."""
        part = (1.0 - _STAGES[-1][1]) / len(self._explored)
        return max(_COUNTED, self._effort.fits(part, one.seconds_per_run) // 2)

    @staticmethod
    def _is_new(tried: list[list[_TriedPair]]) -> bool:
        return any(one.trials < 2 * _LEAST for pairs in tried for one in pairs)

    def _add(self, one: _TriedPair, number: int, step: str) -> None:
        """Run both streams, in random order."""
        begun = time.perf_counter()
        for stream in self._random.permutation(2).tolist():
            one.parts[stream].append(observe(self._subject, one.pair, stream, number))
        one.seconds += time.perf_counter() - begun
        one.trials += 2 * number
        self._effort.add(2 * number)
        if self._progress is not None:
            self._progress(f"black box: {step}", *self._effort.progress())
