"""People who join or leave are public: what is known of others says little about them (spec 11.7, new people)."""

from __future__ import annotations

import numpy as np
import pytest

from wevent import InvalidOption, Population, Publisher, Release, Requirement, Roster, SeededNoise
from wevent.core.mechanism import ErrorModel, Estimate
from wevent.core.step import widened

SMALL, LARGE = Requirement(40, "0.9"), Requirement(120, "0.5")


def lived(publisher: Publisher, sizes: dict[int, int], slots: int) -> list[tuple[Release, int]]:
    """Slot after slot, with so many people in each class from these slots on; 60 % of them are in the first cell."""
    seen = []
    for slot in range(publisher.slot, slots + 1):
        if slot in sizes:
            after = Population(dict.fromkeys(publisher.population.classes, sizes[slot]))
            publisher.update(after, turnover=abs(int(after.sizes.sum() - publisher.population.sizes.sum())))
        counts = np.array([[int(0.6 * size), 0] for size in publisher.population.sizes])
        seen.append((publisher.step(counts), int(counts.sum())))
    return seen


def begun(*classes: Requirement, seed: int = 1, **options: object) -> Publisher:
    return Publisher(Population(dict.fromkeys(classes, 0)), 2, noise=SeededNoise(seed), **options)


@pytest.mark.parametrize("classes", [(SMALL,), (SMALL, LARGE)], ids=["one class", "two"])
def test_a_service_that_begins_without_anybody_sees_who_enrols(classes: tuple[Requirement, ...]) -> None:
    missed = 0
    for seed in range(10):
        seen = lived(begun(*classes, seed=seed), {5: 100}, 40)
        assert seen[4][0].fresh, "at once"
        missed += sum(not bool((low <= [truth, 0]).all() and ([truth, 0] <= high).all()) for low, high, truth in
                      ((*release.interval(), truth) for release, truth in seen))  # fmt: skip
    assert missed <= 0.05 * 400


def test_who_enrols_little_by_little_is_looked_at_again_and_again() -> None:
    seen = lived(begun(SMALL, LARGE), {5: 1, 6: 3, 7: 10, 9: 40, 12: 100}, 12)
    assert [release.slot for release, _ in seen if release.fresh] == [1, 5, 6, 7, 9, 12]
    publisher = begun(SMALL)
    for release, _ in lived(publisher, {slot: 3**slot for slot in range(2, 12)}, 11)[1:]:
        assert 0 < int(release.charges[0]) < SMALL.nano // 3, "something is left for the next"


def test_few_newcomers_hasten_nothing_and_widen_what_is_said() -> None:
    with_them, without = (begun(SMALL), begun(SMALL))
    for publisher in (with_them, without):
        publisher.update(Population({SMALL: 100}), turnover=0)
        lived(publisher, {}, 3)
    assert not lived(with_them, {4: 120}, 4)[0][0].fresh
    lived(without, {}, 4)
    wide, narrow = (lived(publisher, {}, 5)[0][0].std_error for publisher in (with_them, without))
    assert wide is not None
    assert narrow is not None
    assert np.allclose(wide**2, narrow**2 + (20 / 2) ** 2)


def test_the_number_is_part_of_the_state_and_ends_with_a_release() -> None:
    publisher = begun(SMALL)
    publisher.update(Population({SMALL: 100}), turnover=0)
    lived(publisher, {}, 3)
    publisher.update(Population({SMALL: 90, LARGE: 15}), turnover=25)
    again = Publisher.restore(publisher.state())
    assert again._history.turnover == publisher._history.turnover == 25
    publisher.update(Population({SMALL: 900}), turnover=825)
    counts = np.full((1, 2), 100)
    assert publisher.step(counts).fresh
    assert publisher._history.turnover == 0


def test_users_who_are_replaced_by_as_many_others_widen_the_interval() -> None:
    """900 of 1,000 users leave and 900 others join: sizes stay the same, counts do not."""
    for updates in (((1000, 1800),), ((100, 900), (1000, 900))):
        publisher = Publisher(Population({Requirement(20, 1): 1000}), 2, noise=SeededNoise(1))
        for _ in range(60):
            publisher.step([[900, 50]])
        for size, turnover in updates:
            publisher.update(Population({Requirement(20, 1): size}), turnover=turnover)
        low, high = publisher.step([[50, 900]]).interval()
        assert (low <= [50, 900]).all()
        assert (high >= [50, 900]).all()


@pytest.mark.parametrize("turnover", [-1, 1.5, None, True])
def test_a_turnover_is_a_whole_number_from_0_on(turnover: object) -> None:
    with pytest.raises(InvalidOption):
        begun(SMALL).update(Population({SMALL: 3}), turnover=turnover)  # type: ignore[arg-type]


def test_rosters_tell_their_turnover() -> None:
    before = Roster.from_columns(["a", "b", "c"], [4, 4, 4], [1, 1, 1])
    after = Roster.from_columns(["b", "c", "d", "e"], [8, 4, 4, 4], [1, 1, 1, 1])
    assert (after.turnover(before), before.turnover(after), after.turnover(after)) == (3, 3, 0)


def test_only_an_estimate_is_widened() -> None:
    law = ErrorModel("laplace", 2.0, 8.0)
    measured = Estimate(np.ones(2), np.ones(2), law)
    nothing = Estimate(np.zeros(2), None, None)
    assert widened(measured, 100) is measured
    assert widened(nothing, 100) is nothing
    estimate = Estimate(np.ones(2), np.full(2, 3.0), ErrorModel("estimate", 3.0, 9.0))
    assert widened(estimate, 0) is estimate
    wide = widened(estimate, 8)
    assert wide.std_error is not None
    assert wide.std_error.tolist() == [5.0, 5.0]
    assert wide.error == ErrorModel("estimate", 5.0, 25.0)


@pytest.mark.parametrize("large", [1e-200, 1e200])
def test_no_error_is_too_small_or_large_to_be_widened(large: float) -> None:
    estimate = Estimate(np.ones(2), np.full(2, large), ErrorModel("estimate", 3.0, 9.0))
    with np.errstate(all="raise"):
        wide = widened(estimate, 8).std_error
    assert wide is not None
    assert np.isfinite(wide).all()


def left_of(publisher: Publisher) -> int:
    return int(publisher._ledger.forecast(np.zeros(1, dtype=np.int64))[:, 0].max())


@pytest.mark.parametrize("classes", [(SMALL,), (SMALL, LARGE)], ids=["one class", "two"])
def test_the_last_of_a_window_is_no_look(classes: tuple[Requirement, ...]) -> None:
    """With a few nano-epsilons noise is a million times what it hides, and the filter would begin with that."""
    publisher = Publisher(Population(dict.fromkeys(classes, 100)), 2, noise=SeededNoise(1))
    lived(publisher, {}, 3)
    nothing = np.zeros(len(classes), dtype=np.int64)
    publisher.replay(nothing, np.maximum(publisher.ledger.remaining() - 9, 0), None)
    assert left_of(publisher) == 9
    release = lived(publisher, {5: 400}, 5)[0][0]
    assert not release.fresh
    assert release.std_error is not None
    assert (release.std_error < 10_000).all()
    seen = lived(publisher, {}, 150)
    assert any(release.fresh for release, _ in seen), "as soon as there is enough"
