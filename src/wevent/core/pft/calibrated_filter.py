"""Two filters side by side: main sums with offsets that anchors teach, and anchors alone (spec 11.8).

One filter follows what main sums measure, m. With the offset β of a cell the count is x = m + β·x(1 − x/n): the *corrected*
estimate. The other follows anchors, which measure x itself with more noise: the *direct* estimate, right whatever requirement
and cell have to do with each other. Which of the two to trust is decided cell by cell, by how well each foretold the anchors.
Pure post-processing of measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from wevent.core.arrays import FloatArray, packed, unpacked
from wevent.core.mechanism import ErrorModel, Estimate, Measurement
from wevent.core.pft.class_bias import BiasState, ClassBias, Contrast, Moments
from wevent.core.pft.constants import CONTRADICTION, PRIOR_TRUST, STEEPEST, TRUST_SWITCH
from wevent.core.pft.expected_errors import CalibrationForecast
from wevent.core.pft.filter import Filter, FilterState, copied, scale_of
from wevent.core.pft.likelihood import laplace_on_gaussian
from wevent.core.pft.models import ModelGrid


@dataclass(slots=True)
class CalibratedState:
    """What is known.

    Attributes:
        main: the filter of main sums.
        direct: the filter of anchors.
        offsets: of the main sums.
        trust: per cell, the probability that the corrected estimate is the one to follow.
        since: slots since the last anchor.
        alarm: what jumps since the last anchor may have added to squared offsets, average over cells.
    """

    main: FilterState
    direct: FilterState
    offsets: BiasState
    trust: FloatArray
    since: int = 0
    alarm: float = 0.0


class CalibratedFilter:
    """Track counts from main sums and anchors."""

    def __init__(self, bank: ModelGrid | None = None) -> None:
        self._filter = Filter(bank)
        self._offsets = ClassBias()

    def start(self, cells: int, slot: int = 1) -> CalibratedState:
        empty = self._filter.start(cells, slot)
        return CalibratedState(empty, empty, self._offsets.start(cells), np.full(cells, PRIOR_TRUST))

    def advance(self, state: CalibratedState, measurement: Measurement | None) -> tuple[CalibratedState, Estimate]:
        """One slot on.

        Raises:
            ArithmeticError: if the state would not be finite; then one starts anew from the measurement.
        """
        offsets = replace(state.offsets, age=state.offsets.age + 1)
        state = replace(state, offsets=offsets, since=state.since + 1)
        if measurement is None:
            state.main, main = self._filter.advance(state.main, None)
            state.direct, direct = self._filter.advance(state.direct, None)
        else:
            main, direct = self._take(state, measurement)
            _check_finite(state)
        return state, self._together(state, main, direct)

    def outlook(self, state: CalibratedState) -> CalibrationForecast:
        leading = state.main if state.main.releases else state.direct
        known = self._filter.between(state.direct)[1] if state.direct.releases else state.main.scale**2
        return CalibrationForecast(
            self._filter.outlook(leading),
            state.since,
            state.alarm,
            float(known.mean()),
            lambda *design: self._offsets.expected_errors(state.offsets, leading.scale, *design),
        )

    def dump(self, state: CalibratedState) -> Any:
        return {
            "main": self._filter.dump(state.main),
            "direct": self._filter.dump(state.direct),
            "offsets": {entry.name: packed(getattr(state.offsets, entry.name)) for entry in fields(state.offsets)},
            **{name: packed(getattr(state, name)) for name in ("trust", "since", "alarm")},
        }

    def load(self, dumped: Any) -> CalibratedState:
        main, direct = (self._filter.load(dumped[name]) for name in ("main", "direct"))
        offsets = BiasState(**{name: unpacked(value) for name, value in dumped["offsets"].items()})
        rest = {name: unpacked(dumped[name]) for name in ("trust", "since", "alarm")}
        return CalibratedState(main, direct, offsets, **rest)

    def _take(self, state: CalibratedState, measurement: Measurement) -> tuple[Estimate, Estimate]:
        """A release: main sum and anchor to their filters, both to the offsets, the anchor to whom foretold it."""
        anchor, lean, users = measurement.anchor, measurement.lean, measurement.users
        started, anchored = state.main.releases > 0, state.direct.releases > 0
        if lean is not None and not started:
            self._offsets.reweigh(state.offsets, lean, scale_of((anchor or measurement)[0].astype(np.float64), users))
        elif lean is not None:
            self._reweigh(state, lean)
        state.main, before = self._filter.advance(state.main, None)
        main = before
        if lean is not None:
            one = self._as_main(state, measurement, before)
            state.main, main = self._filter.advance(_back(state.main), one.measurement, one.doubt)
        state.direct, direct = self._filter.advance(state.direct, None)
        if anchor is None:
            if started:
                self._watch(state, before, main)
            return main, direct
        values, law = anchor
        if lean is not None and started and anchored:
            self._judge(state, self._corrected(state, main), _moments(direct), anchor)
        state.direct, direct = self._filter.advance(_back(state.direct), Measurement(values, law, 0.0, users))
        if lean is not None:
            height = scale_of(self._corrected(state, main).mean, users)
            seen, noise = _best(before, measurement)
            contrast = Contrast(values - seen, noise, law.variance, height)
            self._offsets.learn(state.offsets, contrast, state.main.scale, state.since)
        state.since, state.alarm = 0, 0.0
        if started:
            self._watch(state, before, main)
        return main, direct

    def _reweigh(self, state: CalibratedState, lean: FloatArray) -> None:
        """Other weights measure another m: what is known of the old one is carried over as far as offsets tell."""
        change = self._offsets.reweigh(state.offsets, lean, state.main.scale)
        height = scale_of(state.main.path[0], state.main.users)
        main = state.main = copied(state.main)
        held = 1.0 - main.weights[-1]
        step, doubt = change.mean * height, change.variance * height**2
        main.level += step
        main.level_variance += doubt
        main.slow += step
        main.path[0] += step * held
        main.path[2] += doubt * held

    def _as_main(self, state: CalibratedState, measurement: Measurement, before: Estimate) -> _Observed:
        """Return what a release says of m: the main sum, and the anchor less the offset believed in."""
        if measurement.anchor is None or not state.offsets.spread:
            return _Observed(Measurement(measurement.values, measurement.error, 0.0, measurement.users), 0.0)
        values, law = measurement.anchor
        near = values if before.std_error is None else self._corrected(state, before).mean
        height = scale_of(near, measurement.users)
        mean, variance = self._offsets.belief(state.offsets, height)
        chance = self._chance(state, height)
        first, second = measurement.error.variance, law.variance + (variance + chance) * height**2
        both = first * second / (first + second)
        joined = both * (measurement.values / first + (values - mean * height) / second)
        lowest = float(both.min())
        law = ErrorModel("laplace", (lowest / 2.0) ** 0.5, lowest)
        return _Observed(Measurement(joined, law, 0.0, measurement.users), both - lowest)

    def _chance(self, state: CalibratedState, scale: FloatArray) -> FloatArray:
        """Return what the mix of classes in a cell is off by chance alone, new in every slot: the spike's, relative."""
        weight = float(self._offsets.weights(state.offsets, cautious=True)[0])
        chance: FloatArray = weight * state.offsets.spread / np.maximum(scale, 1.0)
        return chance

    def _corrected(self, state: CalibratedState, main: Estimate) -> Moments:
        """Return x from m: x − β·x(1 − x/n) = m, solved for x."""
        assert main.std_error is not None
        variance = main.std_error**2
        if not state.offsets.spread:
            return Moments(main.values, variance)
        users = float(max(state.main.users, 1))
        beta, doubt = self._offsets.belief(state.offsets, state.main.scale)
        root = np.sqrt(np.maximum((1.0 - beta) ** 2 + 4.0 * beta * main.values / users, STEEPEST**2))  # dm/dx
        mean = 2.0 * main.values / np.maximum(1.0 - beta + root, STEEPEST)
        height = scale_of(mean, state.main.users)
        return Moments(mean, (variance + (doubt + self._chance(state, state.main.scale)) * height**2) / root**2)

    def _judge(
        self, state: CalibratedState, corrected: Moments, direct: Moments, anchor: tuple[FloatArray, ErrorModel]
    ) -> None:
        """Bayes' rule for the two estimates: which one foretold the anchor?"""
        values, law = anchor
        scale = (law.variance / 2.0) ** 0.5
        one, other = (
            laplace_on_gaussian(values - belief.mean, belief.variance + 1e-9, scale)[0]
            for belief in (corrected, direct)
        )
        common = 0.9 * float(state.trust.mean()) + 0.1 * PRIOR_TRUST
        prior = (1.0 - TRUST_SWITCH) * state.trust + TRUST_SWITCH * common
        odds = np.log(prior / (1.0 - prior)) + one - other
        state.trust = 1.0 / (1.0 + np.exp(-np.clip(odds, -10.0, 10.0)))

    def _watch(self, state: CalibratedState, before: Estimate, after: Estimate) -> None:
        """A jump of m may have moved offsets."""
        assert before.std_error is not None
        moved = after.values - before.values
        added = self._offsets.jump(state.offsets, moved, before.std_error**2, state.main.scale)
        state.alarm += float(added.mean())

    def _together(self, state: CalibratedState, main: Estimate, direct: Estimate) -> Estimate:
        """Return the mixture of both estimates, as far as each is trusted."""
        if main.std_error is None:
            return direct
        corrected = self._corrected(state, main)
        if direct.std_error is None or not state.offsets.spread:
            return _stated(corrected)
        other = _moments(direct)
        # as far as it is not trusted, the corrected estimate is off by what offsets may be
        distrust = (1.0 - state.trust) * self._offsets.most(state.offsets, state.main.scale)
        part = distrust / (distrust + other.variance)
        # a main sum that no offset of the direct estimate explains: anchors have not seen yet what it shows
        explained = self._offsets.most(state.offsets, scale_of(other.mean, state.main.users))
        off = (main.values - other.mean) ** 2
        part[off > CONTRADICTION * (main.std_error**2 + other.variance + explained)] = 0.0
        mean = corrected.mean + part * (other.mean - corrected.mean)
        # both have learnt from the same anchors: their errors are not independent
        return _stated(Moments(mean, (1.0 - part) * (corrected.variance + distrust) + part * other.variance))


class _Observed(NamedTuple):
    """A measurement, and what else it is off by, variance per cell."""

    measurement: Measurement
    doubt: FloatArray | float


def _back(state: FilterState) -> FilterState:
    """Return the slot before: a filter that was asked what it expects has moved on."""
    earlier = copied(state, deep=False)
    earlier.gap -= 1
    return earlier


def _best(before: Estimate, measurement: Measurement) -> Moments:
    """Return what is known of m without the anchor: what was expected, and the main sum."""
    noise = measurement.error.variance
    if before.std_error is None:
        return Moments(measurement.values, np.full(len(measurement.values), noise))
    expected = before.std_error**2
    part = noise / (noise + expected)
    jumped = (measurement.values - before.values) ** 2 > CONTRADICTION * (noise + expected)
    part[jumped] = 0.0
    return Moments(measurement.values + part * (before.values - measurement.values), (1.0 - part) * noise)


def _moments(estimate: Estimate) -> Moments:
    assert estimate.std_error is not None
    return Moments(estimate.values, estimate.std_error**2)


def _stated(known: Moments) -> Estimate:
    values, std_error = known.mean.copy(), np.sqrt(known.variance)
    values.setflags(write=False)
    std_error.setflags(write=False)
    typical = float(known.variance.mean())
    return Estimate(values, std_error, ErrorModel("estimate", typical**0.5, typical))


def _check_finite(state: CalibratedState) -> None:
    """Of the offsets and the trust; the filters look after themselves."""
    offsets = state.offsets
    parts = (offsets.mean, offsets.variance, offsets.evidence, offsets.anew, state.trust)
    if not np.isfinite(sum(float(part.sum()) for part in parts) + state.alarm):
        raise ArithmeticError("what is known of offsets is not finite")
