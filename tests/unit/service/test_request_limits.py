"""Rate limits: per caller, and of nobody else's making."""

from __future__ import annotations

import random

import pytest

from tests.unit.service.access_parts import NOW, Clock
from wevent.service import access
from wevent.service.access import Buckets


def test_a_minute_is_what_it_says(clock: Clock) -> None:
    buckets = Buckets(60)
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert buckets.take("a") == pytest.approx(1.0)
    clock.now += 0.999
    assert buckets.take("a") > 0
    clock.now += 0.001
    assert buckets.take("a") == 0.0
    clock.now += 3600
    assert [buckets.take("a") for _ in range(61)].count(0.0) == 60  # no more than a minute is saved up


def test_who_waits_as_told_is_let_in(clock: Clock) -> None:
    buckets = Buckets(7)
    for _ in range(1000):
        clock.now += buckets.take("a")
        assert buckets.take("a") == 0.0 or clock.now == NOW


def test_over_long_the_rate_holds(clock: Clock) -> None:
    chance = random.Random(1)
    buckets = Buckets(100)
    taken = 0
    for _ in range(20_000):
        clock.now += chance.expovariate(10)
        number = chance.randrange(1, 300)
        taken += number if buckets.take("a", number) == 0.0 else 0
    assert taken <= 100 * (1 + (clock.now - NOW) / 60) + 300


def test_a_batch_above_a_minute_needs_a_full_bucket_and_leaves_a_debt(clock: Clock) -> None:
    buckets = Buckets(60)
    assert buckets.take("a", 180) == 0.0
    assert buckets.take("a") == pytest.approx(121.0)
    clock.now += 121
    assert buckets.take("a") == 0.0
    assert buckets.take("a", 180) == pytest.approx(60.0)


def test_others_make_no_difference(clock: Clock) -> None:
    def answers(others: int) -> list[float]:
        clock.now = NOW
        addresses, tokens, events = (Buckets(5) for _ in range(3))
        found = []
        for moment in range(60):
            clock.now += 3
            for number in range(others):
                addresses.take(f"{moment} {number}")
                tokens.take(f"t{number}")
                events.take(f"t{number}", 100)
            found += [tokens.take("mine"), events.take("mine", 2)]
        return found

    assert answers(0) == answers(50)
    assert max(answers(0)) > 0


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_MAX_CALLERS", 100)
    buckets = Buckets(10)
    for number in range(10_000):
        buckets.take(f"{number}")
    assert len(buckets) == 100
    clock.now += 60
    for _ in range(100):
        buckets.take("a")
        clock.now += 7
    assert len(buckets) == 1  # full ones are as good as none


def test_no_limit(clock: Clock) -> None:
    buckets = Buckets(0)
    assert {buckets.take("a", 1_000_000) for _ in range(100)} == {0.0}
    assert len(buckets) == 0
