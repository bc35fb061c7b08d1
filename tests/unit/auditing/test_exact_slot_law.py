"""The probability of a slot's outcome, found by running a publisher, against formulas written out here."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

from wevent import Population, Publisher, Requirement
from wevent.auditing.exact.laws import EXACT, laplace_between
from wevent.auditing.exact.scripted_noise import ScriptedNoise
from wevent.auditing.exact.slot_law import SlotLaw
from wevent.auditing.exact.slot_run import run_slot
from wevent.auditing.exact.state_copy import fingerprint, fork
from wevent.core.budget import NANO, noise_scale, sampling_probability
from wevent.core.estimators import Sampling, laplace_error, sample
from wevent.core.mechanism import Measurement

ROUNDING = Decimal("1e-50")
TWO = Population({Requirement(2, 1): 1000, Requirement(2, "0.4"): 4})  # rows: (2, 0.4), (2, 1)


@pytest.fixture(autouse=True)
def _sixty_digits() -> Iterator[None]:
    with localcontext(EXACT):
        yield


def laplace(threshold: int, noise: int) -> Decimal:
    q = (-1 / Decimal(noise_scale(threshold, 1))).exp()
    return (1 - q) / (1 + q) * q ** abs(noise)


def kept_law(count: int, budget: int, threshold: int) -> list[tuple[int, Decimal]]:
    p = Decimal(sampling_probability(budget, threshold)) / 2**64
    return [
        (sum(choice), p ** sum(choice) * (1 - p) ** (count - sum(choice))) for choice in product((0, 1), repeat=count)
    ]


def probability(publisher: Publisher, counts: Any, wanted: Any) -> Decimal:
    return sum((branch.probability for branch in SlotLaw().branches(publisher, counts, wanted)), start=Decimal(0))


def test_a_sampled_sum_with_noise() -> None:
    publisher = Publisher(TWO, 2, "pbu", noise=ScriptedNoise())
    wanted = run_slot(publisher, np.array([[2, 1], [40, 60]]), (), lambda number, call: call.default())  # [42, 61]
    for sampled in ([2, 1], [1, 1], [0, 0]):
        direct = Decimal(0)
        for (first, p_first), (second, p_second) in product(
            *(kept_law(count, 200_000_000, 500_000_000) for count in sampled)
        ):
            noise = laplace(500_000_000, 42 - 40 - first) * laplace(500_000_000, 61 - 60 - second)
            direct += p_first * p_second * noise
        found = probability(publisher, np.array([sampled, [40, 60]]), wanted)
        assert abs(found / direct - 1) < ROUNDING


def test_a_probe_and_a_publication_draw_samples_of_their_own() -> None:
    publisher = Publisher(TWO, 1, "pbd", noise=ScriptedNoise())
    counts = np.array([[1], [300]])
    wanted = run_slot(publisher, counts)
    assert wanted.observables["dissimilarity", 0] == 301.0
    assert wanted.measured == (301.0,)
    direct = Decimal(1)
    for budget, threshold in ((100_000_000, 250_000_000), (100_000_000, 250_000_000)):  # shares; halves of halves
        direct *= sum(p * laplace(threshold, 301 - 300 - kept) for kept, p in kept_law(1, budget, threshold))
    assert abs(probability(publisher, counts, wanted) / direct - 1) < ROUNDING


def test_all_outcomes_of_a_slot_sum_to_one() -> None:
    publisher = Publisher(Population({Requirement(1, 8): 3, Requirement(1, "0.5"): 1}), 1, "pbu", noise=ScriptedNoise())
    law, counts = SlotLaw(), np.array([[1], [2]])
    total = Decimal(0)
    for value in range(-20, 25):
        wanted = run_slot(publisher, counts, (), lambda number, call, v=value: call.default() + (v - 3) * (number == 1))
        assert wanted.measured == (value,)
        total += sum(branch.probability for branch in law.branches(publisher, counts, wanted))
    assert abs(total - 1) < ROUNDING


def test_reports_of_the_local_model() -> None:
    publisher = Publisher(Population({Requirement(1, 1): 1}), 1, "plbu", noise=ScriptedNoise())
    wanted = run_slot(publisher, np.array([[1]]))
    present, absent = (probability(publisher, np.array([[count]]), wanted) for count in (1, 0))
    assert abs(present + absent - 1) < ROUNDING  # d = 1: a truth and its lie
    assert Decimal(1) - Decimal("1e-18") < (present / absent).ln() <= 1


def test_what_other_counts_never_show_has_no_way_to_it() -> None:
    class OneNoise(Sampling):
        def measure(self, permit, plan, counts, noise):
            spend = permit.for_sampling(plan.threshold)
            values = sample(counts, spend, noise) + noise.laplace(spend.noise, 1)
            return Measurement(values, laplace_error(spend.noise.scale))

    publisher = Publisher(Population({Requirement(1, 1): 9}), 2, "uniform", noise=ScriptedNoise())
    publisher._pieces = type(publisher._pieces)(
        publisher._pieces.policy, OneNoise(), publisher._pieces.smoother, None, False
    )
    wanted = run_slot(publisher, np.array([[3, 4]]))
    law = SlotLaw()
    assert law.branches(publisher, np.array([[4, 5]]), wanted)
    assert law.branches(publisher, np.array([[4, 4]]), wanted) == []


def test_draws_that_a_clip_makes_alike_are_added_up() -> None:
    class Clipped(Sampling):
        def measure(self, permit, plan, counts, noise):
            measured = super().measure(permit, plan, counts, noise)
            return measured._replace(values=np.clip(measured.values, 0, 3))

    publisher = Publisher(Population({Requirement(1, 1): 9}), 1, "uniform", noise=ScriptedNoise())
    publisher._pieces = type(publisher._pieces)(
        publisher._pieces.policy, Clipped(), publisher._pieces.smoother, None, False
    )
    below = sum((laplace(NANO, noise) for noise in range(-400, 0)), start=Decimal(0))  # e^-400 is less than 60 digits
    for value, direct in (
        (0, below),
        (1, laplace(NANO, 0)),
        (2, laplace(NANO, 1)),
        (3, 1 - below - laplace(NANO, 0) - laplace(NANO, 1)),
    ):
        wanted = run_slot(publisher, np.array([[1]]), (), lambda number, call, v=value: call.default() + v - 1)
        assert abs(probability(publisher, np.array([[1]]), wanted) / direct - 1) < ROUNDING


@pytest.mark.parametrize(("low", "high"), [(-3, 2), (-9, -4), (4, 9), (0, 0), (None, -2), (None, 3), (5, None)])
def test_the_probability_of_a_run_of_draws(low: int | None, high: int | None) -> None:
    ends = -400 if low is None else low, 400 if high is None else high
    direct = sum((laplace(NANO, noise) for noise in range(ends[0], ends[1] + 1)), start=Decimal(0))
    assert abs(laplace_between(noise_scale(NANO, 1), low, high) / direct - 1) < ROUNDING


@pytest.mark.parametrize("mechanism", ["pbd", "pba", "pft", "plbu"])
def test_a_fork_is_in_the_same_state_and_goes_its_own_way(mechanism: str) -> None:
    population = Population({Requirement(3, 1): 5, Requirement(2, "0.4"): 4})
    publisher = Publisher(population, 2, mechanism, noise=ScriptedNoise())
    counts = np.array([[1, 0], [2, 1]])
    publisher.step(counts)
    before = fingerprint(publisher)
    forked = fork(publisher, ScriptedNoise())
    assert before is not None
    assert fingerprint(forked) == before
    for _ in range(4):
        forked.step(counts)
    assert fingerprint(publisher) == before != fingerprint(forked)
    twin = fork(publisher, ScriptedNoise())
    for _ in range(4):
        publisher.step(counts)
        twin.step(counts)
    assert fingerprint(publisher) == fingerprint(twin)
    assert (
        publisher.ledger.remaining().tolist() == twin.ledger.remaining().tolist()
    )  # its sums are views: they moved along


def test_what_a_closure_remembers_is_copied_too() -> None:
    remembered: list[int] = []

    class Holder:
        def __init__(self) -> None:
            self.note = lambda value: remembered.append(value) or len(remembered)

    holder = Holder()
    forked = fork(holder, ScriptedNoise())
    assert forked.note(1) == 1
    assert remembered == []
