"""Ids, requirements that users may choose, and what an import means; pure."""

from __future__ import annotations

import numpy as np
import pytest

from wevent.errors import InvalidMembership
from wevent.people.membership import (
    Change,
    KnownIds,
    check_declared,
    check_id,
    differences,
    erased_id,
    id_column,
)

A, B, C = (40, 10**9), (120, 6 * 10**8), (40, 5 * 10**8)


def test_ids_are_numbers_only_if_all_are() -> None:
    numbers = id_column(["1", "20", "-3"])
    assert isinstance(numbers, np.ndarray)
    assert numbers.dtype == np.int64
    for users in (["1", "007"], ["1", "x"], ["9" * 30], ["-0"]):
        assert id_column(users).tolist() == users


def test_users_choose_declared_requirements_only() -> None:
    check_declared(B, [A, B])
    for key in (C, (120, 1000), (121, 6 * 10**8)):
        with pytest.raises(InvalidMembership, match="was not declared") as raised:
            check_declared(key, [A, B])
        assert raised.value.facts["requirement"] == key


def test_importing_means_the_differences() -> None:
    current = {"a": (A, None), "b": (B, None), "c": (C, None)}
    wanted = {"a": (A, None), "b": (C, None), "d": (A, None)}
    assert differences(current, wanted) == [Change("set", "b", C), Change("set", "d", A), Change("remove", "c")]


def test_nobody_registers_under_the_name_of_an_erased_id() -> None:
    for user in ("", "erased:00"):
        with pytest.raises(InvalidMembership, match="does not begin with"):
            check_id(user)
    check_id("erase")


def test_an_erased_id_needs_the_key() -> None:
    assert erased_id("u", b"1" * 32) != erased_id("u", b"2" * 32)
    assert "u" not in erased_id("u", b"1" * 32).removeprefix("erased:")


def test_known_ids_are_not_counted_as_unregistered() -> None:
    salt = b"s" * 32
    known = KnownIds(["gone", erased_id("forgotten", salt)], salt)
    assert known.excludes(["gone", "forgotten", "new", "erased:x"]).tolist() == [True, True, False, True]
    assert len(known) == 2
    assert not KnownIds().excludes(["new"]).any()


@pytest.mark.parametrize("user", ["x" * 257, "ä" * 129])
def test_an_id_that_no_event_can_have_is_refused(user: str) -> None:
    with pytest.raises(InvalidMembership, match="of 1 to 256 bytes"):
        check_id(user)


@pytest.mark.parametrize("user", ["a\nb", "a\r", "\n"])
def test_an_id_with_a_line_break_is_refused(user: str) -> None:
    """No requirements file could hold it, so the registry could not be imported again."""
    with pytest.raises(InvalidMembership, match="line breaks"):
        check_id(user)
