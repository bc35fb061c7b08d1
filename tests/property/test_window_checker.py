"""The independent window checker is itself checked: a checker that sees nothing would prove everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.window_checker import Violation, violated_windows

CLASS = (3, 10)


def test_a_window_at_its_limit_is_no_violation():
    assert violated_windows([{CLASS: (1, 3)}, {CLASS: (0, 4)}, {CLASS: (2, 0)}]) == []


def test_one_nano_epsilon_too_much_is_seen_with_its_facts():
    slots = [{CLASS: (1, 3)}, {CLASS: (0, 4)}, {CLASS: (2, 1)}, {CLASS: (0, 0)}]
    assert violated_windows(slots) == [Violation(CLASS, 3, 11, 10)]


def test_a_window_slides_and_starts_full():
    assert [one.last_slot for one in violated_windows([{CLASS: (0, 11)}, {}, {}, {}])] == [1, 2, 3]


def test_an_absent_class_keeps_its_charges():
    other = (1, 5)
    assert violated_windows([{CLASS: (6, 0)}, {other: (1, 1)}, {CLASS: (0, 5)}]) == [Violation(CLASS, 3, 11, 10)]


def test_floats_are_refused():
    with pytest.raises(TypeError, match="plain integers"):
        violated_windows([{CLASS: (0.5, 0)}])


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([(1, 5), (2, 9), (4, 12), (7, 20)]), st.tuples(st.integers(0, 3), st.integers(0, 3))
        ),
        max_size=20,
    )
)
def test_it_agrees_with_adding_up_every_window_anew(slots):
    expected = [
        Violation(requirement, last, spend, requirement[1])
        for requirement in sorted({key for charges in slots for key in charges})
        for last in range(1, len(slots) + 1)
        if (
            spend := sum(
                sum(slots[slot - 1].get(requirement, (0, 0)))
                for slot in range(max(1, last - requirement[0] + 1), last + 1)
            )
        )
        > requirement[1]
    ]
    assert violated_windows(slots) == expected
