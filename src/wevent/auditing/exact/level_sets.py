"""Draws that all show the same, where a value is clipped or rounded: a run of whole numbers in every entry.

Every entry moves a number of its own, never back (`responses`), so ends are found by strides that grow, and by halving.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from wevent.auditing.exact.laws import EXACT, laplace_between
from wevent.auditing.exact.scripted_noise import NotFollowed
from wevent.auditing.exact.sensitivity import Key, Slopes
from wevent.auditing.exact.slot_run import Prefix, SlotRun
from wevent.auditing.exact.state_copy import fingerprint
from wevent.core.arrays import IntArray

_FARTHEST = 2**48  # as far as is looked; what is the same up to there is the same for ever
_STRIDE = 16  # by which what is looked at grows


def reach_monotone(prefix: Prefix, wanted: SlotRun, run: SlotRun, slopes: Slopes) -> tuple[IntArray, SlotRun] | None:
    """Return one of the draws that give the wanted numbers, and the run with it; None if there is none."""
    draw = run.calls[len(prefix)].default()
    for number, (place, name) in enumerate(zip(slopes.told, slopes.keys, strict=True)):
        sign = int(slopes.inverse[number, number])

        def rises(distance: int, place: int = place, name: Key = name, sign: int = sign) -> float:
            moved = draw.copy()
            moved[place] = sign * distance
            return sign * prefix.run(moved).observables.get(name, math.nan)

        first = _first_at_least(rises, sign * wanted.observables[name])
        if first is None:
            return None
        draw[place] = sign * first
    reached = prefix.run(draw)
    same = all(reached.observables.get(name) == wanted.observables[name] for name in slopes.keys)
    return (draw, reached) if same else None


def _first_at_least(rises: Callable[[int], float], aim: float) -> int | None:
    """Return the smallest number with which a rising function reaches an aim; None if it never does."""
    low, high = -1, 1
    while rises(low) >= aim:
        if low <= -_FARTHEST:
            return low
        low *= _STRIDE
    while not rises(high) >= aim:
        if high >= _FARTHEST:
            return None
        high *= _STRIDE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) >= aim else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Level:
    """All draws with the same output as one of them."""

    prefix: Prefix
    draw: IntArray
    slopes: Slopes
    reached: SlotRun

    def probability(self, scale: float) -> Decimal:
        """Return the probability of all of them together.

        Raises:
            NotFollowed: if the publisher is not in the same state after each, so that they are the same for now only.
        """
        sides = [(self._end(place, -1), self._end(place, 1)) for place in self.slopes.told]
        self._check_corners(sides)
        result = Decimal(1)
        for low, high in sides:
            result = EXACT.multiply(result, laplace_between(scale, low, high))
        return result

    def _end(self, place: int, direction: int) -> int | None:
        """Return the last one in this direction; None: it never ends."""
        shown = int(self.draw[place])
        same, other = 0, 1
        while self._shows_same(place, shown + direction * other):
            same, other = other, _STRIDE * other
            if abs(shown + direction * other) > _STRIDE * _FARTHEST:
                return None
        while other - same > 1:
            middle = (same + other) // 2
            same, other = (middle, other) if self._shows_same(place, shown + direction * middle) else (same, middle)
        return shown + direction * same

    def _shows_same(self, place: int, value: int) -> bool:
        moved = self.draw.copy()
        moved[place] = value
        return self.prefix.run(moved).outcome == self.reached.outcome

    def _check_corners(self, sides: Sequence[tuple[int | None, int | None]]) -> None:
        mark = fingerprint(self.reached.state)
        for corner in (0, 1):
            moved = self.draw.copy()
            for place, ends in zip(self.slopes.told, sides, strict=True):
                end = ends[corner]
                moved[place] = (2 * corner - 1) * _FARTHEST if end is None else end
            run = self.prefix.run(moved)
            if run.outcome != self.reached.outcome or mark is None or fingerprint(run.state) != mark:
                raise NotFollowed("different noise that shows the same outcome now, and perhaps another later")
