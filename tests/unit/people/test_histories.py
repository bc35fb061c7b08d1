"""What a change, or a restore, makes of a person's memberships."""

from __future__ import annotations

from wevent.people.histories import Boundary, Membership, after_restore, current_of, moved
from wevent.people.holdout import BUCKETS, HoldOut, Reign, Restore, erased_id
from wevent.people.membership import Change

A, B = (4, 10**9), (8, 6 * 10**8)
SALT = bytes(32)
PLAIN = HoldOut((Reign(1, 8, None),))


def at(slot: int, rule: HoldOut = PLAIN) -> Boundary:
    return Boundary(rule, slot, SALT)


def member(key: tuple[int, int], first: int, last: int | None = None, since: int = 1, user: str = "ann") -> Membership:
    return Membership(user, *key, None, since, first, last)


JOINED = [member(A, 1)]


def test_joining() -> None:
    assert at(1).after([], Change("set", "ann", A)) == JOINED
    assert moved([], JOINED)


def test_changing_ends_one_membership_and_begins_another_after_the_wait() -> None:
    after = at(6).after(JOINED, Change("set", "ann", B))
    assert after == [member(A, 1, 5), member(B, 13)]
    assert moved(JOINED, after)
    assert current_of(after) == member(B, 13)


def test_a_membership_that_never_began_leaves_no_trace() -> None:
    waiting = at(6).after(JOINED, Change("set", "ann", B))
    assert at(9).after(waiting, Change("remove", "ann")) == [member(A, 1, 5)]
    assert at(9).after(waiting, Change("set", "ann", A)) == [member(A, 1, 5), member(A, 9)]


def test_new_words_are_no_move() -> None:
    after = at(6).after(JOINED, Change("set", "ann", A, "High/Small"))
    assert after == [JOINED[0]._replace(level="High/Small")]
    assert not moved(JOINED, after)


def test_leaving_twice_is_leaving_once() -> None:
    left = at(6).after(JOINED, Change("remove", "ann"))
    assert left == [member(A, 1, 5)]
    assert at(7).after(left, Change("remove", "ann")) == left
    assert not moved(left, left)


def test_erasing_keeps_what_the_hold_out_needs_under_a_digest() -> None:
    digest = erased_id("ann", SALT)
    erased = at(6).after(JOINED, Change("erase", "ann"))
    assert erased == [member(A, 1, 5, user=digest)]
    again = at(7).after(erased, Change("set", "ann", B))
    assert again == [member(A, 1, 5, user=digest), member(B, 13)]
    assert at(8).after(again, Change("erase", "ann")) == erased
    assert at(20).after(again, Change("erase", "ann")) == [*erased, member(B, 13, 19, user=digest)]


def test_who_was_unknown_may_have_been_a_stranger() -> None:
    rule = HoldOut((Reign(1, 8, B),))
    assert at(6, rule).after([], Change("set", "ann", A)) == [member(B, 5, 5, since=6), member(A, 13, since=6)]
    assert at(6, rule).after(JOINED, Change("set", "ann", B)) == [member(A, 1, 5), member(B, 13)]


def test_the_note_of_a_stranger_is_no_membership_to_come_back_to() -> None:
    rule = HoldOut((Reign(1, 8, B, halved=True),))
    joined = at(6, rule).after([], Change("set", "ann", A))
    assert joined[0].is_note
    assert not joined[1].is_note
    assert at(7, rule).after(joined, Change("set", "ann", B)) == [member(B, 5, 5, since=6), member(B, 13, since=6)]


def test_the_same_membership_twice_is_one() -> None:
    history = [member(A, 6, 6), member(A, 6)]
    assert at(9).after(history, Change("remove", "ann")) == [member(A, 6, 8)]


def test_after_a_restore_a_membership_in_doubt_begins_anew() -> None:
    doubtful, proven = Restore(9, 8, 0, False, None), Restore(9, 8, 9, True, bytes(BUCKETS // 8), frozenset([A]))
    assert after_restore(JOINED, doubtful, SALT) == [member(A, 1, 9), member(A, 17)]
    assert after_restore([member(A, 12)], doubtful, SALT) == [member(A, 17)]
    assert after_restore([member(A, 30)], doubtful, SALT) == [member(A, 30)]
    assert after_restore(JOINED, proven, SALT) == JOINED
    assert after_restore([member(A, 1, 5)], doubtful, SALT) == [member(A, 1, 5)]
