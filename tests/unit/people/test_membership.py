"""Joins, leaves, changes and hold-out exactly as spec 10 says; pure."""

from __future__ import annotations

import numpy as np
import pytest

from wevent.core.requirements import Requirement
from wevent.errors import InvalidMembership, InvalidRequirement
from wevent.people.holdout import erased_id
from wevent.people.membership import (
    Barred,
    Change,
    check_allowed,
    check_id,
    differences,
    id_column,
    make_roster,
    unknown_class,
)

A, B, C = (40, 10**9), (120, 6 * 10**8), (40, 5 * 10**8)


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
    numbers = id_column(["1", "20", "-3"])
    assert isinstance(numbers, np.ndarray)
    assert numbers.dtype == np.int64
    for users in (["1", "007"], ["1", "x"], ["9" * 30], ["-0"]):
        assert id_column(users).tolist() == users


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


def test_nobody_registers_under_the_name_of_an_erased_id() -> None:
    for user in ("", "erased:00"):
        with pytest.raises(InvalidMembership, match="does not begin with"):
            check_id(user)
    check_id("erase")


def test_whom_the_registry_knows_is_no_stranger() -> None:
    salt = b"s" * 32
    barred = Barred(["gone", erased_id("forgotten", salt)], salt)
    assert barred.admits(["gone", "forgotten", "new", "erased:x"]).tolist() == [False, False, True, False]
    assert len(barred) == 2


def test_strangers_are_the_smallest_ids_among_strangers() -> None:
    """Who is barred takes no place of the declared number."""
    declared = [Requirement.from_nano(*A)]
    roster = make_roster(["m"], [A], declared, unknown_class(declared, 2, "add_remove"), Barred(["a"]))
    counts = roster.count(["a", "b", "c", "d", "m"], [0, 1, 2, 3, 0], 4)
    assert counts.matrix.sum(axis=0).tolist() == [1, 1, 1, 0]
    assert counts.rejected == 2


def test_a_whole_float_is_the_number_it_stands_for() -> None:
    """A frame column with gaps is float: the same id, on the roster, barred, or neither."""
    declared = [Requirement.from_nano(*A)]
    unknown = unknown_class(declared, 9, "add_remove")
    for users in (["1", "2"], ["1", "x"]):
        roster = make_roster(users, [A, A], declared, unknown, Barred(["3"]))
        counts = roster.count(np.array([1.0, 3.0, 4.0]), [0, 0, 0], 1)
        assert sorted(counts.matrix[:, 0].tolist()) == [1, 1]
        assert counts.rejected == 1
