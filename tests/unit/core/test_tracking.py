"""The period and what is spent on it: never more than windows allow, and no less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.profiles import examples
from tests.support.window_checker import violated_windows
from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.ledger import Ledger
from wevent.core.mechanism import NoOffer
from wevent.core.pft.adaptive_period import AdaptivePeriod, capped, periods, some_of, steady, sustainable
from wevent.core.pft.filter import Filter
from wevent.core.step import first_history
from wevent.errors import InsufficientBudget

pytestmark = pytest.mark.slow

populations = st.lists(
    st.tuples(st.one_of(st.integers(1, 4), st.integers(1, 200)), st.integers(400, 10**9), st.integers(0, 5000)),
    min_size=1,
    max_size=6,
    unique_by=lambda drawn: drawn[:2],
).map(lambda drawn: Population({Requirement.from_nano(window, nano): size for window, nano, size in drawn}))


def counts_of(population: Population, slot: int, cells: int = 2) -> np.ndarray:
    """Everybody present, moving back and forth with the slot."""
    first = population.sizes * (slot % 7 + 1) // 10
    return np.stack([first] + [(population.sizes - first) // (cells - 1)] * (cells - 1), axis=1)


def publisher_for(population: Population, seed: int = 1, **options: object) -> Publisher:
    """Weighing by budgets unless told otherwise: that is where a policy can go wrong."""
    return Publisher(population, 2, "pft", noise=SeededNoise(seed), **{"class_weights": "budget", **options})  # type: ignore[arg-type]


def spendable(ledger: Ledger, period: int, budgets: np.ndarray, releases: int) -> bool:
    """Whether the gate lets these budgets be charged now and every `period` slots; tried on a copy."""
    rehearsal = Ledger(ledger._population)
    rehearsal.load(ledger._population, ledger.slot, ledger.export())
    try:
        for _ in range(releases):
            rehearsal.commit(rehearsal.reserve(None, budgets), budgets)
            for _ in range(period - 1):
                rehearsal.commit(None, None)
    except InsufficientBudget:
        return False
    return True


@given(
    windows=st.lists(st.integers(1, 25), min_size=1, max_size=3, unique=True),
    past=st.lists(st.integers(0, 100), max_size=40),
    period=st.integers(1, 30),
)
def test_sustainable_is_the_most_that_can_be_repeated(windows: list[int], past: list[int], period: int) -> None:
    # a wider window has more ε: no class is stricter than another, and each offer stands alone
    ledger = Ledger(Population({Requirement.from_nano(window, 1_000_003 + window): 1 for window in windows}))
    for percent in past:
        charge = ledger.remaining() * percent // 100
        ledger.commit(ledger.reserve(None, charge), charge)
    budgets = sustainable(ledger, period)
    releases = 2 * max(windows) // period + 3
    assert spendable(ledger, period, budgets, releases)
    for row in range(len(windows)):
        more = np.zeros_like(budgets)
        more[row] = budgets[row] + 1  # one nano-epsilon more, for one class
        assert not spendable(ledger, period, more, releases)


def test_sustainable_of_an_unspent_ledger_is_the_steady_budget() -> None:
    ledger = Ledger(Population({Requirement(1, 1): 1, Requirement(40, 1): 1, Requirement(120, "0.6"): 1}))
    for period in (1, 7, 40, 100, 120):
        assert sustainable(ledger, period).tolist() == steady(ledger, period).tolist()
    assert steady(ledger, 50).tolist() == [10**9, 10**9, 200_000_000]


@examples(12)
@given(
    population=populations,
    options=st.sampled_from(
        [{"class_weights": "budget"}, {"class_weights": "equal"}, {"class_weights": "calibrated"}, {"seasonality": 12}]
    ),
    seed=st.integers(0, 99),
)
def test_never_refused_and_no_window_overspent(population: Population, options: dict[str, bool], seed: int) -> None:
    """500 slots: every offer passes the gate, and an independent count of the charges agrees."""
    publisher = publisher_for(population, seed, **options)
    reserve, refused = publisher._ledger.reserve, []

    def watched(probe: object, publication: object, level: int = 0) -> object:
        try:
            return reserve(probe, publication, level)  # type: ignore[arg-type]
        except InsufficientBudget as error:
            refused.append((publisher.slot, error))
            raise

    publisher._ledger.reserve = watched  # type: ignore[method-assign, assignment]
    releases = [publisher.step(counts_of(population, slot)) for slot in range(500)]
    assert refused == []
    keys = [(one.window, one.nano) for one in population.classes]
    charged = [
        {key: (0, charge) for key, charge in zip(keys, release.charges.tolist(), strict=True)} for release in releases
    ]
    assert violated_windows(charged) == []
    assert all(np.isfinite(release.histogram).all() for release in releases)
    assert sum(release.fresh for release in releases) >= 500 // (2 * max(one.window for one in population.classes))


def test_the_first_look_takes_a_sixth_or_a_slots_part() -> None:
    population = Population({Requirement(3, 1): 5, Requirement(6, 1): 5, Requirement(200, "0.6"): 5})
    release = publisher_for(population).step(counts_of(population, 0))
    assert release.fresh
    assert release.charges.tolist() == [333_333_333, 166_666_666, 100_000_000]


def test_nothing_is_spent_between_releases_and_a_period_passes() -> None:
    population = Population({Requirement(60, 1): 1000})
    publisher = publisher_for(population)
    for slot in range(1, 200):
        period, last = publisher._history.memory, publisher._history.last_fresh
        release = publisher.step(counts_of(population, 1))
        if not release.fresh:
            assert release.charges.tolist() == [0]
        elif last > 1:  # the second look does not wait: slot 1 may be unlike all others
            assert slot - last >= period


def test_a_lenient_class_without_members_does_no_harm() -> None:
    population = Population({Requirement(1, "0.00001"): 10, Requirement(1, 50): 0})
    publisher = publisher_for(population)
    for _ in range(5):
        release = publisher.step([[6, 4], [0, 0]])
        assert np.isfinite(release.histogram).all()
        assert release.threshold == 10_000


def test_unbiased_means_equal_budgets_at_every_release() -> None:
    population = Population({Requirement(10, 1): 50, Requirement(40, 2): 900, Requirement(90, "0.3"): 50})
    publisher = publisher_for(population, class_weights="equal")
    fresh = [r for r in (publisher.step(counts_of(population, slot)) for slot in range(300)) if r.fresh]
    assert len(fresh) > 3
    assert all(len(set(release.charges.tolist())) == 1 for release in fresh)
    assert publisher._history.smoothed.composition.tolist() == [0, 0]


def test_unbiased_ignores_the_budgets_of_classes_without_members() -> None:
    population = Population({Requirement(10, 1): 50, Requirement(100, "0.001"): 0})
    charges = publisher_for(population, class_weights="equal").step([[20, 30], [0, 0]]).charges.tolist()
    assert charges == [166_666_666, 166_666]


def test_weights_that_agree_where_counts_are_large_and_use_all_budgets_where_they_are_small() -> None:
    budgets, sizes = np.array([[100_000_000, 1_000_000_000]]), np.array([500, 500])
    large = capped(budgets, sizes, scale=1e9, gain=1.0)
    assert large.budgets.tolist() == [[100_000_000] * 2]
    assert large.composition.tolist() == [0]
    small = capped(budgets, sizes, scale=1e-3, gain=1.0)
    assert small.budgets.tolist() == budgets.tolist()
    assert small.noise == pytest.approx(2 / 0.55**2)
    assert small.composition == pytest.approx((0.5 * (0.01 + 1) - 0.55**2) / 0.55**2)


budget_rows = st.lists(
    st.lists(st.integers(0, 3) | st.integers(0, 50 * 10**9), min_size=4, max_size=4), min_size=1, max_size=6
)


@given(rows=budget_rows, sizes=st.lists(st.integers(0, 5), min_size=4, max_size=4), scale=st.floats(0, 1e6))
def test_the_cap_of_each_release_is_the_best_of_its_budgets(
    rows: list[list[int]], sizes: list[int], scale: float
) -> None:
    """Against every θ tried one by one, release after release, from the definition."""
    found = capped(np.array(rows), np.array(sizes), scale=scale, gain=0.3, sensitivity=2)
    members = sizes if any(sizes) else [1] * 4
    for row, budgets in enumerate(rows):
        costs = []
        for cap in {budget for budget, size in zip(budgets, members, strict=True) if budget > 0 and size > 0}:
            weights = np.minimum(budgets, cap) / 1e9
            mean, square = np.average(weights, weights=members), np.average(weights**2, weights=members)
            costs.append((0.3 * 8 / mean**2 + max(square / mean**2 - 1, 0) * scale, cap))
        if not costs:
            assert found.budgets[row].tolist() == budgets
            assert (found.noise[row], found.composition[row]) == (1e18, 0)
            continue
        assert 0.3 * found.noise[row] + found.composition[row] * scale == pytest.approx(min(costs)[0], rel=1e-6)
        chosen = int(found.budgets[row].max())
        near = [cost for cost, cap in costs if cap >= chosen]
        assert found.budgets[row].tolist() == np.minimum(budgets, chosen).tolist()
        assert min(near) == pytest.approx(min(costs)[0], rel=1e-6)


def test_many_candidates_are_planned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates × classes may be more than fits in memory: parts of any size give the same plan."""
    found = []
    for entries in (1, 1 << 18):
        monkeypatch.setattr("wevent.core.pft.adaptive_period.ENTRIES_AT_ONCE", entries)
        population = Population({Requirement(window, "0.5"): 20 for window in (5, 9, 14)})
        publisher = publisher_for(population, class_weights="budget")
        found.append([publisher.step(counts_of(population, slot)).charges.tolist() for slot in range(40)])
    assert found[0] == found[1]


def test_periods_reach_from_one_slot_to_the_longest_window() -> None:
    found = periods(np.array([5, 37, 200]))
    assert found[0] == 1
    assert found[-1] == 200
    assert {5, 37} <= set(found.tolist())
    assert (np.diff(found) > 0).all()
    assert periods(np.array([1])).tolist() == [1]


def test_many_windows_do_not_make_many_candidates() -> None:
    assert some_of(np.array([40, 7, 40, 200])).tolist() == [7, 40, 200]
    found = some_of(np.arange(3, 2003))
    assert (len(found), found[0], found[-1]) == (24, 3, 2002)
    assert np.ptp(np.diff(found)) <= 1


def test_a_still_stream_gets_a_longer_period_than_a_wild_one() -> None:
    population = Population({Requirement(40, 1): 200})
    random = np.random.default_rng(1)
    chosen = []
    for wild in (False, True):
        publisher = publisher_for(population)
        for _ in range(300):
            first = int(random.integers(0, 200)) if wild else 30
            publisher.step([[first, 200 - first]])
        chosen.append(publisher._history.memory)
    assert chosen[0] >= 5
    assert chosen[1] <= 2


def test_a_release_waits_until_half_of_its_budget_is_there() -> None:
    """After a period is shortened the windows are full of old charges: a release of a few nano-epsilons is worth nothing."""
    population = Population({Requirement(40, 1): 1000})
    ledger, policy = Ledger(population), AdaptivePeriod(Filter().outlook)
    publisher = publisher_for(population)
    publisher.step(counts_of(population, 1))
    history = replace(publisher._history, slot=3, last_fresh=1, memory=2)
    spent = ledger.epsilons - 1000  # all but a thousand
    ledger.commit(ledger.reserve(None, spent), spent)
    ledger.commit(None, None)
    assert policy.offer(ledger, history) is NoOffer.NOT_DUE
    for _ in range(38):
        ledger.commit(None, None)
    history = replace(history, slot=41)
    assert not isinstance(policy.offer(ledger, history), NoOffer)


def test_offers_do_not_depend_on_how_many_everybody_is() -> None:
    """Budget times users exceeds 64 bits from 2·10^8 users with an epsilon of 50 on; a sum that wraps may never be ready."""
    offers = []
    for factor in (1, 10**6, 2**26, 2**30):
        ledger = Ledger(Population({Requirement(3, 50): 100 * factor, Requirement(5, 40): 900 * factor}))
        history = replace(first_history(2, 2, Filter()), slot=7, last_fresh=5, memory=2)
        offers.append(AdaptivePeriod(Filter().outlook, unbiased=True).offer(ledger, history).tolist())
    assert offers == [offers[0]] * 4


def first_budgets(users: int, cells: int, window: int = 500) -> int:
    """What the first look spends, of an epsilon of 1."""
    population = Population({Requirement(window, 1): users})
    publisher = Publisher(population, cells, "pft", noise=SeededNoise(1))
    return int(publisher.step(np.zeros((1, cells), dtype=np.int64)).charges[0])


def test_the_first_look_takes_no_more_than_it_needs() -> None:
    """Noise of a tenth of the root of an average cell's users, a sixth of ε at most, a slot's part at least."""
    assert first_budgets(1000, 5) == 10**9 // 6
    assert first_budgets(2_000_000, 2) == pytest.approx(2**0.5 / 100 * 10**9, rel=1e-6)
    assert first_budgets(10**9, 2) == 10**9 // 500
    assert first_budgets(10**9, 2, window=1) == 10**9


@pytest.mark.parametrize(("users", "soonest"), [(100, 120), (1000, 6), (20_000, 2)])
def test_a_second_look_comes_as_soon_as_it_could_show_a_jump(users: int, soonest: int) -> None:
    """All were elsewhere in slot 1: the period that was chosen then is not waited for."""
    population = Population({Requirement(120, 1): users})
    publisher = Publisher(population, 2, "pft", noise=SeededNoise(1))
    publisher.step(np.array([[users // 2, 0]]))
    second = next(slot for slot in range(2, 130) if publisher.step(np.array([[0, users // 2]])).fresh)
    assert second <= soonest


def test_a_period_beyond_every_window_is_kept() -> None:
    """Of a cycle as long as the windows: releases a whole cycle apart would meet one phase of it for ever."""
    population = Population({Requirement(24, 1): 500})
    publisher = Publisher(population, 4, "pft", noise=SeededNoise(3), seasonality=(24.0,), class_weights="equal")
    gaps = []
    for slot in range(1, 700):
        level = 4 * (1 + 0.9 * np.sin(2 * np.pi * slot / 24))
        before = publisher._history.last_fresh, publisher._history.memory
        if publisher.step([[round(level)] * 4]).fresh and slot > 100:
            gaps.append((slot - before[0], before[1]))
    assert any(remembered > 24 for _, remembered in gaps)
    assert all(gap >= remembered for gap, remembered in gaps)
