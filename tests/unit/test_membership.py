"""Joins, leaves, changes and hold-out exactly as spec 10 says; pure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.core.requirements import Requirement
from wevent.errors import InvalidMembership, InvalidRequirement
from wevent.membership import (
    Change,
    Past,
    check_allowed,
    differences,
    erased_id,
    first_slot,
    id_column,
    is_forgotten,
    make_roster,
    unknown_class,
)

A, B, C = (40, 10**9), (120, 6 * 10**8), (40, 5 * 10**8)


def test_a_joiner_waits_for_nothing() -> None:
    assert first_slot(A, 7, []) == 7


def test_a_change_waits_for_the_larger_window() -> None:
    assert first_slot(B, 11, [Past(A, 10)]) == 130
    assert first_slot(A, 11, [Past(B, 10)]) == 130
    assert first_slot(C, 11, [Past(A, 10)]) == 50


def test_coming_back_to_the_same_requirement_needs_no_wait() -> None:
    assert first_slot(A, 11, [Past(A, 10)]) == 11
    assert first_slot(A, 11, [Past(A, 10), Past(B, 3)]) == 123


def test_every_earlier_requirement_counts() -> None:
    assert first_slot(C, 200, [Past(A, 199), Past(B, 150)]) == 270


@given(
    windows=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    wishes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=8),
)
def test_no_two_requirements_share_a_window(windows: list[int], wishes: list[tuple[int, int]]) -> None:
    """Slots of membership under different requirements are at least the larger of both windows apart."""
    held: list[tuple[tuple[int, int], int, int]] = []  # key, first, last
    slot = 1
    for stay, choice in wishes:
        key = (windows[choice % len(windows)], 10**9 + choice % len(windows))
        first = first_slot(key, slot, [Past(one, last) for one, _, last in held])
        slot += stay
        if first < slot:
            held.append((key, first, slot - 1))
    for (one, start, end), (other, later, _) in itertools.combinations(held, 2):
        assert start <= end
        if one != other:
            assert later - end >= max(one[0], other[0])


def test_memberships_are_forgotten_when_they_can_hold_nobody_out() -> None:
    assert not is_forgotten(10, 129, 120)
    assert is_forgotten(10, 130, 120)
    assert first_slot(B, 130, [Past(A, 10)]) == 130  # forgotten or not: the same


def test_declared_classes_stay_empty() -> None:
    declared = [Requirement.from_nano(*key) for key in (A, B)]
    roster = make_roster(["1", "2"], [A, C], declared)
    assert roster.population.sizes.tolist() == [1, 1, 0]
    assert roster.count([1, 2, 3], [0, 0, 0], 1).matrix.tolist() == [[1], [1], [0]]
    assert make_roster([], [], declared).population.sizes.tolist() == [0, 0]


def test_an_empty_roster_rejects_everyone() -> None:
    roster = make_roster([], [], [Requirement.from_nano(*A)])
    assert roster.count(["x"], [0], 1).rejected == 1


def test_ids_are_numbers_only_if_all_are() -> None:
    assert id_column(["1", "20", "-3"]).dtype == np.int64
    assert id_column(["1", "007"]).dtype.kind == "U"
    assert id_column(["1", "x"]).dtype.kind == "U"
    assert id_column(["9" * 30]).dtype.kind == "U"


def test_unknown_users_get_half_of_the_strictest_epsilon() -> None:
    declared = [Requirement.from_nano(*key) for key in (A, B)]
    unknown = unknown_class(declared, 5, "add_remove")
    assert unknown is not None
    assert (unknown.requirement.window, unknown.requirement.nano) == (120, 3 * 10**8)
    replaced = unknown_class(declared, 5, "replace")
    assert replaced is not None
    assert replaced.requirement.nano == 6 * 10**8
    assert unknown_class(declared, 0, "add_remove") is None
    with pytest.raises(InvalidRequirement):
        unknown_class([Requirement.from_nano(10, 20)], 5, "add_remove")


def test_unknown_users_are_in_the_population() -> None:
    declared = [Requirement.from_nano(*key) for key in (A, B)]
    roster = make_roster(["1"], [A], declared, unknown_class(declared, 5, "add_remove"))
    assert roster.unknown_limit == 5
    assert roster.unknown_row is not None
    assert roster.population.sizes[roster.unknown_row] == 5
    counts = roster.count([1, *range(100, 107)], [0] * 8, 1)
    assert counts.matrix.sum() == 6
    assert counts.rejected == 2


def test_a_window_beyond_the_declared_ones_is_refused() -> None:
    check_allowed((120, 1000), [Requirement.from_nano(*B)])
    with pytest.raises(InvalidMembership, match="at most 120"):
        check_allowed((121, 1000), [Requirement.from_nano(*B)])


def test_importing_means_the_differences() -> None:
    current = {"a": (A, None), "b": (B, None), "c": (C, None)}
    wanted = {"a": (A, None), "b": (C, None), "d": (A, None)}
    assert differences(current, wanted) == [Change("set", "b", C), Change("set", "d", A), Change("remove", "c")]


def test_an_erased_id_needs_the_key() -> None:
    assert erased_id("u", b"1" * 32) != erased_id("u", b"2" * 32)
    assert "u" not in erased_id("u", b"1" * 32).removeprefix("erased:")
