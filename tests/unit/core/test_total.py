"""The guard between draw and commit: a smoother or planner that fails takes nothing but accuracy with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wevent
from tests.unit.scripted import ScriptedNoise
from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.mechanism import Estimate
from wevent.core.pft.adaptive_period import AdaptivePeriod
from wevent.core.pft.filter import Filter
from wevent.core.pft.schedules import CalibrationPolicy
from wevent.core.postprocess import LastValue
from wevent.publisher.catalogue import find_mechanism

ONE = Population({Requirement(2, 1): 100})
COUNTS = [[10, 20]]


class Raising(LastValue):
    """Fails on measurements that begin with these numbers, from what it knows or also from nothing."""

    def __init__(self, *wrong: int, also_anew: bool) -> None:
        self._wrong, self._also_anew = wrong, also_anew

    def advance(self, state: Any, measurement: Any) -> Any:
        anew = not state.values.any()
        if measurement is not None and measurement.values[0] in self._wrong and (self._also_anew or not anew):
            return self.fail(state)
        return super().advance(state, measurement)

    def fail(self, state: Any) -> Any:
        raise FloatingPointError("only this draw")


class NotANumber(Raising):
    def fail(self, state: Any) -> Any:
        return state, Estimate(np.array([1.0, np.nan]), np.array([1.0, 1.0]), None)


class NoError(Raising):
    def fail(self, state: Any) -> Any:
        return state, Estimate(np.array([1.0, 2.0]), np.array([1.0, -np.inf]), None)


class OutOfMemory(Raising):
    def fail(self, state: Any) -> Any:
        raise MemoryError


def publisher_with(smoother: Any) -> Publisher:
    row = replace(find_mechanism("uniform"), name="guarded", smoother=lambda options: smoother)
    wevent.register(row)
    return Publisher(ONE, 2, "guarded", noise=ScriptedNoise([]))


@pytest.mark.parametrize("also_anew", [False, True])
@pytest.mark.parametrize("kind", [Raising, NotANumber, NoError, OutOfMemory])
def test_a_smoother_that_fails_publishes_the_measurement(kind: type[Raising], also_anew: bool) -> None:
    publisher, sound = (
        publisher_with(kind(2, also_anew=also_anew)),
        Publisher(ONE, 2, "uniform", noise=ScriptedNoise([])),
    )
    for slot in range(1, 5):
        counts = [[slot, 2 * slot]]
        release, expected = publisher.step(counts), sound.step(counts)
        assert release.slot == slot
        assert release.histogram.tolist() == expected.histogram.tolist() == [slot, 2 * slot]
        assert release.std_error.tolist() == expected.std_error.tolist()
        assert release.noise == expected.noise
        assert release.charges.tolist() == expected.charges.tolist()
    assert publisher.ledger.spent().tolist() == sound.ledger.spent().tolist()


def test_a_smoother_that_fails_between_measurements_repeats_the_last() -> None:
    class Forgetful(LastValue):
        def advance(self, state: Any, measurement: Any) -> Any:
            if measurement is None and state.error is not None:
                raise ValueError
            return super().advance(state, measurement)

    row = replace(find_mechanism("sample"), name="guarded", smoother=lambda options: Forgetful())
    wevent.register(row)
    releases = list(Publisher(ONE, 2, "guarded", noise=ScriptedNoise([])).run([COUNTS] * 4))
    assert [release.outcome for release in releases] == ["fresh", "repeated"] * 2
    assert all(release.histogram.tolist() == [10, 20] for release in releases)


def test_a_replayed_slot_takes_the_same_way() -> None:
    live, replayed = (publisher_with(NotANumber(2, 5, also_anew=True)) for _ in range(2))
    for slot in range(1, 8):
        release = live.step([[slot, 2 * slot]])
        replayed.replay(release.probe_charges, release.publication_charges, live.measured)
        assert replayed.state() == live.state()


@pytest.mark.parametrize(("policy", "weights"), [(AdaptivePeriod, "equal"), (CalibrationPolicy, "calibrated")])
def test_a_planner_that_fails_keeps_its_plan(policy: Any, weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replan, calls = policy.replan, []

    def failing(self: Any, ledger: Any, history: Any) -> Any:
        calls.append(history.slot)
        if len(calls) % 2:
            raise OverflowError
        return replan(self, ledger, history)

    monkeypatch.setattr(policy, "replan", failing)
    publisher = Publisher(ONE, 2, "pft", noise=SeededNoise(1), class_weights=weights)
    releases = list(publisher.run([COUNTS] * 12))
    assert len(calls) > 2
    assert all(np.isfinite(release.histogram).all() for release in releases)


def test_a_state_that_is_not_finite_starts_anew() -> None:
    """Of the filter: whatever part of the state a draw could have spoilt, the next measurement is a first look again."""
    for name in (
        "level",
        "slope",
        "level_variance",
        "slope_variance",
        "weights",
        "scale",
        "jumps",
        "calibration",
        "null_sums",
    ):
        publisher = Publisher(ONE, 2, "pft", noise=SeededNoise(3), class_weights="equal")
        list(publisher.run([COUNTS] * 5))
        getattr(publisher._history.smoothed, name)[:] = np.nan
        releases = list(publisher.run([COUNTS] * 8))
        assert any(release.fresh for release in releases)
        for release in releases[[release.fresh for release in releases].index(True) :]:
            assert np.isfinite(release.histogram).all()
            assert np.isfinite(release.std_error).all()
        assert np.isfinite(publisher._history.smoothed.path).all(), name


@pytest.mark.parametrize("part", ["mean", "variance", "evidence", "anew"])
def test_offsets_that_are_not_finite_start_anew(part: str) -> None:
    two = Population({Requirement(4, 1): 900, Requirement(9, "0.3"): 700})
    publisher = Publisher(two, 2, noise=SeededNoise(3))
    list(publisher.run([[[300, 200], [100, 200]]] * 5))
    getattr(publisher._history.smoothed.offsets, part)[:] = np.nan
    for release in publisher.run([[[300, 200], [100, 200]]] * 40):
        last = release
    assert np.isfinite(last.histogram).all()
    assert np.isfinite(last.std_error).all()


def test_the_filter_says_when_its_state_is_spoilt() -> None:
    tracker = Filter()
    publisher = Publisher(ONE, 2, "pft", noise=SeededNoise(3), class_weights="equal")
    publisher.step(COUNTS)
    state = publisher._history.smoothed
    state.jumps[:] = np.inf
    with pytest.raises(ArithmeticError):
        tracker.advance(state, publisher.measured)


@pytest.mark.parametrize("mechanism", ["pft", "pbd", "uniform"])
def test_a_numpy_that_raises_changes_nothing(mechanism: str) -> None:
    """The caller's error settings must not decide whether a slot fails."""
    options = {} if mechanism == "pft" else {"smoothing": "filter", "nonnegative": True}
    big = Population({Requirement(4, 1): 10**9})
    plain, strict = (Publisher(big, 3, mechanism, noise=SeededNoise(5), **options) for _ in range(2))
    slots = [[[7 * 10**8, 10, 0]], [[0, 0, 0]], [[0, 9 * 10**8, 5]]] * 6
    expected = [release.to_dict() for release in plain.run(slots)]
    with np.errstate(all="raise"):
        assert [release.to_dict() for release in strict.run(slots)] == expected
