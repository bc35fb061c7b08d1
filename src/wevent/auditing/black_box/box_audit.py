"""The black-box audit: choose on some runs, count on others, and say what that proves.

Every requirement has one event that is counted, on runs that nothing was chosen on: the share of alpha that it gets is all
that it can be wrong by. Numbers of runs are settled before these runs, by the speed of earlier ones: nothing that is seen
decides when to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from wevent.auditing.audit_subject import Finding
from wevent.auditing.black_box.effort import Effort
from wevent.auditing.black_box.proven_loss import proven_loss
from wevent.auditing.black_box.tried_pair import Runs, TriedPair
from wevent.core.requirements import Requirement

Progress = Callable[[str, int, int | None], object]

_STAGES = ((99, 0.2), (3, 0.3), (2, 0.4))  # how many pairs of a requirement are tried, until which part of the effort
_LEAST = 8  # runs of each stream to choose on
_COUNTED = 12  # runs of each stream to count on: as few as can prove anything


def audit_black_box(
    runs: Runs,
    effort: Effort,
    *,
    seed: int,
    confidence: float = 0.95,
    share: float = 1.0,
    progress: Progress | None = None,
) -> list[Finding]:
    """The largest loss that is proven for every requirement by what everybody can see.

    Args:
        runs: what is audited.
        effort: about how much; a few runs of every pair are made in any case.
        seed: which stream of a pair goes first; the noise is the subject's own and is not seeded.
        confidence: the probability with which an honest subject is not called broken, by everything reported together.
        share: the part of 1 − confidence that belongs to this audit, where there are others.
        progress: told what is at work, how much is done and how much is wanted.
    """
    audit = _Audit(runs, effort, np.random.default_rng(seed), progress)
    explored = audit.explore()
    alpha = (1.0 - confidence) * share / max(len(explored), 1)
    return [audit.prove(promise, alpha, confidence) for promise in explored]


class _Audit:
    def __init__(self, runs: Runs, effort: Effort, random: np.random.Generator, progress: Progress | None) -> None:
        self._runs, self._effort, self._random, self._progress = runs, effort, random, progress
        self._explored: dict[Requirement, list[TriedPair]] = {}

    def explore(self) -> list[Requirement]:
        """Runs of every pair in turns; those that promise least are left out as time goes by."""
        for pair in self._runs.pairs():
            self._explored.setdefault(pair.requirement, []).append(TriedPair(pair))
        for number, until in _STAGES:
            tried = [self._best(pairs, number) for pairs in self._explored.values()]
            most = max(map(len, tried), default=0)
            while tried and (self._is_new(tried) or self._effort.part() < until):
                for turn in range(most):  # as many runs for every requirement, however few pairs it has
                    for pairs in tried:
                        self._add(pairs[turn % len(pairs)], self._runs.batch, "choosing")
        return list(self._explored)

    def prove(self, promise: Requirement, alpha: float, confidence: float) -> Finding:
        """Choose a pair and its event, then count on runs of its own."""
        begun = time.perf_counter()
        tried = self._explored[promise]
        choices = [(one, *one.choice(self._future(one))) for one in tried]
        chosen, _, event = max(choices, key=lambda choice: choice[1])
        number = self._future(chosen)  # settled: nothing that is seen from here on decides when to stop
        counted = TriedPair(chosen.pair)
        for done in range(0, number, self._runs.batch):
            self._add(counted, min(self._runs.batch, number - done), "counting")
        hits = counted.hits(event)
        shown = proven_loss((hits[event.more_often], number), (hits[1 - event.more_often], number), alpha)
        seen = f"{hits[0]} of {number} runs, and in {hits[1]} of {number} of its neighbour"
        return Finding(
            audit=self._runs.audit,
            requirement=promise,
            shown=shown,
            broken=shown > promise.epsilon,
            confidence=confidence,
            witness=f"{chosen.pair.name}: {event} in {seen}",
            trials=2 * number + sum(one.trials for one in tried),
            seconds=time.perf_counter() - begun + sum(one.seconds for one in tried),
        )

    def _best(self, tried: list[TriedPair], number: int) -> list[TriedPair]:
        """Those pairs that promise most; all of them before the first runs."""
        if len(tried) <= number or not tried[0].trials:
            return tried
        return sorted(tried, key=lambda one: one.choice(self._future(one))[0], reverse=True)[:number]

    def _future(self, one: TriedPair) -> int:
        """How many runs of each stream there will be to count on."""
        part = (1.0 - _STAGES[-1][1]) / len(self._explored)
        return max(_COUNTED, self._effort.fits(part, one.seconds_per_run) // 2)

    @staticmethod
    def _is_new(tried: list[list[TriedPair]]) -> bool:
        return any(one.trials < 2 * _LEAST for pairs in tried for one in pairs)

    def _add(self, one: TriedPair, number: int, what: str) -> None:
        one.add(self._runs, self._random, number)
        self._effort.add(2 * number)
        if self._progress is not None:
            self._progress(f"{self._runs.audit}: {what}", *self._effort.told())
