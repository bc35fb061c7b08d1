"""The probability of a slot's outcome, given counts and a publisher's state, by running the publisher on chosen draws.

The publisher is run as it is; the audit only decides its draws. Calls for samples and reports are enumerated. A call for
Laplace noise is solved: some runs show how the outcome moves with the draw, the draws that give the wanted outcome
follow, and a run verifies them to the last bit. What no draw gives has probability 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import EXACT, LaplaceCall, laplace_probability
from wevent.auditing.exact.level_sets import Level, reach_monotone
from wevent.auditing.exact.scripted_noise import NotFollowed
from wevent.auditing.exact.sensitivity import Slopes, learn_slopes
from wevent.auditing.exact.slot_run import Prefix, SlotRun
from wevent.core.arrays import FloatArray, IntArray

_CORRECTIONS = 4  # of a solved draw, for floats that are rounded on their way out
_CHECKED = 16  # of so many solved draws one is checked to be the only one


class Branch(NamedTuple):
    """A way to an outcome: the probability of its draws, and the publisher after it."""

    probability: Decimal
    state: Stepping


class SlotLaw:
    """The law of slots of one subject; learns slopes once and verifies every use of them.

    Args:
        careful: whether slopes are learnt anew for every use, and every solved draw is checked to be the only one.
    """

    def __init__(self, *, careful: bool = False) -> None:
        self._careful = careful
        self._learnt: dict[tuple[Any, ...], Slopes] = {}
        self._solutions_so_far = 0

    def branches(self, state: Stepping, counts: IntArray, wanted: SlotRun) -> list[Branch]:
        """Return every way from this state with these counts to the outcome of another run.

        Raises:
            TooManyDraws: if the counts are too large to enumerate samples or reports.
            NotFollowed: if noise cannot be solved for.
        """
        return list(self._explore(Prefix(state, counts), wanted, Decimal(1)))

    def _explore(
        self, prefix: Prefix, wanted: SlotRun, probability: Decimal, run: SlotRun | None = None
    ) -> Iterator[Branch]:
        run = prefix.run() if run is None else run
        if len(prefix) >= len(run.calls):
            if run.outcome == wanted.outcome:
                yield Branch(probability, run.state)
            return
        call = run.calls[len(prefix)]
        if isinstance(call, LaplaceCall):
            for draw, chance, after in self._solve(prefix, wanted, run, call):
                found = list(self._explore(prefix.extend(draw), wanted, EXACT.multiply(probability, chance), after))
                yield from found
                if found:
                    return
            return
        for draw, chance in call.options():
            if chance:
                yield from self._explore(prefix.extend(draw), wanted, EXACT.multiply(probability, chance))

    def _solve(
        self, prefix: Prefix, wanted: SlotRun, run: SlotRun, call: LaplaceCall
    ) -> Iterator[tuple[IntArray, Decimal, SlotRun]]:
        """Yield the draw that gives the wanted numbers, its probability, and the run with it.

        First by the slopes of another slot. The same noise may count differently here: if they lead nowhere, learn anew,
        for an outcome without a draw has probability 0, and that is a verdict.
        """
        key = (len(prefix), len(run.calls), call.size, call.scale, tuple(run.observables))
        if key in self._learnt and not self._careful:
            with suppress(NotFollowed):
                yield from self._solve_with(self._learnt[key], prefix, wanted, run, call)
        self._learnt[key] = learn_slopes(prefix, run)
        yield from self._solve_with(self._learnt[key], prefix, wanted, run, call)

    def _solve_with(
        self, slopes: Slopes, prefix: Prefix, wanted: SlotRun, run: SlotRun, call: LaplaceCall
    ) -> Iterator[tuple[IntArray, Decimal, SlotRun]]:
        if any(name not in wanted.observables for name in slopes.keys):
            return
        reach = _reach if slopes.linear else reach_monotone
        solved = reach(prefix, wanted, run, slopes)
        if solved is None:
            return
        draw, reached = solved
        if not slopes.linear:
            yield draw, Level(prefix, draw, slopes, reached).probability(call.scale), reached
            return
        if self._careful or self._solutions_so_far % _CHECKED == 0:
            _check_only(prefix, draw, slopes.told, reached)
        self._solutions_so_far += 1
        total = int(np.abs(draw[slopes.told]).sum())
        yield draw, laplace_probability(call.scale, len(slopes.told), total), reached


def _reach(prefix: Prefix, wanted: SlotRun, run: SlotRun, slopes: Slopes) -> tuple[IntArray, SlotRun] | None:
    """Return the draw that gives the wanted numbers, which move in proportion, and the run with it; None without one.

    Raises:
        NotFollowed: if that is not known: more noise still changes the numbers, and they do not become the wanted ones.
    """
    draw, reached = run.calls[len(prefix)].default(), run
    missing: list[float] = []
    for _ in range(_CORRECTIONS + 1):
        before = missing
        missing = _missing(wanted, reached, slopes)
        if not any(missing):
            return draw, reached
        if missing == before:  # noise that is cut off: more of it changes nothing
            return None
        steps = slopes.inverse @ np.array(missing)
        if not np.isfinite(steps).all() or np.abs(steps).max() > 2.0**60:
            return None
        whole = np.rint(steps).astype(np.int64)
        if not whole.any():
            return _beside(prefix, wanted, slopes, draw, steps)
        draw = draw.copy()
        draw[slopes.told] += whole
        reached = prefix.run(draw)
    raise NotFollowed("noise that moves what is shown unevenly")


def _missing(wanted: SlotRun, reached: SlotRun, slopes: Slopes) -> list[float]:
    return [wanted.observables[name] - reached.observables.get(name, np.nan) for name in slopes.keys]


def _beside(
    prefix: Prefix, wanted: SlotRun, slopes: Slopes, draw: IntArray, steps: FloatArray
) -> tuple[IntArray, SlotRun] | None:
    """Return the next draw where less than half a unit is missing; None if the wanted numbers lie between two draws.

    Raises:
        NotFollowed: if they lie beyond: numbers move less with the noise here than where that was learnt.
    """
    place = int(np.abs(steps).argmax())
    next_draw = draw.copy()
    next_draw[slopes.told[place]] += 1 if steps[place] > 0 else -1
    reached = prefix.run(next_draw)
    missing = _missing(wanted, reached, slopes)
    if not any(missing):
        return next_draw, reached
    if (slopes.inverse @ np.array(missing))[place] * steps[place] > 0:
        raise NotFollowed("noise that moves what is shown unevenly")
    return None


def _check_only(prefix: Prefix, draw: IntArray, told: list[int], reached: SlotRun) -> None:
    """Check that draws beside a solved one show something else.

    Raises:
        NotFollowed: if not: its probability would not be all there is.
    """
    for place in told:
        for step in (-1, 1):
            beside = draw.copy()
            beside[place] += step
            if prefix.run(beside).outcome == reached.outcome:
                raise NotFollowed("different noise that shows the same outcome")
