"""The order rule of the gate (spec 15.1 rule 3): a stricter class is reserved and charged at most what a looser one is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.profiles import examples
from wevent import InsufficientBudget, Population, Publisher, Requirement, SeededNoise
from wevent.core.ledger import Ledger
from wevent.core.order import StrictnessOrder

LOOSE, OTHER, STRICT = Requirement(2, 2), Requirement(3, 3), Requirement(5, 1)
ALL = Population({LOOSE: 10, OTHER: 20, STRICT: 30})  # STRICT is stricter than both; LOOSE and OTHER are unordered


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def is_stricter(one: Requirement, other: Requirement) -> bool:
    return one.window >= other.window and one.nano <= other.nano


@pytest.mark.parametrize(
    ("offered", "reserved"),
    [
        ((7, 5, 9), (7, 5, 5)),
        ((4, 5, 9), (4, 5, 4)),
        ((7, 5, 5), (7, 5, 5)),
        ((1, 9, 0), (1, 9, 0)),
        ((0, 9, 9), (0, 9, 0)),
    ],
)
def test_a_stricter_offer_is_lowered(offered: tuple[int, ...], reserved: tuple[int, ...]) -> None:
    """To the smallest offer of a looser class, for probe and publication alike, and in the permits."""
    reservation = Ledger(ALL).reserve(ints(*offered), ints(*offered))
    assert reservation.probe is not None
    assert reservation.publication is not None
    for budgets in (
        reservation.probe_budgets,
        reservation.publication_budgets,
        reservation.probe.budgets,
        reservation.publication.budgets,
    ):
        assert tuple(budgets.tolist()) == reserved
        with pytest.raises(ValueError):
            budgets.setflags(write=True)


def test_probe_and_publication_are_lowered_each_by_itself() -> None:
    ledger = Ledger(ALL)
    reservation = ledger.reserve(ints(1, 9, 9), ints(9, 2, 9))
    assert reservation.probe_budgets.tolist() == [1, 9, 1]
    assert reservation.publication_budgets.tolist() == [9, 2, 2]
    ledger.commit(reservation, reservation.publication_budgets)
    assert ledger.spent().tolist() == [10, 11, 3]


def test_an_offer_is_lowered_before_it_is_compared_with_what_remains() -> None:
    ledger = Ledger(ALL)
    largest = np.iinfo(np.int64).max
    assert ledger.reserve(ints(3, 4, largest), ints(3, 4, largest)).publication_budgets.tolist() == [3, 4, 3]
    with pytest.raises(InsufficientBudget):
        ledger.reserve(None, ints(LOOSE.nano, OTHER.nano, largest))


def test_a_looser_charge_is_raised_after_a_refund() -> None:
    """To the largest charge of a stricter class; unordered classes and the stricter class keep theirs."""
    ledger = Ledger(ALL)
    reservation = ledger.reserve(ints(1, 1, 1), ints(70, 50, 40))
    assert ledger.raise_charges(ints(5, 45, 30)).tolist() == [30, 45, 30]
    ledger.commit(reservation, ints(5, 45, 30))
    assert ledger.publication_spent.tolist() == [30, 45, 30]


def test_a_row_without_a_class_binds_no_row() -> None:
    ledger = Ledger(ALL)
    ledger.commit(ledger.reserve(ints(1, 1, 1), None), None)
    ledger.update(Population({OTHER: 20, STRICT: 30}))
    assert ledger.rows == ALL.classes  # LOOSE still owes
    assert ledger.reserve(None, ints(0, 9, 9)).publication_budgets.tolist() == [0, 9, 9]
    pinned = Ledger(ALL, pinned=ALL.classes)
    pinned.update(Population({OTHER: 20, STRICT: 30}))
    assert pinned.reserve(None, ints(0, 9, 9)).publication_budgets.tolist() == [0, 9, 0]  # pinned: charged and binding


REQUIREMENTS = st.tuples(st.integers(1, 6), st.integers(12, 40)).map(lambda key: Requirement.from_nano(*key))


@examples(150)
@given(
    classes=st.lists(REQUIREMENTS, min_size=1, max_size=12, unique=True),
    lasting=st.integers(0, 2**12 - 1),
    data=st.data(),
)
def test_the_scan_is_the_rule_written_out(classes: list[Requirement], lasting: int, data: st.DataObject) -> None:
    """Over any bound rows."""
    classes = sorted(classes)
    bound = [row for row in range(len(classes)) if lasting >> row & 1] or [0]
    values = data.draw(st.lists(st.integers(0, 20), min_size=len(classes), max_size=len(classes)))
    columns = [(one.window, one.nano) for one in classes]
    made = StrictnessOrder(*np.array(columns, dtype=np.int64).T, ints(*bound))
    lowered, raised = list(values), list(values)
    for row in bound:
        lowered[row] = min(values[other] for other in bound if is_stricter(classes[row], classes[other]))
        raised[row] = max(values[other] for other in bound if is_stricter(classes[other], classes[row]))
    assert made.lower(ints(*values)).tolist() == lowered
    assert made.raise_charges(ints(*values)).tolist() == raised


@examples(100)
@given(classes=st.lists(REQUIREMENTS, min_size=1, max_size=8, unique=True), data=st.data())
def test_charges_are_ordered_and_windows_hold_whatever_is_offered(
    classes: list[Requirement], data: st.DataObject
) -> None:
    """Random offers and refunds: no charge above its reservation, in every slot an order, in every window at most ε."""
    ledger = Ledger(Population(dict.fromkeys(classes, 1)))
    rows = ledger.rows
    numbers = st.lists(st.integers(0, 12), min_size=len(rows), max_size=len(rows))
    books: list[list[int]] = []
    for _ in range(12):
        try:
            reservation = ledger.reserve(*(ints(*data.draw(numbers)) for _ in range(2)))
        except InsufficientBudget:
            ledger.commit(None, None)
            books.append([0] * len(rows))
            continue
        refunded = np.minimum(ints(*data.draw(numbers)), reservation.publication_budgets)
        charges = ledger.raise_charges(refunded)
        assert (refunded <= charges).all()
        assert (charges <= reservation.publication_budgets).all()
        ledger.commit(reservation, refunded)
        for part in (reservation.probe_budgets, reservation.publication_budgets, charges):
            for row, one in enumerate(rows):
                assert all(part[row] <= part[place] for place, other in enumerate(rows) if is_stricter(one, other))
        books.append((reservation.probe_budgets + charges).tolist())
    for row, one in enumerate(rows):
        recent = books[max(0, len(books) - one.window + 1) :]
        assert ledger.spent()[row] == sum(charges[row] for charges in recent)
        for start in range(len(books)):
            assert sum(charges[row] for charges in books[start : start + one.window]) <= one.nano


def test_a_release_states_the_charges_that_are_stored() -> None:
    """With a refund OBS charges each class min(e, θ), and `pft` less than was offered: both may be raised."""
    for mechanism in ("pbd", "pba", "pft"):
        publisher = Publisher(ALL, 2, mechanism, noise=SeededNoise(3), refund=True)
        books: list[np.ndarray] = []
        for slot in range(40):
            spent = publisher.ledger.spent()
            expected = [
                sum(one[row] for one in books[max(0, len(books) - each.window + 1) :])
                for row, each in enumerate(ALL.classes)
            ]
            assert spent.tolist() == expected
            release = publisher.step([[slot % 9, 1], [slot % 17, 3], [slot % 23, 5]])
            for part in (release.probe_charges, release.publication_charges):
                assert part[2] <= part[:2].min()
            if release.fresh:
                assert publisher._history.last_charges.tolist() == release.publication_charges.tolist()
            books.append(release.charges)
