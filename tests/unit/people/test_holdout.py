"""From which slot on someone counts: changes, strangers, restores, wider windows; exactly as spec 10 says."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from wevent.people.holdout import BUCKETS, HoldOut, Past, Reign, Restore, bucket_of, erased_id

A, B, C = (40, 10**9), (120, 6 * 10**8), (40, 5 * 10**8)
ALL = frozenset({A, B, C})
PLAIN = HoldOut((Reign(1, 120, None),))


def wait(key: tuple[int, int], asked: int, past: Sequence[Past] = (), rule: HoldOut = PLAIN, **at: int) -> int:
    return rule.first_slot(key, asked, past, at.get("bucket", 0), at.get("since", 1))


def bits(*buckets: int) -> bytes:
    changed = bytearray(BUCKETS // 8)
    for bucket in buckets:
        changed[bucket // 8] |= 1 << bucket % 8
    return bytes(changed)


def test_a_joiner_waits_for_nothing() -> None:
    assert wait(A, 7) == 7


def test_a_change_waits_for_the_larger_window() -> None:
    assert wait(B, 11, [Past(A, 10)]) == 130
    assert wait(A, 11, [Past(B, 10)]) == 130
    assert wait(C, 11, [Past(A, 10)]) == 50


def test_coming_back_to_the_same_requirement_needs_no_wait() -> None:
    assert wait(A, 11, [Past(A, 10)]) == 11
    assert wait(A, 11, [Past(A, 10), Past(B, 3)]) == 123


def test_every_earlier_requirement_counts() -> None:
    assert wait(C, 200, [Past(A, 199), Past(B, 150)]) == 270


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
        first = wait(key, slot, [Past(one, last) for one, _, last in held])
        slot += stay
        if first < slot:
            held.append((key, first, slot - 1))
    for (one, start, end), (other, later, _) in itertools.combinations(held, 2):
        assert start <= end
        if one != other:
            assert later - end >= max(one[0], other[0])


class TestStrangers:
    """Where unregistered users are counted, everybody unknown may have been one of them."""

    RULE = HoldOut((Reign(1, 40, C), Reign(50, 120, None), Reign(60, 120, B)))

    def test_a_joiner_held_the_unknown_class_of_every_epoch(self) -> None:
        assert self.RULE.as_stranger(1) == []
        assert self.RULE.as_stranger(20) == [Past(C, 19, True)]
        assert self.RULE.as_stranger(55) == [Past(C, 49, True)]
        assert self.RULE.as_stranger(70) == [Past(C, 49, True), Past(B, 69, True)]
        assert self.RULE.as_stranger(300) == [Past(B, 299, True)]

    def test_a_joiner_under_the_class_of_strangers_waits_where_that_has_half_of_what_strangers_lose(self) -> None:
        for halved, first in ((False, 20), (True, 19 + 40)):
            rule = HoldOut((Reign(1, 40, C, halved),))
            assert rule.first_slot(C, 20, rule.as_stranger(20), 0, 20) == first
            assert rule.first_slot(C, 20, [Past(C, 19)], 0, 1) == 20  # a member who comes back

    def test_another_class_for_strangers_waits_like_any_change(self) -> None:
        assert HoldOut((Reign(1, 40, C),)).strangers_from() == 1
        assert self.RULE.strangers_from() == 49 + 120
        assert HoldOut((Reign(1, 40, None),)).strangers_from() is None
        same = HoldOut((Reign(1, 40, C), Reign(9, 40, None), Reign(12, 40, C)))
        assert same.strangers_from() == 1  # the same class again

    def test_strangers_wait_for_what_was_forgotten_before_wider_windows(self) -> None:
        rule = HoldOut((Reign(1, 40, None), Reign(100, 120, B)))
        assert rule.strangers_from() == 100 + 120 - 40

    def test_an_epoch_without_a_slot_counted_nobody(self) -> None:
        rule = HoldOut((Reign(1, 40, A), Reign(10, 40, B), Reign(10, 40, C)))
        assert rule.as_stranger(10) == [Past(A, 9, True)]
        assert rule.strangers_from() == 9 + 40


class TestRestores:
    """After slots released elsewhere only what is proven counts at once."""

    def test_without_proof_everyone_waits_the_widest_window(self) -> None:
        rule = HoldOut((Reign(1, 40, None),), (Restore(100, 120, 0, False, None),))
        assert wait(A, 101, rule=rule) == 220
        assert wait(A, 221, rule=rule) == 221
        assert wait(A, 100, rule=rule) == 100  # before it

    def test_proof_is_per_bucket(self) -> None:
        rule = HoldOut((Reign(1, 120, None),), (Restore(100, 120, 100, True, bits(7), ALL),))
        assert wait(A, 101, rule=rule, bucket=7) == 220
        assert wait(A, 101, rule=rule, bucket=8) == 101

    def test_an_older_mark_proves_nothing(self) -> None:
        rule = HoldOut((Reign(1, 120, None),), (Restore(100, 120, 99, True, bits()),))
        assert wait(A, 101, rule=rule) == 220

    def test_a_lost_epoch_makes_joiners_and_strangers_wait(self) -> None:
        rule = HoldOut((Reign(1, 40, C),), (Restore(100, 130, 100, False, bits(), ALL),))
        assert wait(A, 101, rule=rule, since=101) == 230
        assert wait(A, 105, rule=rule, since=101) == 230  # a second wish does not make it known earlier
        assert wait(A, 101, rule=rule, since=100) == 101
        assert rule.strangers_from() == 230

    def test_strangers_go_on_where_all_is_proven(self) -> None:
        proven = HoldOut((Reign(1, 40, C),), (Restore(100, 130, 100, True, bits(3), ALL),))
        assert proven.strangers_from() == 1
        assert HoldOut((Reign(1, 40, C),), (Restore(100, 130, 0, True, None),)).strangers_from() == 230

    def test_a_class_that_was_not_charged_waits_a_window_of_its_own(self) -> None:
        rule = HoldOut((Reign(1, 120, C),), (Restore(100, 130, 100, True, bits(), frozenset({A})),))
        assert wait(A, 101, rule=rule) == 101
        assert wait(B, 101, rule=rule) == 220
        assert wait(B, 221, rule=rule) == 221
        assert rule.strangers_from() == 140

    def test_a_wider_window_waits_longer(self) -> None:
        rule = HoldOut((Reign(1, 40, None), Reign(150, 500, None)), (Restore(100, 120, 0, False, None),))
        assert wait((500, 10**9), 160, rule=rule) == max(100 + 500, 150 + 500 - 40)


def test_an_erased_id_needs_the_key() -> None:
    assert erased_id("u", b"1" * 32) != erased_id("u", b"2" * 32)
    assert "u" not in erased_id("u", b"1" * 32).removeprefix("erased:")


def test_an_erased_id_stays_in_its_bucket() -> None:
    salt = b"1" * 32
    assert bucket_of("u", salt) == bucket_of(erased_id("u", salt), salt)
    assert len({bucket_of(str(user), salt) for user in range(2000)}) > 1900
