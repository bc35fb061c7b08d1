"""Permits: made by the gate only, unchangeable, uncopyable, good for one draw."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tests.unit.scripted import permit_for
from wevent import Population, Requirement
from wevent.core.ledger import Ledger
from wevent.core.permit import (
    NoisePermit,
    Permit,
    PermitMisused,
    Reservation,
    ResponsePermit,
    SamplingPermit,
    SplitPermit,
    WeightingPermit,
    redeem,
)

BUDGETS, SIZES = [10**8, 10**9], [30, 70]


def reservation() -> Reservation:
    ledger = Ledger(Population({Requirement(2, 1): 10}))
    return ledger.reserve(np.array([5]), np.array([7]))


MADE: dict[str, Any] = {
    "reserved": lambda: permit_for(BUDGETS, SIZES),
    "sampling": lambda: permit_for(BUDGETS, SIZES).for_sampling(10**9),
    "weighting": lambda: permit_for(BUDGETS, SIZES).for_weighting(),
    "response": lambda: permit_for(BUDGETS, SIZES).for_response(3),
    "split": lambda: permit_for(BUDGETS, SIZES, level=10**8).for_split(),
    "anchor": lambda: permit_for(BUDGETS, SIZES, level=10**8).for_split().anchor,
    "main sum": lambda: permit_for(BUDGETS, SIZES, level=10**8).for_split().main,
    "noise": lambda: permit_for(BUDGETS, SIZES).for_sampling(10**9).noise,
    "noise of weights": lambda: permit_for(BUDGETS, SIZES).for_weighting().noise,
    "reservation": reservation,
}
every_kind = pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())


@every_kind
def test_nothing_of_it_changes(make: Any) -> None:
    permit = make()
    for name in type(permit).__slots__:
        before = getattr(permit, name)
        with pytest.raises(PermitMisused):
            setattr(permit, name, before)
        with pytest.raises(PermitMisused):
            delattr(permit, name)
        if isinstance(before, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                before[0] = 1
            with pytest.raises(ValueError):
                before.setflags(write=True)
    for name, value in (("anything", 1), ("_used", False), ("__class__", SimpleNamespace)):
        with pytest.raises(PermitMisused):
            setattr(permit, name, value)
    assert not hasattr(permit, "__dict__")


@every_kind
def test_it_is_neither_copied_nor_stored(make: Any) -> None:
    permit = make()
    for again in (copy.copy, copy.deepcopy, pickle.dumps, lambda one: pickle.dumps(one, protocol=0)):
        with pytest.raises(PermitMisused):
            again(permit)


@pytest.mark.parametrize(
    "kind", [Permit, NoisePermit, SamplingPermit, WeightingPermit, SplitPermit, ResponsePermit, Reservation]
)
def test_nothing_derives_from_it(kind: type) -> None:
    with pytest.raises(PermitMisused):
        type("Own", (kind,), {"__slots__": (), "_use": lambda self: None})


def test_a_draw_takes_the_real_thing_only() -> None:
    class Own(NoisePermit.__base__):  # type: ignore[misc, name-defined]
        __slots__ = ("scale",)

    real = MADE["noise"]()
    for forged in (
        SimpleNamespace(scale=1e-3, _use=lambda: None),
        Mock(spec=NoisePermit),
        object.__new__(NoisePermit),
        object.__new__(Own),
        NoisePermit,
        real.scale,
        None,
    ):
        with pytest.raises(PermitMisused):
            redeem(forged, NoisePermit)
    redeem(real, NoisePermit)
    with pytest.raises(PermitMisused, match="once"):
        redeem(real, NoisePermit)


def test_a_permit_without_the_gate_measures_nothing() -> None:
    uses = (
        lambda one: one.for_sampling(1),
        lambda one: one.for_weighting(),
        lambda one: one.for_split(),
        lambda one: one.for_response(2),
    )
    for use in uses:
        with pytest.raises(PermitMisused):
            use(object.__new__(Permit))


@pytest.mark.parametrize("threshold", [0, -1, 50 * 10**9 + 1, 10**30])
def test_noise_is_for_a_budget_that_somebody_can_have(threshold: int) -> None:
    with pytest.raises(PermitMisused):
        permit_for(BUDGETS, SIZES).for_sampling(threshold)


@pytest.mark.parametrize(("sensitivity", "least"), [(4_503_599, 1), (4_503_600, 2), (10**7, 3), (2**40, 244_141)])
def test_noise_that_would_be_cut_off_is_not_drawn(sensitivity: int, least: int) -> None:
    """Scales up to 2^52: what is above may reach the ends of 64 bits, where OpenDP cuts it off."""
    permits = [permit_for(BUDGETS, SIZES, sensitivity=sensitivity) for _ in range(2)]
    assert permits[0].for_sampling(least).noise.scale <= 2.0**52
    with pytest.raises(PermitMisused, match="no noise"):
        permits[1].for_sampling(least - 1)


@pytest.mark.parametrize("level", [-1, 0.5, "1", True, np.int64(3), None])
def test_a_level_is_a_whole_number_of_nano_epsilons(level: Any) -> None:
    ledger = Ledger(Population({Requirement(2, 1): 10}))
    with pytest.raises(PermitMisused, match="level"):
        ledger.reserve(None, np.array([7]), level)


def test_a_permit_pays_for_one_split_and_nothing_else() -> None:
    permit = permit_for(BUDGETS, SIZES, level=10**7)
    permit.for_split()
    for again in (permit.for_split, permit.for_weighting):
        with pytest.raises(PermitMisused, match="one measurement"):
            again()
