"""What a search tries in a slot: who else is there, the victim's records, and the draws."""

from __future__ import annotations

import math
import time

import numpy as np

from wevent.auditing.exact.laws import Call, LaplaceCall
from wevent.auditing.exact.pairs import Case, PairMove, Record
from wevent.auditing.exact.scripted_noise import Chooser, as_it_is
from wevent.auditing.exact.slot_run import SlotRun, run_slot
from wevent.core.arrays import IntArray

Records = tuple[Record, Record]

_ATTEMPTS = 4  # of counts and draws with which a slot publishes, or skips, as is wanted


def far_draw(scale: float) -> int:
    """Return a draw beyond every count and nearly every threshold."""
    return math.ceil(min(scale, 2.0**30) * 200) + 1000


def far_off(sign: int) -> Chooser:
    """Return a chooser of draws that are all far above, or far below."""

    def choose(number: int, call: Call) -> IntArray:
        return call.default() + (sign * far_draw(call.scale) if isinstance(call, LaplaceCall) else 0)

    return choose


class Proposals:
    """Moves for the slots of one case.

    Without noise on the first stream, an outcome is at least as likely there as on the second whatever the records are,
    so most moves have none: what counts is which slots publish, and the largest class decides that by being near what
    was published last, or far from it. Some moves are daring: any records, any draws.
    """

    def __init__(self, case: Case, generator: np.random.Generator) -> None:
        self._case = case
        self._generator = generator
        self._bulk = int(np.argmax(case.population.sizes))
        self._differences = case.differences()
        most = max(len(first ^ second) for first, second in self._differences)
        self._widest = [
            (first, second)
            for first, second in self._differences
            if len(first ^ second) == most and len(first) >= len(second)
        ]

    def lead(self, wants: list[bool], daring: float, until: float = math.inf) -> list[tuple[PairMove, SlotRun]]:
        """Return moves that publish in the wanted slots, as far as the mechanism lets them, and their runs."""
        state = self._case.start()
        widest = self._widest[int(self._generator.integers(len(self._widest)))]
        opposed = widest if self._generator.random() < (0.8 if widest[1] else 0.2) else None
        published: tuple[float, ...] = ()
        led: list[tuple[PairMove, SlotRun]] = []
        for wanted in wants:
            if time.monotonic() > until:
                break
            for attempt in range(_ATTEMPTS):
                move = self._propose(published, attempt, wanted, daring, opposed)
                run = run_slot(state, self._case.counts(move.others, move.first), (), move.choose)
                if (run.outcome[1:2] == ("fresh",)) == wanted or ("dissimilarity", 0) not in run.observables:
                    break
            led.append((move, run))
            if run.outcome[0] == "failed":
                break
            state = run.state
            published = run.measured or published
        return led

    def _propose(
        self, published: tuple[float, ...], attempt: int, wanted: bool, daring: float, opposed: Records | None
    ) -> PairMove:
        case, generator = self._case, self._generator
        bold = generator.random() < daring
        choice = self._differences if bold else self._widest
        first, second = choice[int(generator.integers(len(choice)))] if bold or opposed is None else opposed
        room = case.population.sizes.copy()
        room[case.victim] -= 1
        others = np.zeros((len(room), case.cells), dtype=np.int64)
        for group, free in enumerate(room.tolist()):
            if group == self._bulk:
                others[group] = self._level(published, attempt, wanted, free, opposed)
                if not wanted:  # who moves to the other cell comes nearer to what was published on one side only
                    cells = list(second - first)
                    others[group, cells] = np.maximum(others[group, cells] - 1, 0)
            elif generator.random() < daring and free:
                others[group, int(generator.integers(case.cells))] = 1
        return PairMove(others, first, second, self._chooser(attempt, wanted, bold))

    def _level(
        self, published: tuple[float, ...], attempt: int, wanted: bool, free: int, opposed: Records | None
    ) -> IntArray:
        """Return how many of the largest class are in each cell: near the last publication, or far from it.

        Where records are opposed, the cells of one rise while the others fall: then a victim who moves between them
        changes the distance.
        """
        cells, most = self._case.cells, free // self._case.cells
        last = np.array(published or (0.0,) * cells)
        near: IntArray = np.rint(np.clip(np.nan_to_num(last), 0, most)).astype(np.int64)
        if not wanted and attempt != 1:
            return near
        if wanted and attempt != 1:
            rises = near * 2 <= most
            if opposed is not None:
                place = min(opposed[0])
                rises = np.isin(np.arange(cells), list(opposed[0])) == bool(rises[place])
            return np.where(rises, most, 0)
        return self._generator.integers(0, most + 1, cells)

    def _chooser(self, attempt: int, wanted: bool, bold: bool) -> Chooser:
        """Choose no noise, boldly small, natural or far noise, or late a far first draw that forces the decision."""
        forced = attempt >= 2
        if not forced and not bold:
            return as_it_is
        modes = self._generator.integers(0, 5, 8)
        seed = int(self._generator.integers(2**32))

        def choose(number: int, call: Call) -> IntArray:
            own = np.random.default_rng([seed, number])
            mode = int(modes[number % len(modes)])
            if not isinstance(call, LaplaceCall):
                return call.default() if mode < 3 else call.natural(own)
            far = far_draw(call.scale)
            if forced:
                return call.default() + (far if wanted else -far) * (call.size == 1 and number < 2)
            options = (call.default(), call.natural(own), own.integers(-2, 3, call.size), far, -far)
            return call.default() + options[mode]

        return choose


def alike(move: PairMove) -> PairMove:
    """Return the same slot with equal streams."""
    return PairMove(move.others, move.first, move.first, move.choose)


def lonelier(move: PairMove) -> PairMove:
    """Return the move with hardly anybody else: fewer samples to enumerate."""
    return PairMove(np.minimum(move.others, 1), move.first, move.second, move.choose)


def pattern(number: int, slots: int, window: int, generator: np.random.Generator) -> list[bool]:
    """Choose which slots publish: all, all after some skips, at random, in turns, every so many."""
    skips = 1 + int(generator.integers(window + 1))
    density = generator.random()
    patterns = (
        lambda slot: True,
        lambda slot: slot > skips,
        lambda slot: bool(generator.random() < density),
        lambda slot: slot % 2 == 0,
        lambda slot: slot % (skips + 1) == 0,
        lambda slot: slot > skips and bool(generator.random() < density),
    )
    return [patterns[number % len(patterns)](slot) for slot in range(1, slots + 1)]


def mutated(wants: list[bool], generator: np.random.Generator) -> list[bool]:
    """Return a pattern with one or two slots changed."""
    flipped = set(generator.integers(0, len(wants), 1 + int(generator.integers(2))).tolist())
    return [wanted != (place in flipped) for place, wanted in enumerate(wants)]
