"""The distance that a probe measures: exact for any release it is compared with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scripted import permit_for
from wevent.core.limits import MAX_CELLS, MAX_EXACT, MAX_USERS, farthest_compared
from wevent.core.step import compared, measure_dissimilarity

ENDS = [2**63 - 1, -(2**63), 2**62, -(2**62), 0, MAX_USERS]


class NoNoise:
    seeded = True

    def laplace(self, permit, size):
        return np.zeros(size, dtype=np.int64)

    def binomial(self, counts, permit):
        return counts.copy()


@given(
    values=st.lists(st.one_of(st.sampled_from(ENDS), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=5),
    repeated=st.sampled_from([1, 3, 5000]),
    present=st.sampled_from([0, MAX_USERS]),
)
def test_no_distance_wraps(values: list[int], repeated: int, present: int) -> None:
    """Two streams whose distances differ by one user must not differ by 2^64."""
    last = compared(np.array(values * repeated, dtype=np.int64))
    counts = np.zeros((1, len(last)), dtype=np.int64)
    counts[0, 0] = present
    distance = measure_dissimilarity(permit_for([10**9], [present]), counts, last, NoNoise())  # type: ignore[arg-type]
    expected = sum(abs(count - value) for count, value in zip(counts[0].tolist(), last.tolist(), strict=True))
    assert expected < 2**63
    assert distance == expected / len(last)


@pytest.mark.parametrize("cells", [1, 2, 1000, MAX_CELLS])
def test_what_a_count_can_be_is_compared_as_it_is(cells: int) -> None:
    assert MAX_USERS <= farthest_compared(cells) <= MAX_EXACT
    assert cells * farthest_compared(cells) + MAX_USERS * cells < 2**63
    values = np.zeros(cells, dtype=np.int64)
    values[0] = MAX_USERS
    assert compared(values).tolist() == values.tolist()


def test_measurements_of_any_kind_become_whole_and_bounded() -> None:
    ints = np.array([5, 2**63 - 1, -(2**63)])
    floats = np.array([4.6, 1e30, -np.inf])
    for values in (ints, floats):
        whole = compared(values)
        assert whole.dtype == np.int64
        assert whole.tolist() == [5, farthest_compared(3), -farthest_compared(3)]
    assert compared(np.array([np.nan, -2.4])).tolist() == [0, -2]


def test_who_has_too_little_to_look_with_does_not_look() -> None:
    counts, last = np.array([[1, 2]]), np.zeros(2, dtype=np.int64)
    assert measure_dissimilarity(permit_for([0], [9]), counts, last, NoNoise()) is None  # type: ignore[arg-type]
    too_little = permit_for([2], [9], sensitivity=10**7)
    assert measure_dissimilarity(too_little, counts, last, NoNoise()) is None  # type: ignore[arg-type]
