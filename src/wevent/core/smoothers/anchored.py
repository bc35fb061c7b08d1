"""The filter with offsets: main sums corrected by what anchors taught of each cell's mix of classes (spec 11).

The bank of models follows the count itself. A main sum is corrected by the offset believed in before the bank sees it, an
anchor is taken as it is. What the level owes to main sums, it owes to the offsets too: ρ is that part, and a lesson on
offsets moves the level by ρ of what it moves the offset. Pure post-processing of measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import BoolArray, FloatArray
from wevent.core.mechanism import Estimate, Measurement, NoiseError
from wevent.core.smoothers.bank import Bank
from wevent.core.smoothers.filter import Filter
from wevent.core.smoothers.filter_state import FilterState, copied
from wevent.core.smoothers.offsets import Ageing, Lesson, Offsets, OffsetState, hill
from wevent.core.smoothers.outlook import AnchorOutlook

_STEEPEST = 0.2  # a cell of strict users hardly moves the main sum: it is not stretched by more than five
_OWN = 0.5  # a level that owes all but this to main sums is their own
_SURPRISE = 25.0  # squared standard deviations beyond which a main sum is believed at once


@dataclass(slots=True)
class AnchoredState:
    """What is known.

    Attributes:
        tracker: of the counts.
        offsets: of the main sums.
        owed: ρ per cell.
        since: slots since the last anchor.
        anchors: anchors so far.
        alarm: what jumps since the last anchor may have added to squared offsets, average over cells.
    """

    tracker: FilterState
    offsets: OffsetState
    owed: FloatArray
    since: int = 0
    anchors: int = 0
    alarm: float = 0.0


class Corrected(NamedTuple):
    """A main sum as a measurement of the count, per cell.

    Attributes:
        values: on the scale of counts.
        noise: variance.
        reach: what a change of β by 1 changes them by.
    """

    values: FloatArray
    noise: FloatArray
    reach: FloatArray


class AnchoredFilter:
    """Track counts from main sums and anchors."""

    def __init__(self, bank: Bank | None = None) -> None:
        self._filter = Filter(bank)
        self._offsets = Offsets()

    def start(self, cells: int, slot: int = 1) -> AnchoredState:
        """Nothing known."""
        return AnchoredState(self._filter.start(cells, slot), self._offsets.start(cells), np.zeros(cells))

    def advance(self, state: AnchoredState, measurement: Measurement | None) -> tuple[AnchoredState, Estimate]:
        """One slot on.

        Raises:
            ArithmeticError: if the state would not be finite; then one starts anew from the measurement.
        """
        if measurement is None:
            tracker, estimate = self._filter.advance(state.tracker, None)
            after = AnchoredState(tracker, state.offsets, state.owed, state.since + 1, state.anchors, state.alarm)
            return after, self._stated(after, estimate)
        old = state.offsets
        offsets = OffsetState(old.mean, old.variance, old.evidence, old.lean, old.anew)
        after = AnchoredState(state.tracker, offsets, state.owed, state.since + 1, state.anchors, state.alarm)
        return after, self._take(after, measurement)

    def outlook(self, state: AnchoredState) -> AnchorOutlook:
        """What is expected of the slots to come."""
        return AnchorOutlook(
            self._filter.outlook(state.tracker),
            state.since,
            state.anchors,
            state.alarm,
            state.offsets.lean,
            lambda *design: self._offsets.expected_errors(state.offsets, state.tracker.scale, *design),
        )

    def dump(self, state: AnchoredState) -> Any:
        """Arrays as shape and bytes, numbers as they are: bit for bit."""
        offsets = {entry.name: _packed(getattr(state.offsets, entry.name)) for entry in fields(state.offsets)}
        rest = {name: getattr(state, name) for name in ("since", "anchors", "alarm")}
        tracker = self._filter.dump(state.tracker)
        return {"tracker": tracker, "offsets": offsets, "owed": _packed(state.owed), **rest}

    def load(self, dumped: Any) -> AnchoredState:
        """The counterpart of `dump`."""
        offsets = {name: _unpacked(value) for name, value in dumped["offsets"].items()}
        rest = {name: dumped[name] for name in ("since", "anchors", "alarm")}
        tracker = self._filter.load(dumped["tracker"])
        return AnchoredState(tracker, OffsetState(**offsets), _unpacked(dumped["owed"]), **rest)

    def _take(self, state: AnchoredState, measurement: Measurement) -> Estimate:
        """A release: what it says of the offsets, then of the counts."""
        offsets, first = state.offsets, not state.tracker.releases
        tracker = state.tracker = copied(state.tracker)
        users = tracker.users = measurement.users or tracker.users
        cells = len(state.owed)
        scale = hill(_alike(measurement)[0], users) if first else tracker.scale
        predicted, spread = (np.zeros(cells), np.full(cells, np.inf)) if first else self._predicted(tracker)
        if not first:
            self._age(state, self._offsets.wait(offsets, scale, tracker.gap + 1))
        if measurement.lean is not None:
            self._age(state, self._offsets.reweigh(offsets, measurement.lean, scale))
        near, jumped = self._near(state, measurement, predicted, spread)
        spread = np.where(jumped, np.inf, spread)  # what was predicted says nothing any more
        main = self._corrected(state, measurement, near)
        lasting, lever = _lesson(state.owed, main, measurement.anchor, predicted, spread)
        owed = state.owed + lever
        # a level that is the main sums' own teaches nothing of offsets that last: it would take a count that moves for one
        teaches = state.owed < 1.0 - _OWN if measurement.anchor is None else np.ones(cells, dtype=bool)
        if measurement.lean is not None or teaches.any():
            anew, other = _lesson(np.zeros(cells), main, measurement.anchor, predicted, spread)
            learnt = self._offsets.learn(offsets, lasting.only(teaches), anew, scale, tracker.gap + 1)
            _shift(tracker, state.owed * (1.0 - learnt.anew) * learnt.step, 0.0)
            owed = (1.0 - learnt.anew) * owed + learnt.anew * other
        state.owed = np.clip(owed, 0.0, 1.0)
        values, noise = _together(self._corrected(state, measurement, near), measurement.anchor)
        if measurement.anchor is not None:
            state.anchors, state.since, state.alarm = state.anchors + 1, 0, 0.0

        lowest = float(noise.min())
        law = NoiseError("laplace", (lowest / 2.0) ** 0.5, lowest)
        one = Measurement(values, law, 0.0, users)
        state.tracker, estimate = self._filter.advance(tracker, one, noise - lowest)
        if not first and measurement.lean is not None:
            moved = estimate.values - predicted
            state.alarm += float(self._offsets.jump(offsets, moved, self._predicted(tracker)[1], scale).mean())
        return self._stated(state, estimate)

    def _predicted(self, tracker: FilterState) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the counts in the open slot."""
        tracker.gap += 1
        mean, variance = self._filter.between(tracker)
        tracker.gap -= 1
        return mean, np.maximum(variance * max(1.0, tracker.inflation), 1e-9)

    def _age(self, state: AnchoredState, change: Ageing) -> None:
        """Offsets are others than before: the level owes itself to the old ones."""
        owed = np.clip(state.owed * change.common / np.maximum(change.after, 1e-300), 0.0, 1.0)
        lost = np.maximum(state.owed**2 * change.before - owed**2 * change.after, 0.0)
        state.owed = owed
        _shift(state.tracker, 0.0, lost * state.tracker.scale**2)

    def _near(
        self, state: AnchoredState, measurement: Measurement, predicted: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """Where the count is, as far as can be said before this release teaches offsets; and where it jumped."""
        offsets, owed = state.offsets, state.owed
        unknown = self._offsets.doubt(offsets)
        if measurement.anchor is not None:
            values, law = measurement.anchor
            off = spread + law.variance + owed**2 * unknown * hill(predicted, state.tracker.users) ** 2
            jumped = (values - predicted) ** 2 > _SURPRISE * off
            gain = np.where(jumped, 1.0, 1.0 - law.variance / off)
        else:
            main = self._corrected(state, measurement, np.where(np.isinf(spread), measurement.values, predicted))
            values = main.values
            unsure = main.noise + (1.0 - owed) ** 2 * unknown * main.reach**2
            jumped = (values - predicted) ** 2 > _SURPRISE * (spread + unsure)
            gain = np.where(jumped, 1.0, 1.0 - unsure / (spread + unsure))
        return np.where(gain == 1.0, values, predicted + gain * (values - predicted)), jumped | np.isinf(spread)

    def _corrected(self, state: AnchoredState, measurement: Measurement, near: FloatArray) -> Corrected:
        """x from m = x − β̄·x(1 − x/n): Newton's rule from where the count is believed to be."""
        users, offsets = state.tracker.users, state.offsets
        height = hill(near, users)
        if measurement.lean is None:
            return Corrected(near, np.full_like(near, np.inf), height)
        beta = self._offsets.average(offsets)
        chance = float(self._offsets.weights(offsets)[0]) * offsets.spread  # the spike's: new in every slot
        slope = np.maximum(1.0 - beta * (1.0 - 2.0 * np.clip(near / max(users, 1), 0.0, 1.0)), _STEEPEST)
        values = near + (measurement.values - near + beta * height) / slope
        return Corrected(values, (measurement.error.variance + chance * height) / slope**2, height / slope)

    def _stated(self, state: AnchoredState, estimate: Estimate) -> Estimate:
        """With the doubt about offsets in the error, as far as the level owes itself to main sums."""
        if estimate.std_error is None or not state.offsets.spread:
            return estimate
        offsets, scale = state.offsets, state.tracker.scale
        chance = float(self._offsets.weights(offsets, cautious=True)[0]) * offsets.spread * scale
        doubt = state.owed**2 * self._offsets.doubt(offsets) * scale**2 + state.owed * chance
        std_error = np.sqrt(estimate.std_error**2 + doubt)
        std_error.setflags(write=False)
        typical = float((std_error**2).mean())
        return Estimate(estimate.values, std_error, NoiseError("estimate", typical**0.5, typical))


def _shift(tracker: FilterState, step: FloatArray | float, doubt: FloatArray | float) -> None:
    """All levels moved, and less certain."""
    held = 1.0 - tracker.weights[-1]
    tracker.level += step
    tracker.level_variance += doubt
    tracker.slow += step
    tracker.path[0] += step * held
    tracker.path[2] += doubt * held


def _lesson(
    owed: FloatArray,
    main: Corrected,
    anchor: tuple[FloatArray, NoiseError] | None,
    predicted: FloatArray,
    spread: FloatArray,
) -> tuple[Lesson, FloatArray]:
    """What a release says of the error e of the offsets, whatever the count did; and what it adds to ρ.

    The level is off by u + ρ·e, u of variance P and independent of e. So an anchor's residual is u + ρ·e + noise, a main
    sum's u − (1 − ρ)·e + noise. Least squares over u leaves a quadratic in e: its top and its curvature are the lesson.
    """
    p, m, rest = 1.0 / spread, 1.0 / main.noise, 1.0 - owed
    a = np.zeros_like(p) if anchor is None else np.full_like(p, 1.0 / anchor[1].variance)
    alike = np.zeros_like(p) if anchor is None else anchor[0] - predicted
    direct = main.values - predicted
    lever = (m * rest - a * owed) / (p + m + a)
    information = m * rest**2 + a * owed**2 - lever * (m * rest - a * owed)
    information = np.maximum(information, 1e-12)
    pull = a * owed * alike - m * rest * direct + (m * direct + a * alike) * lever
    whole = m * direct**2 + a * alike**2 - (m * direct + a * alike) ** 2 / (p + m + a)
    fit = _likelihood(whole - pull**2 / information) - 0.5 * np.log(information)
    return Lesson(pull / information, 1.0 / information, main.reach, fit, _likelihood(whole)), lever


def _likelihood(misfit: FloatArray) -> FloatArray:
    """Of this many squared standard deviations, in logarithms: a Gaussian's, far out with Laplace's tails."""
    squared = np.maximum(misfit, 0.0)
    found: FloatArray = -np.where(squared < 8.0, 0.5 * squared, np.sqrt(2.0 * squared))
    return found


def _together(main: Corrected, anchor: tuple[FloatArray, NoiseError] | None) -> tuple[FloatArray, FloatArray]:
    """Both sums as one measurement: values and variances of their noise, per cell."""
    if anchor is None:
        return main.values, main.noise
    m, a = 1.0 / main.noise, 1.0 / anchor[1].variance
    return (m * main.values + a * anchor[0]) / (m + a), 1.0 / (m + a)


def _alike(measurement: Measurement) -> tuple[FloatArray, NoiseError]:
    return measurement.anchor or (measurement.values, measurement.error)


def _packed(values: FloatArray) -> Any:
    return [list(values.shape), values.tobytes()]


def _unpacked(value: Any) -> FloatArray:
    found: FloatArray = np.frombuffer(value[1]).reshape(value[0]).copy()
    return found
