"""The gate: what it refuses, what it remembers, and that nothing goes round it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.profiles import examples
from wevent import InsufficientBudget, InvalidState, Population, Requirement, SeededNoise
from wevent.core.ledger import Ledger
from wevent.core.permit import NoisePermit, Permit, PermitMisused, Reservation, ResponsePermit, SamplingPermit

SHORT, LONG = Requirement(2, 1), Requirement(5, 2)
BOTH = Population({SHORT: 10, LONG: 20})


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def spend(ledger: Ledger, probe: np.ndarray | None, publication: np.ndarray | None) -> None:
    reservation = ledger.reserve(probe, publication)
    ledger.commit(reservation, None if publication is None else reservation.publication_budgets)


def test_exactly_what_is_left_can_be_reserved_and_not_a_nano_more() -> None:
    ledger = Ledger(BOTH)
    spend(ledger, ints(1, 5), ints(SHORT.nano - 10, 7))
    ledger.reserve(ints(4, 0), ints(5, LONG.nano - 12))
    with pytest.raises(InsufficientBudget) as caught:
        ledger.reserve(ints(4, 0), ints(6, 0))
    assert (caught.value.requirement, caught.value.requested, caught.value.remaining) == (SHORT, 10, 9)
    with pytest.raises(InsufficientBudget) as caught:
        ledger.reserve(ints(0, 1), ints(0, LONG.nano - 12))
    assert caught.value.requirement == LONG


def test_less_than_the_reservation_may_be_charged_never_more() -> None:
    ledger = Ledger(BOTH)
    reservation = ledger.reserve(None, ints(40, 50))
    for charges in (ints(41, 50), ints(-1, 50)):
        with pytest.raises(PermitMisused):
            ledger.commit(reservation, charges)
    assert ledger.slot == 1
    ledger.commit(reservation, ints(40, 0))
    assert ledger.spent().tolist() == [40, 0]


def test_a_reservation_is_for_its_slot() -> None:
    ledger = Ledger(BOTH)
    reservation = ledger.reserve(None, ints(4, 5))
    ledger.commit(reservation, ints(4, 5))
    with pytest.raises(PermitMisused, match="live reservation"):
        ledger.commit(reservation, ints(4, 5))
    with pytest.raises(PermitMisused):
        ledger.commit(None, ints(1, 1))
    assert ledger.slot == 2


LARGEST = np.iinfo(np.int64).max


class Deceiving(np.ndarray):
    """Never larger and never smaller than anything, until it is spent."""

    def __gt__(self, other: object) -> np.ndarray:  # type: ignore[override]
        return np.zeros(self.shape, dtype=np.bool_)

    __lt__ = __gt__  # type: ignore[assignment]


MALFORMED = {
    "one too few": ints(1),
    "one too many": ints(1, 2, 3),
    "a column": ints(1, 2).reshape(2, 1),
    "negative": ints(-1, 2),
    "as negative as can be": ints(0, -LARGEST - 1),
    "floats": np.array([0.5, 1.0]),
    "not a number": np.array([np.nan, 1.0]),
    "32 bits": np.array([1, 1], dtype=np.int32),
    "without a sign": np.array([1, 2**63], dtype=np.uint64),
    "another byte order": np.array([1, 1], dtype=">i8"),
    "objects": np.array([1, 10**30], dtype=object),
    "a list": [1, 1],
    "a number": 1,
    "masked": np.ma.masked_array(ints(1, 1), mask=[True, False]),
    "a deceiving array": ints(LARGEST, LARGEST).view(Deceiving),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_budgets_are_a_bug_of_the_policy(case: str) -> None:
    ledger = Ledger(BOTH)
    for probe, publication in ((None, MALFORMED[case]), (MALFORMED[case], None), (ints(1, 1), MALFORMED[case])):
        with pytest.raises(PermitMisused, match="non-negative int64"):
            ledger.reserve(probe, publication)  # type: ignore[arg-type]
    assert ledger.slot == 1


@pytest.mark.parametrize("part", [1, SHORT.nano, 2**62, 2**62 + 1, LARGEST - 1, LARGEST])
@pytest.mark.parametrize("other", [SHORT.nano + 1, 2**62, LARGEST - SHORT.nano, LARGEST])
def test_no_two_parts_wrap_round_the_gate(part: int, other: int) -> None:
    """A sum of 64 bits would come out negative, and less than anything that remains."""
    ledger = Ledger(BOTH)
    for probe, publication in ((part, other), (other, part)):
        with pytest.raises(InsufficientBudget) as caught:
            ledger.reserve(ints(probe, 0), ints(publication, 0))
        assert (caught.value.requested, caught.value.remaining) == (part + other, SHORT.nano)
        with pytest.raises(InsufficientBudget):
            ledger.reserve(ints(0, 0), ints(other, 0))


def test_what_remains_cannot_wrap_either() -> None:
    """A class that owes more than epsilon, as a journal of another gate may say, has less than nothing left."""
    ledger = Ledger(BOTH)
    for _ in range(4):
        ledger.replay(ints(0, 0), ints(0, LONG.nano))
    assert ledger.remaining().tolist()[1] == -3 * LONG.nano
    for probe, publication in ((0, 1), (1, 0), (LARGEST, LARGEST), (0, LARGEST), (LARGEST, 0)):
        with pytest.raises(InsufficientBudget):
            ledger.reserve(ints(0, probe), ints(0, publication))


@pytest.mark.parametrize("case", [*MALFORMED, "above the reservation", "the largest number"])
def test_malformed_charges_are_refused_at_commit(case: str) -> None:
    ledger = Ledger(BOTH)
    reservation = ledger.reserve(ints(1, 1), ints(40, 50))
    wrong = {"above the reservation": ints(40, 51), "the largest number": ints(40, LARGEST), **MALFORMED}[case]
    with pytest.raises(PermitMisused):
        ledger.commit(reservation, wrong)
    assert ledger.slot == 1
    assert ledger.spent().tolist() == [0, 0]


def test_nobody_makes_a_reservation_but_the_gate() -> None:
    ledger = Ledger(BOTH)
    forged = Reservation(1, (ints(-9, 0), ints(9, 9)), (None, None))
    with pytest.raises(PermitMisused):
        ledger.commit(forged, ints(9, 9))
    assert ledger.remaining().tolist() == [SHORT.nano, LONG.nano]


def test_a_new_reservation_ends_the_one_before_and_everything_made_from_it() -> None:
    ledger = Ledger(BOTH)
    permits = [ledger.reserve(None, ledger.remaining()).publication for _ in range(3)]
    for ended in permits[:2]:
        assert ended is not None
        with pytest.raises(PermitMisused):
            ended.for_weighting()


def test_a_form_of_an_ended_reservation_draws_nothing() -> None:
    ledger, noise = Ledger(BOTH), SeededNoise(1)
    early = ledger.reserve(None, ledger.remaining())
    assert early.publication is not None
    form = early.publication.for_weighting()
    late = ledger.reserve(None, ledger.remaining())
    with pytest.raises(PermitMisused):
        noise.laplace(form.noise, 2)
    with pytest.raises(PermitMisused):
        ledger.commit(early, early.publication_budgets)
    ledger.commit(late, ints(0, 0))
    assert late.publication is not None
    with pytest.raises(PermitMisused):
        late.publication.for_weighting()


def test_a_draw_of_an_ended_reservation_is_charged_and_is_the_last_of_its_slot() -> None:
    ledger, noise = Ledger(BOTH), SeededNoise(1)
    half = ledger.remaining() // 2
    reservation = ledger.reserve(None, half)
    assert reservation.publication is not None
    noise.laplace(reservation.publication.for_weighting().noise, 2)
    with pytest.raises(InsufficientBudget):
        ledger.reserve(None, ints(1, 1))
    assert ledger.spent().tolist() == half.tolist()
    continued = Ledger(BOTH)
    continued.load(BOTH, ledger.slot, ledger.export())
    for each in (ledger, continued):
        with pytest.raises(InsufficientBudget):
            each.reserve(None, ints(1, 1))
        assert [part.tolist() for part in each.forfeited] == [[0, 0], half.tolist()]
        each.commit(None, None)
        assert each.remaining().tolist() == (ints(SHORT.nano, LONG.nano) - half).tolist()
        each.reserve(None, ints(1, 1))


@pytest.mark.parametrize("way", ["replay", "update", "load"])
def test_no_reservation_outlives_what_changes_the_books(way: str) -> None:
    ledger = Ledger(BOTH)
    full = ledger.remaining()
    reservation = ledger.reserve(None, full)
    if way == "replay":
        ledger.replay(ints(0, 0), full)
    elif way == "update":
        ledger.update(Population({SHORT: 10}))
    else:
        ledger.load(BOTH, ledger.slot, ledger.export())
    assert reservation.publication is not None
    with pytest.raises(PermitMisused):
        reservation.publication.for_weighting()
    with pytest.raises(PermitMisused):
        ledger.commit(reservation, full)


def test_a_drawn_publication_is_charged_even_if_the_commit_names_no_charge() -> None:
    ledger = Ledger(BOTH)
    reservation = ledger.reserve(None, ints(5, 7))
    assert reservation.publication is not None
    SeededNoise(1).laplace(reservation.publication.for_weighting().noise, 2)
    ledger.commit(reservation, None)
    assert ledger.spent().tolist() == [5, 7]


@pytest.mark.parametrize("case", [*MALFORMED, "above epsilon", "the largest number"])
def test_malformed_charges_are_not_replayed(case: str) -> None:
    ledger = Ledger(BOTH)
    wrong = {"above epsilon": ints(0, LONG.nano + 1), "the largest number": ints(0, LARGEST), **MALFORMED}[case]
    for probe, publication in ((wrong, ints(0, 0)), (ints(0, 0), wrong)):
        with pytest.raises(InvalidState):
            ledger.replay(probe, publication)
    with pytest.raises(InvalidState, match="above epsilon"):
        ledger.replay(ints(SHORT.nano, 0), ints(1, 0))
    assert ledger.slot == 1
    assert ledger.spent().tolist() == [0, 0]


def test_the_ledgers_own_numbers_cannot_be_made_writeable() -> None:
    """A policy reads them, and the gate takes `shares` on trust."""
    ledger = Ledger(BOTH)
    for name in ("windows", "epsilons", "halves", "shares", "sizes", "nothing"):
        with pytest.raises(ValueError):
            getattr(ledger, name).setflags(write=True)
    with pytest.raises(ValueError, match="read-only"):
        ledger.charged[0] = False
    with pytest.raises(ValueError, match="read-only"):
        ledger.publication_spent[0] = -1


def test_a_slot_that_is_committed_without_its_reservation_charges_what_was_drawn() -> None:
    ledger = Ledger(BOTH)
    reservation = ledger.reserve(ints(1, 2), ints(4, 5))
    assert reservation.publication is not None
    SeededNoise(1).laplace(reservation.publication.for_sampling(5).noise, 1)
    ledger.commit(None, None)
    assert (ledger.slot, ledger.spent().tolist()) == (2, [4, 5])


def test_what_is_reserved_cannot_be_changed_afterwards() -> None:
    ledger, budgets = Ledger(BOTH), ints(4, 5)
    reservation = ledger.reserve(None, budgets)
    budgets[:] = 1_000_000
    assert reservation.publication_budgets.tolist() == [4, 5]
    assert reservation.publication is not None
    with pytest.raises(ValueError, match="read-only"):
        reservation.publication.budgets[0] = 9
    with pytest.raises(ValueError):
        reservation.publication.budgets.setflags(write=True)


def test_permits_are_made_by_the_gate_only_and_pay_once() -> None:
    permit = Ledger(BOTH).reserve(None, ints(4, 5)).publication
    assert permit is not None
    with pytest.raises(PermitMisused):
        Permit(object(), ints(4), ints(1), threshold_sizes=ints(1), sensitivity=1, cells_per_user=1)
    with pytest.raises(PermitMisused):
        NoisePermit(object(), 5, 1)
    with pytest.raises(PermitMisused):
        SamplingPermit(None, permit, 5)
    with pytest.raises(PermitMisused):
        ResponsePermit("gate", permit, 5)
    permit.for_sampling(5)
    with pytest.raises(PermitMisused, match="one measurement"):
        permit.for_sampling(5)
    with pytest.raises(PermitMisused, match="one measurement"):
        permit.for_response(2)


def test_permits_carry_the_sizes_and_the_sensitivity() -> None:
    permit = Ledger(BOTH, sensitivity=6, cells_per_user=3).reserve(None, ints(4, 5)).publication
    assert permit is not None
    assert permit.sizes.tolist() == [10, 20]
    spend_permit = permit.for_sampling(5)
    assert spend_permit.noise.scale == pytest.approx(6e9 / 5)
    assert spend_permit.cells_per_user == 3
    assert spend_permit.certain.tolist() == [False, True]
    assert not spend_permit.keeps_all


def test_float_probabilities_are_those_of_the_exact_ones() -> None:
    population = Population({Requirement(1, 49 + row / 100): 5 for row in range(6)})
    budgets = ints(0, 1, 10**6, 10**9, 30 * 10**9, 40 * 10**9)
    for k in (1, 3):
        permit = Ledger(population, cells_per_user=k).reserve(None, budgets).publication
        assert permit is not None
        sampling = permit.for_sampling(40 * 10**9)
        exact = sampling.exact_probabilities() / 2.0**64
        floats = sampling.float_probabilities()
        assert floats[-1] == 1.0
        assert floats[:-1] == pytest.approx(exact[:-1], rel=1e-9, abs=2**-63)


@st.composite
def ledger_scripts(draw: st.DrawFn) -> tuple[list[Requirement], list[tuple[bool, list[tuple[int, int]]]]]:
    windows = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True))
    rows = [Requirement(window, 1 + window / 10) for window in sorted(windows)]  # none stricter than another
    slot = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=len(rows), max_size=len(rows))
    return rows, draw(st.lists(st.tuples(st.booleans(), slot), min_size=1, max_size=30))


@examples(100)
@given(ledger_scripts())
def test_the_sums_are_those_of_a_plain_list_and_no_window_is_overspent(script) -> None:
    rows, slots = script
    ledger = Ledger(Population(dict.fromkeys(rows, 1)))
    assert ledger.slot == 1
    history: list[list[tuple[int, int]]] = []
    for publish, wanted in slots:
        recent = [
            [charges[row] for charges in history[max(0, len(history) - requirement.window + 1) :]]
            for row, requirement in enumerate(rows)
        ]
        expected = [sum(map(sum, charges)) for charges in recent]
        assert ledger.spent().tolist() == expected
        assert ledger.publication_spent.tolist() == [sum(charge for _, charge in charges) for charges in recent]
        assert ledger.remaining().tolist() == [one.nano - spent for one, spent in zip(rows, expected, strict=True)]
        probe, publication = (ints(*column) for column in zip(*wanted, strict=True))
        fits = all(sum(wanted[row]) + expected[row] <= one.nano for row, one in enumerate(rows))
        if fits:
            reservation = ledger.reserve(probe, publication)
            ledger.commit(reservation, reservation.publication_budgets if publish else None)
            history.append([(one, other if publish else 0) for one, other in wanted])
        else:
            with pytest.raises(InsufficientBudget):
                ledger.reserve(probe, publication)
            ledger.commit(None, None)
            history.append([(0, 0)] * len(rows))
    for row, requirement in enumerate(rows):
        for start in range(len(history)):
            assert sum(sum(one[row]) for one in history[start : start + requirement.window]) <= requirement.nano


@pytest.mark.parametrize("length", [0, 1, 13, 15, 28])
def test_as_many_charges_are_loaded_as_there_are_places(length: int) -> None:
    """One number for all would fit any number of places."""
    ledger = Ledger(BOTH)
    rows, _ = ledger.export()
    with pytest.raises(InvalidState, match="bytes do not fit"):
        ledger.load(BOTH, 1, (rows, np.ones(length, dtype=np.int64).tobytes()))
    assert ledger.spent().tolist() == [0, 0]


def test_a_new_population_keeps_every_charge_with_its_requirement() -> None:
    ledger, other = Ledger(BOTH), Requirement(3, 1)
    spend(ledger, ints(1, 2), ints(10, 20))
    carried = ledger.update(Population({other: 5, LONG: 7}))
    assert ledger.rows == (SHORT, other, LONG)
    assert carried.tolist() == [0, -1, 1]
    assert ledger.spent().tolist() == [0, 22]  # of the classes in force
    reservation = ledger.reserve(ints(9, 9, 9), ints(1, 1, 1))
    assert reservation.probe_budgets.tolist() == [0, 9, 9], "a class without members is not charged"
    assert reservation.probe is not None
    assert reservation.probe.budgets.tolist() == [9, 9]
    assert reservation.probe.sizes.tolist() == [5, 7]


@examples(60)
@given(st.data())
def test_windows_hold_across_any_sequence_of_populations(data: st.DataObject) -> None:
    pool = [Requirement(1, 1), Requirement(2, 1), Requirement(3, 1), Requirement(5, 1), Requirement(5, 2)]
    subsets = st.sets(st.sampled_from(pool), min_size=1).map(lambda some: Population(dict.fromkeys(some, 3)))
    ledger = Ledger(data.draw(subsets))
    charged: dict[Requirement, dict[int, int]] = defaultdict(dict)
    for slot in range(1, 25):
        if data.draw(st.booleans()):
            population = data.draw(subsets)
            ledger.update(population)
        amount = data.draw(st.integers(0, 5 * 10**8))
        budgets = np.full(len(ledger.rows), amount, dtype=np.int64)
        try:
            reservation = ledger.reserve(budgets, None)
        except InsufficientBudget:
            ledger.commit(None, None)
            continue
        for requirement, charge in zip(ledger.rows, reservation.probe_budgets.tolist(), strict=True):
            charged[requirement][slot] = charge
        ledger.commit(reservation, None)
    for requirement, charges in charged.items():
        for start in range(1, 25):
            window = range(start, start + requirement.window)
            assert sum(charges.get(slot, 0) for slot in window) <= requirement.nano
