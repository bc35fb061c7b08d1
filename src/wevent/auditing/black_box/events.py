"""Events to tell two streams apart by: learnt on one part of the runs, chosen on another, counted on a third.

Only the last count is evidence. What is chosen on other runs may be chosen in any way: it costs no confidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from wevent.auditing.black_box.features import Features, find_features, score_features
from wevent.auditing.black_box.loss_bounds import hope
from wevent.auditing.black_box.observations import Observations
from wevent.auditing.black_box.stream_pairs import Pair
from wevent.core.arrays import BoolArray, FloatArray

_CUTS = 40  # thresholds that are tried for a number
_COMMON = 5  # words that are tried: the most frequent ones
_HANDICAP = 0.05  # epsilons by which a score that was learnt has to be better than a number that needs no learning …
_CHANCE = 0.02  # … and a number, cut off somewhere, than a word: few runs are told apart by some cut by chance alone
_LEARNT = "score learnt from all numbers"
Relation = Literal["at least", "at most", "is"]


@dataclass(frozen=True)
class Score:
    """A weighted sum of features, learnt to tell the streams apart (logistic regression)."""

    centre: FloatArray
    weights: FloatArray

    def __call__(self, tells: Features) -> FloatArray:
        result: FloatArray = (score_features(tells) - self.centre) @ self.weights
        return result

    @classmethod
    def learnt(cls, here: Features, there: Features) -> Score:
        """Learn by a few Newton steps with a ridge, which few runs need."""
        rows = np.concatenate((score_features(here), score_features(there)))
        labels = np.concatenate((np.ones(len(score_features(here))), np.zeros(len(score_features(there)))))
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
        scaled = (rows - centre) / np.where(spread > 0.0, spread, 1.0)
        weights = np.zeros(scaled.shape[1])
        for _ in range(8):
            chance = 1.0 / (1.0 + np.exp(-np.clip(scaled @ weights, -30.0, 30.0)))
            curve = (scaled * (chance * (1.0 - chance))[:, None]).T @ scaled + np.eye(len(weights))
            weights = weights + np.linalg.solve(curve, scaled.T @ (labels - chance) - weights)
        return cls(centre, weights / np.where(spread > 0.0, spread, 1.0))


@dataclass(frozen=True)
class Event:
    """Something to be seen of a run.

    Attributes:
        tell: what is looked at.
        relation: how it compares with
        value: this.
        more_often: the stream it is seen more often with: 0 is the one with the victim.
        score: how the tell is computed if it was learnt.
    """

    tell: str
    relation: Relation
    value: float | str
    more_often: int
    score: Score | None = None

    def hits(self, pair: Pair, seen: Observations) -> int:
        """Return in how many runs it happened."""
        return int(self._happened(find_features(pair, seen)).sum())

    def _happened(self, tells: Features) -> BoolArray:
        if self.relation == "is" and isinstance(self.value, str):
            words: BoolArray = tells.words[self.tell]() == self.value
            return words
        numbers = tells.numbers[self.tell] if self.score is None else self.score(tells)
        wanted = float(self.value)
        happened: BoolArray = numbers >= wanted if self.relation == "at least" else numbers <= wanted
        return happened

    def __str__(self) -> str:
        shown = self.value if isinstance(self.value, str) else f"{self.value:.6g}"
        return f"{self.tell} {self.relation} {shown}"


def best_event(pair: Pair, seen: tuple[Observations, Observations], future: int) -> tuple[float, Event]:
    """Return the event that `future` runs of each stream should prove most with, and the `hope` for it."""
    here, there = (find_features(pair, one) for one in seen)
    trials = min(len(seen[0]), len(seen[1]))
    best: tuple[float, Event] | None = None
    for found, (tell, relation, values) in _tried(here, there, _cross_scored(pair, seen)):
        for more_often in (0, 1):
            handicap = _HANDICAP if tell == _LEARNT else 0.0 if relation == "is" else _CHANCE
            hoped = hope(found[more_often], found[1 - more_often], trials, future, handicap)
            place = int(np.argmax(hoped))
            if best is None or hoped[place] > best[0]:
                best = float(hoped[place]), Event(tell, relation, values[place], more_often)
    assert best is not None  # there is always a number to look at
    if best[1].tell == _LEARNT:
        best = best[0], _with_score(best[1], here, there, future)
    return best


def _with_score(event: Event, here: Features, there: Features, future: int) -> Event:
    """Return an event of a score that is learnt from all runs, with a new place to cut."""
    score = Score.learnt(here, there)
    mine, other = score(here), score(there)
    rates, (_, _, values) = next(
        (found, kind) for found, kind in _cut(_LEARNT, mine, other) if kind[1] == event.relation
    )
    trials = min(len(mine), len(other))
    hoped = hope(rates[event.more_often], rates[1 - event.more_often], trials, future)
    return replace(event, value=values[int(np.argmax(hoped))], score=score)


def _cross_scored(pair: Pair, seen: tuple[Observations, Observations]) -> tuple[FloatArray, FloatArray]:
    """Score the runs of each half by what was learnt on the other half."""
    halves = [
        [find_features(pair, part) for part in (one.part(0, len(one) // 2), one.part(len(one) // 2, None))]
        for one in seen
    ]
    by = Score.learnt(halves[0][1], halves[1][1]), Score.learnt(halves[0][0], halves[1][0])
    here, there = (np.concatenate((by[0](one[0]), by[1](one[1]))) for one in halves)
    return here, there


_Rates = tuple[FloatArray, FloatArray]
_Kind = tuple[str, Relation, list[float] | list[str]]


def _tried(here: Features, there: Features, scores: tuple[FloatArray, FloatArray]) -> Iterator[tuple[_Rates, _Kind]]:
    """Yield frequencies of events with both streams, and the events."""
    for name in (*here.numbers, _LEARNT):
        mine, other = scores if name == _LEARNT else (here.numbers[name], there.numbers[name])
        yield from _cut(name, mine, other)
    for name in here.words:
        mine_words, other_words = Counter(here.words[name]().tolist()), Counter(there.words[name]().tolist())
        common = list(dict.fromkeys(word for one in (mine_words, other_words) for word, _ in one.most_common(_COMMON)))
        rates = tuple(np.array([one[word] for word in common]) / one.total() for one in (mine_words, other_words))
        yield (rates[0], rates[1]), (name, "is", common)


def _cut(name: str, mine: FloatArray, other: FloatArray) -> Iterator[tuple[_Rates, _Kind]]:
    """Yield events that a number is at least, or at most, a value."""
    cuts = _cuts(np.concatenate((mine, other)))
    mine, other = np.sort(mine), np.sort(other)
    above = tuple(1.0 - np.searchsorted(one, cuts, side="left") / len(one) for one in (mine, other))
    yield (above[0], above[1]), (name, "at least", cuts.tolist())
    below = tuple(np.searchsorted(one, cuts, side="right") / len(one) for one in (mine, other))
    yield (below[0], below[1]), (name, "at most", cuts.tolist())


def _cuts(numbers: FloatArray) -> FloatArray:
    """Return all values that occur if they are few, else quantiles."""
    different = np.unique(numbers)
    if len(different) <= _CUTS:
        return different
    return np.unique(np.quantile(numbers, np.linspace(0.0, 1.0, _CUTS), method="nearest"))
