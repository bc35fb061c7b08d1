"""All transcripts of tiny cases: every presence of the victim, every sample, every outcome whose draws lie in a box.

The box is complete for one slot. A Laplace draw's ratio between two counts is constant once the value lies beyond both, so
where nobody but the victim is, who adds one record to a cell, draws of −1, 0 and 1 reach every ratio there is; a probe's draw
that is far enough to publish is added, and one far below. What a slot's value does to later slots of a mechanism that plans
or filters is not bounded by the box: that is what the search is for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import BinomialCall, Call, LaplaceCall, ResponseCall, TooManyDraws
from wevent.auditing.exact.pairs import Case, Moment, PairMove, Playing, Record
from wevent.auditing.exact.proposals import far_draw
from wevent.auditing.exact.scripted_noise import Chooser
from wevent.auditing.exact.search import Worst
from wevent.auditing.exact.slot_run import SlotRun, run_slot
from wevent.core.arrays import IntArray

SLOTS = 4
_BOX = range(-1, 2)
_GRID = 2**20


Script = tuple[IntArray, ...]


@dataclass(frozen=True, eq=False)
class _Scripted:
    """Draws in the order of their calls."""

    draws: Script

    def __call__(self, number: int, call: Call) -> IntArray:
        return self.draws[number] if number < len(self.draws) else call.default()


class Enumeration:
    """All transcripts of one case, deeper and deeper, until time is up."""

    def __init__(self, case: Case, others: IntArray) -> None:
        self._case = case
        self._others = others
        self._playing = Playing(case)
        self.found = Worst()
        self.complete = 0  # slots of the longest transcripts that were all computed

    def deepen(self, until: float) -> bool:
        """Compute all transcripts that are one slot longer; return False if time runs out before."""
        depth = self.complete + 1
        if not self._below(self._playing.start(), depth, 0, until):
            return False
        self.complete = depth
        return True

    def _below(self, moment: Moment, depth: int, since: int, until: float) -> bool:
        """Compute every transcript of `depth` slots that begins so; the streams differ since a slot, 0: not yet."""
        if depth < moment.slot or (moment.last is not None and moment.last.outcome[0] == "failed"):
            return True
        for first, second in self._records(moment.slot, since):
            for choose in self._draws(moment, first):
                if time.monotonic() > until:
                    return False
                try:
                    after = self._playing.play(moment, PairMove(self._others, first, second, choose))
                except TooManyDraws:
                    continue
                self.found.trials += 1
                self.found.take(after)
                begun = since or (moment.slot if first != second else 0)
                if after.second.states and not self._below(after, depth, begun, until):
                    return False
        return True

    def _records(self, slot: int, since: int) -> Iterator[tuple[Record, Record]]:
        """Yield every two records that neighbours may have here; the first difference decides which stream is first."""
        if not since or slot - since < self._case.requirement.window:
            for first, second in self._case.differences():
                if since or sorted(first) > sorted(second):
                    yield first, second
        for record in self._case.records():
            yield record, record

    def _draws(self, moment: Moment, record: Record) -> Iterator[Chooser]:
        """Yield every draw in the box, for call after call as the publisher makes them."""
        counts = self._case.counts(self._others, record)
        state = moment.first.likeliest
        seen: set[object] = set()
        for script, run in _scripts(state, counts, ()):
            if run.outcome not in seen:
                seen.add(run.outcome)
                yield _Scripted(script)


def _scripts(state: Stepping, counts: IntArray, script: Script) -> Iterator[tuple[Script, SlotRun]]:
    run = run_slot(state, counts, script)
    if len(script) >= len(run.calls):
        yield script, run
        return
    for draw in _box(run, len(script)):
        yield from _scripts(state, counts, (*script, draw))


def _box(run: SlotRun, number: int) -> Iterator[IntArray]:
    """Yield the draws of a call that are tried: all reports, one sample (the law sums over all), Laplace noise in the box."""
    call = run.calls[number]
    if isinstance(call, ResponseCall):
        yield from (reports for reports, _ in call.options())
        return
    if isinstance(call, BinomialCall):
        yield call.default()
        return
    unit = 1 if call.scale < _GRID / 2 else _GRID  # weighted sums move by up to 2^20 (spec 11.1)
    for steps in product(_BOX, repeat=call.size):
        yield np.array(steps, dtype=np.int64) * unit
    first = not any(isinstance(earlier, LaplaceCall) for earlier in run.calls[:number])
    if first and ("dissimilarity", 0) in run.observables:
        far = far_draw(call.scale)
        yield call.default() - far
        yield call.default() + far
