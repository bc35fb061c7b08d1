"""Search for the pair of streams and the transcript with the largest likelihood ratio, over several windows.

A trial first looks for a stream in which the victim's class is charged much within one window: patterns of publishing
and skipping are led through the mechanism without computing probabilities, which is fast. The best of them is followed
exactly: for every slot it is computed what the victim's record changes there. The w slots in a row that change most are
the span of a pair, and the pair is played from there, each stream for itself.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate

import numpy as np

from wevent.auditing.exact.laws import TooManyDraws
from wevent.auditing.exact.pairs import Case, Moment, PairMove, Playing, log_ratio
from wevent.auditing.exact.proposals import Proposals, alike, far_off, lonelier, mutated, pattern
from wevent.auditing.exact.slot_run import SlotRun

_PLANS = 32  # patterns that are led through the mechanism for one that is followed
_SHORT = 8  # slots whose patterns are all tried
_FAR_TRIAL = 1  # noise that is cut off somewhere shows there only
_LONG = 300  # slots: research code was restarted every 250 (spec 12)
_IMPOSSIBLE = Decimal(-100)


@dataclass(eq=False)
class Worst:
    """The worst of a case so far.

    Attributes:
        ratio: the largest log ratio.
        moment: where; None if there is no difference.
        trials: transcripts computed.
    """

    ratio: Decimal = Decimal(0)
    moment: Moment | None = None
    trials: int = 0

    @property
    def story(self) -> tuple[str, ...]:
        """What happened, slot by slot."""
        return () if self.moment is None else self.moment.story

    def take(self, moment: Moment) -> None:
        """Keep a transcript if none was worse, with every digit: `abs` would round to those of the caller's context."""
        ratio = moment.ratio.copy_abs()
        if ratio > self.ratio:
            self.ratio, self.moment = ratio, moment


@dataclass(frozen=True, eq=False)
class _Step:
    """A slot of a trial: the move, the moment before it, and what the victim's record changes in it."""

    move: PairMove
    before: Moment
    gain: Decimal


class Search:
    """The search of one case: call `trial` as often as there is time."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._playing = Playing(case)
        self._generator = np.random.default_rng([seed, case.victim, case.cells, case.requirement.nano])
        self._proposals = Proposals(case, self._generator)
        self._costly: list[bool] = []  # the pattern that was charged most
        self._charged = 0
        self._estimate = Decimal(0)
        self.found = Worst()

    def trial(self) -> None:
        """Compute one transcript, and the pair of streams within it that differs most."""
        number, window = self.found.trials, self._case.requirement.window
        self.found.trials += 1
        steps = self._follow(self._plan(number))
        if not steps:
            return
        begin, estimate = best_span([step.gain for step in steps], window)
        if estimate > self._estimate or number < 3 or self._generator.random() < 0.2:
            self._estimate = max(estimate, self._estimate)
            self._play(steps, begin)

    def late(self, until: float) -> None:
        """Compute one long transcript, for daily and late effects."""
        steps = self._follow([move for move, _ in self._proposals.lead([True] * _LONG, 0.0, until)], until)
        if steps:
            self._play(steps, best_span([step.gain for step in steps], self._case.requirement.window)[0])

    def _plan(self, number: int) -> list[PairMove]:
        """Return the moves of a trial: the first ones always publish, one has far noise, others are charged much."""
        window = self._case.requirement.window
        if number == 0:
            return [move for move, _ in self._proposals.lead([True] * (window + 1), 0.0)]
        if number == _FAR_TRIAL:
            led = self._proposals.lead([True] * (window + 1), 0.0)
            return [replace(move, choose=far_off(1 - 2 * (place % 2))) for place, (move, _) in enumerate(led)]
        best: list[PairMove] = []
        highest = -1
        for plan in range(max(2, _PLANS * _SHORT // max(window, _SHORT))):  # a wide window takes its time
            wants = self._pattern(number, plan)
            daring = float(self._generator.choice([0.0, 0.0, 0.0, 0.2, 0.6])) if number > 1 else 0.0
            led = self._proposals.lead(wants, daring)
            charged = charged_most([run for _, run in led], self._case.victim, window)
            if charged > self._charged:
                self._costly, self._charged = wants, charged
            if charged > highest:
                best, highest = [move for move, _ in led], charged
            if not any(("dissimilarity", 0) in run.observables for _, run in led):
                break  # it never skips: all patterns are the same
        return best

    def _pattern(self, number: int, plan: int) -> list[bool]:
        """Return all patterns of two short windows in turns, then promising ones, and changes of the worst."""
        window = self._case.requirement.window
        slots = 2 * window
        tried = (number - 1) * (_PLANS // 2) + plan // 2
        if plan % 2 == 0 and slots <= _SHORT and tried < 2**slots:
            which = tried * 0x9E3779B1 % 2**slots  # an odd factor: each once, the first ones far apart
            return [bool(which >> slot & 1) for slot in range(slots)]
        if self._costly and plan % 4 == 1:
            return mutated(self._costly, self._generator)
        return pattern(number + plan, slots + int(self._generator.integers(4)), window, self._generator)

    def _follow(self, moves: list[PairMove], until: float = math.inf) -> list[_Step]:
        """Publish a stream with the victim in it, and compute in every slot what their record changes."""
        moment = self._playing.start()
        steps: list[_Step] = []
        for planned in moves:
            if time.monotonic() > until:
                return steps
            for move in (planned, lonelier(planned)):
                try:
                    after = self._playing.play(moment, alike(move))
                    steps.append(_Step(move, moment, self._gain(moment, move, after)))
                    break
                except TooManyDraws:
                    continue
            else:
                return steps
            moment = after
            if after.last is None or after.last.outcome[0] == "failed":
                return steps
        return steps

    def _gain(self, moment: Moment, move: PairMove, after: Moment) -> Decimal:
        """Compute what the victim's other record in this slot alone changes."""
        assert after.last is not None
        other = moment.first.after(self._playing.law, self._case.counts(move.others, move.second), after.last)
        return max(log_ratio(after.first, other), _IMPOSSIBLE)

    def _play(self, steps: list[_Step], begin: int) -> None:
        """Play the pair: the streams differ within the span, and each has its own publisher."""
        end = begin + self._case.requirement.window
        moment = steps[begin].before
        for place, step in enumerate(steps[begin : end + 2], begin):
            try:
                moment = self._playing.play(moment, step.move if place < end else alike(step.move))
            except TooManyDraws:
                return
            self.found.take(moment)
            if not moment.second.states:
                return


def charged_most(runs: list[SlotRun], victim: int, window: int) -> int:
    """Return the most that the victim's class was charged in `window` slots in a row."""
    charges = [0 if run.costs is None else int(run.costs[victim]) for run in runs]
    sums = [0, *accumulate(charges)]
    return max(sums[end] - sums[max(0, end - window)] for end in range(len(sums)))


def best_span(gains: list[Decimal], window: int) -> tuple[int, Decimal]:
    """Return where the `window` slots in a row with the largest sum begin, and the sum."""
    ends = range(1, len(gains) + 1)
    sums = [(sum(gains[max(0, end - window) : end], start=Decimal(0)), max(0, end - window)) for end in ends]
    largest, begin = max(sums, key=lambda found: found[0])
    return begin, largest
