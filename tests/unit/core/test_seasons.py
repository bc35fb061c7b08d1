"""Seasonal models: the arithmetic against plain matrices, the moments against brute force, and states that stay sound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.core.mechanism import ErrorModel, Measurement
from wevent.core.pft.adaptive_period import periods
from wevent.core.pft.expected_errors import period_errors
from wevent.core.pft.filter import Filter, FilterState, copied
from wevent.core.pft.models import (
    SeasonalModels,
    SeasonalState,
    default_models,
    harmonics,
    models_with_seasons,
    seasonal_models,
)

DAY = 24.0


def measured(values: Any, variance: float = 200.0, users: int = 100_000) -> Measurement:
    return Measurement(
        np.asarray(values, dtype=float), ErrorModel("laplace", (variance / 2) ** 0.5, variance), 0.0, users
    )


def swinging(slot: int, cells: int = 3) -> Any:
    phase = np.arange(cells)
    return 500.0 * (1.0 + 0.5 * np.sin(2 * np.pi * slot / DAY + phase) + 0.2 * np.cos(4 * np.pi * slot / DAY))


def followed(tracker: Filter, slots: int, every: int = 3, seed: int = 1) -> FilterState:
    random, state = np.random.default_rng(seed), tracker.start(3)
    for slot in range(1, slots + 1):
        seen = measured(swinging(slot) + random.laplace(0, 10, 3)) if slot % every == 0 else None
        state, _ = tracker.advance(state, seen)
    return state


@pytest.mark.parametrize("calendar", [(), (20, 50)])
def test_predict_and_correct_are_one_joint_kalman_filter(calendar: tuple[int, ...]) -> None:
    """Level and coefficients as one vector, in which the level moves by the turn of the basis."""
    seasons, random = seasonal_models([10.0], calendar), np.random.default_rng(2)
    terms, models, noise, walk = len(seasons.size), len(seasons.drift), 40.0, 0.3
    state = seasons.start(1)
    seasons.begin(state, np.array([50.0]))
    level, variance = np.full((models, 1), 50.0), np.full((models, 1), noise)
    mean = [np.concatenate([[50.0], np.zeros(terms)]) for _ in range(models)]
    whole = [np.diag(np.concatenate([[noise], (seasons.size * 50.0) ** 2])) for _ in range(models)]
    for gap in (1, 4, 3, 7, 2, 11, 1, 5):
        value = 50.0 + 20.0 * random.normal()
        turn = seasons.basis(state.released + gap) - seasons.basis(state.released)
        seasons.predict(state, gap, level, variance)
        variance += gap * walk
        residual, total = value - level, variance + noise
        seasons.correct(state, residual / total, 1.0 / total, noise / total)
        level, variance = level + variance * residual / total, variance * noise / total
        state.released += gap
        move = np.eye(terms + 1)
        move[0, 1:] = turn
        for model in range(models):
            drift = seasons.drift[model] * gap * seasons.pace * (seasons.size * 50.0) ** 2
            whole[model] = move @ (whole[model] + np.diag([0.0, *drift])) @ move.T
            whole[model][0, 0] += gap * walk
            mean[model] = move @ mean[model]
            gain = whole[model][:, 0] / (whole[model][0, 0] + noise)
            mean[model] = mean[model] + gain * (value - mean[model][0])
            whole[model] = whole[model] - np.outer(gain, whole[model][0])
            assert level[model, 0] == pytest.approx(mean[model][0])
            assert state.mean[model, :, 0] == pytest.approx(mean[model][1:], abs=1e-9)
            assert variance[model, 0] == pytest.approx(whole[model][0, 0])
            assert state.cross[model, :, 0] == pytest.approx(whole[model][0, 1:], abs=1e-8)
            assert state.variance[model, :, :, 0] == pytest.approx(whole[model][1:, 1:], abs=1e-8)


@pytest.mark.parametrize("gap", [1, 2, 9, 30])
def test_between_releases_moments_are_those_of_the_predicted_models(gap: int) -> None:
    """Predict every model by itself, then mix; coefficients do not drift between releases, which is little."""
    tracker = Filter(models_with_seasons([DAY], [30, 60]))
    state = followed(tracker, 90)
    state.gap = gap
    mean, variance = tracker.between(state)
    assert state.season is not None
    assert tracker.bank.seasons is not None
    ahead = copied(state)
    assert ahead.season is not None
    still = SeasonalModels(**{**_fields(tracker.bank.seasons), "drift": np.zeros_like(tracker.bank.seasons.drift)})
    bank = tracker.bank
    lone = Filter(type(bank)(bank.walk, bank.flicker, bank.levels, bank.prior, still))
    lone._predict(ahead)
    weights = state.weights
    levels = np.vstack([ahead.level, np.full(3, state.null_mean)])
    spreads = np.vstack([ahead.level_variance + bank.flicker[:, None] * state.scale, np.full(3, state.null_variance)])
    mixed = (weights * levels).sum(axis=0)
    grown = state.season.reach  # what grew with the reach after the moments were taken
    assert (grown > 0).all()
    assert mean == pytest.approx(mixed, rel=1e-9)
    brute = (weights * (spreads + (levels - mixed) ** 2)).sum(axis=0)
    assert variance == pytest.approx(brute, rel=2e-2)


def _fields(seasons: SeasonalModels) -> dict[str, Any]:
    return {name: getattr(seasons, name) for name in seasons.__dataclass_fields__}


@pytest.mark.parametrize("period", [1, 2, 5, 17, 100])
def test_unknown_swings_against_their_sums(period: int) -> None:
    seasons, observed, reach = seasonal_models([DAY, 100.0]), 300.0, 1e4
    shape = 1, len(seasons.drift), 1
    end, average = seasons.unknown_swings(np.array([period]), np.full(shape, observed), np.array([reach]))
    count = len(seasons.frequencies)
    for model, drift in enumerate(seasons.drift.tolist()):
        settled = []
        for size, pace in zip(seasons.size[:count].tolist(), seasons.pace[:count].tolist(), strict=True):
            believed = size**2 * reach
            settled.append(min(believed, (2 * drift * believed * observed * period * pace) ** 0.5))
        turned = [
            sum(
                p * ((seasons.basis(s)[[n, n + count]] - seasons.basis(0)[[n, n + count]]) ** 2).sum()
                for n, p in enumerate(settled)
            )
            for s in range(period + 1)
        ]
        assert end[0, model, 0] == pytest.approx(turned[period])
        assert average[0, model, 0] == pytest.approx(np.mean(turned[:period]), abs=1e-9)


def test_a_swing_that_is_known_costs_what_a_level_does() -> None:
    """The level's formula, with the swing as one more step: none if nothing is believed to swing."""
    bank = models_with_seasons([DAY])
    k, noise, scale = np.array([1, 4, 9]), np.array([50.0, 20.0, 4.0]), np.array([30.0])
    found = period_errors(bank, k, noise, np.zeros(3), scale, np.zeros(1))
    plain = period_errors(default_models(), k, noise, np.zeros(3), scale)
    assert found[:, : plain.shape[1]] == pytest.approx(plain)
    assert bank.seasons is not None
    for model, (q, v) in enumerate(zip(bank.seasons.walk.tolist(), bank.seasons.flicker.tolist(), strict=True)):
        like = np.flatnonzero((bank.walk[: bank.levels] == q) & (bank.flicker[: bank.levels] == v))
        if len(like):
            assert found[:, bank.seasonal.start + model] == pytest.approx(plain[:, like[0]])
    swung = period_errors(bank, k, noise, np.zeros(3), scale, np.full(1, 1e4))
    assert (swung[:, bank.seasonal] > found[:, bank.seasonal]).all()


def test_harmonics_are_those_that_slots_can_show() -> None:
    assert harmonics(288.0) == (1, 2, 3, 4, 5, 6)
    assert harmonics(14.4) == (1, 2, 3, 4, 5, 6)
    assert harmonics(6.0) == (1, 2)
    assert harmonics(3.0) == (1,)
    both = seasonal_models([24.0, 12.0])
    assert sorted(both.frequencies) == pytest.approx([n / 24 for n in (1, 2, 3, 4, 5, 6, 8, 10)])
    assert both.size[list(both.frequencies).index(2 / 24)] == pytest.approx(0.3 / 2)  # it is the day's, said first


def test_the_basis_comes_back() -> None:
    plain, other = seasonal_models([14.4]), seasonal_models([24.0], [10, 20, 30, 40])
    assert plain.basis(5) == pytest.approx(plain.basis(5 + 72))
    turn = seasonal_models([24.0]).basis(9)
    assert other.basis(9) == pytest.approx([*turn, *(0.0 * turn), 0.0])
    for slot in (10, 19, 33):
        turn = seasonal_models([24.0]).basis(slot)
        assert other.basis(slot) == pytest.approx([*turn, *turn, 1.0])
    assert [other.basis(slot)[-1] for slot in (20, 29, 40, 1000)] == [0.0] * 4


@given(cycle=st.floats(3.0, 2000.0), windows=st.lists(st.integers(1, 500), min_size=1, max_size=4))
def test_periods_meet_all_phases(cycle: float, windows: list[int]) -> None:
    found = periods(np.array(windows), [cycle])
    assert len(found)
    for k in found.tolist():
        turns = [n * k / cycle for n in harmonics(cycle)]
        hidden = any(abs(turn - round(turn)) < 1 / 12 for turn in turns)
        assert not hidden or 8 * k <= cycle or set(found.tolist()) <= set(periods(np.array(windows)).tolist())


def test_without_a_cycle_nothing_changes() -> None:
    assert followed_bytes(Filter(models_with_seasons(()))) == followed_bytes(Filter())
    assert "season" not in Filter().dump(Filter().start(2))
    windows = np.array([40, 80])
    assert periods(windows, ()).tolist() == periods(windows).tolist()


def followed_bytes(tracker: Filter) -> Any:
    return tracker.dump(followed(tracker, 40))


@pytest.mark.parametrize("calendar", [(), (30, 60)])
def test_states_are_dumped_bit_for_bit_and_advance_is_pure(calendar: tuple[int, ...]) -> None:
    tracker = Filter(models_with_seasons([DAY], calendar))
    state = followed(tracker, 80)
    before = tracker.dump(state)
    again = tracker.load(before)
    assert tracker.dump(again) == before
    for seen in (None, measured(swinging(81))):
        one, two = tracker.advance(state, seen), tracker.advance(again, seen)
        assert tracker.dump(one[0]) == tracker.dump(two[0])
        assert one[1].values.tobytes() == two[1].values.tobytes()
        assert one[1].std_error is not None
        assert two[1].std_error is not None
        assert one[1].std_error.tobytes() == two[1].std_error.tobytes()
        assert tracker.dump(state) == before
    with pytest.raises(ValueError, match="seasonal"):
        Filter().load(before)
    with pytest.raises(ValueError, match="seasonal"):
        tracker.load(Filter().dump(Filter().start(3)))


@pytest.mark.slow
@pytest.mark.parametrize("calendar", [(), (30, 60)])
def test_what_is_loaded_is_what_was_there(calendar: tuple[int, ...]) -> None:
    """A state keeps one half of covariances: the other half must be the same to the last bit, or resuming shows."""
    tracker = Filter(models_with_seasons([DAY], calendar))
    for slots in range(1, 60):
        state = followed(tracker, slots)
        again = tracker.load(tracker.dump(state))
        assert state.season is not None
        assert again.season is not None
        for name in ("variance", "path_variance"):
            assert getattr(state.season, name).tobytes() == getattr(again.season, name).tobytes(), name


@given(
    draws=st.lists(st.tuples(st.integers(1, 60), st.floats(-1e6, 1e6)), min_size=2, max_size=25),
    cycle=st.sampled_from([3.0, 7.5, 24.0, 288.0]),
)
def test_whatever_is_measured_variances_stay_sound(draws: list[tuple[int, float]], cycle: float) -> None:
    tracker = Filter(models_with_seasons([cycle], [5, 17, 40, 64]))
    state = tracker.start(2)
    for gap, value in draws:
        for _ in range(gap - 1):
            state, estimate = tracker.advance(state, None)
        state, estimate = tracker.advance(state, measured([value, abs(value) / 7.0]))
        assert np.isfinite(estimate.values).all()
        season = state.season
        assert isinstance(season, SeasonalState)
        assert (state.level_variance > 0).all()
        diagonal = np.einsum("mddc->mdc", season.variance)
        assert (diagonal >= 0).all()
        assert (season.variance == season.variance.swapaxes(1, 2)).all()
        bound = np.sqrt(diagonal * state.level_variance[tracker.bank.seasonal][:, None])
        assert (np.abs(season.cross) <= bound * (1 + 1e-6) + 1e-6).all()


def test_a_swing_that_is_not_finite_is_said() -> None:
    tracker = Filter(models_with_seasons([DAY]))
    state = followed(tracker, 30)
    assert state.season is not None
    state.season.mean[0, 0, 0] = np.nan
    with pytest.raises(ArithmeticError, match="not finite"):
        tracker.advance(state, measured(swinging(31)))


def test_what_comes_back_is_foreseen() -> None:
    """Measured every seven slots, a day is known after a week: the slots between are off by a fraction."""
    errors = {}
    for name, cycles in {"plain": (), "told": (DAY,)}.items():
        random, tracker = np.random.default_rng(3), Filter(models_with_seasons(cycles))
        state, squares = tracker.start(3), []
        for slot in range(1, 24 * 14 + 1):
            seen = measured(swinging(slot) + random.laplace(0, 10, 3)) if slot % 7 == 0 else None
            state, estimate = tracker.advance(state, seen)
            squares.append(((estimate.values - swinging(slot)) ** 2).mean())
        errors[name] = float(np.mean(squares[24 * 7 :]))
    assert errors["told"] < 0.1 * errors["plain"]


def test_a_state_knows_its_slot_when_it_begins_late() -> None:
    """A calendar is about slots of the stream, not about slots since the filter began."""
    late = Filter(models_with_seasons([DAY], [100, 124])).start(2, 100)
    assert late.season is not None
    assert late.season.released == 99
