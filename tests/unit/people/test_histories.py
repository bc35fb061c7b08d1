"""Effect of a change on the rows of a user: every case of the table of spec 15.1."""

from __future__ import annotations

from tests.unit.people.test_classes import Chosen, history
from wevent.people.classes import ClassHistory, Key, Restore, find_counting_class
from wevent.people.membership import Boundary, Change, Membership, drop_expired, erased_id, find_current, find_in_force

A, B = (4, 10**9), (8, 6 * 10**8)
U = (8, 3 * 10**8)
SALT = bytes(32)
PLAIN = history((1, Chosen((A, B))))
COUNTING = history((1, Chosen((A, B), 5)))


def at(slot: int, classes: ClassHistory = PLAIN) -> Boundary:
    return Boundary(classes, slot, SALT)


def row(key: Key, first: int, last: int | None = None, user: str = "ann", level: str | None = None) -> Membership:
    return Membership(user, *key, level, first, last)


def choose(key: Key, level: str | None = None) -> Change:
    return Change("set", "ann", key, level)


LEAVE, ERASE = Change("remove", "ann"), Change("erase", "ann")
JOINED = [row(A, 1)]


def test_joining() -> None:
    assert at(1).apply([], choose(A)) == JOINED
    assert at(1, COUNTING).apply([], choose(A)) == JOINED  # nobody was counted before slot 1


def test_a_change_takes_effect_at_once() -> None:
    after = at(6).apply(JOINED, choose(B))
    assert after == [row(A, 1, 5), row(B, 6)]
    assert find_current(after) == row(B, 6)
    assert find_in_force(after, 5) == {A}
    assert find_in_force(after, 6) == find_in_force(after, 5 + 4 - 1) == {A, B}
    assert find_in_force(after, 5 + 4) == {B}


def test_several_changes_are_all_in_force() -> None:
    other = (2, 10**8)
    after = at(8).apply(at(7).apply(at(6).apply(JOINED, choose(B)), choose(other)), choose(A))
    assert after == [row(A, 1, 5), row(B, 6, 6), row(other, 7, 7), row(A, 8)]
    assert find_in_force(after, 8) == {A, B, other}
    assert find_in_force(after, 9) == find_in_force(after, 13) == {A, B}
    assert find_in_force(after, 14) == {A}


def test_changes_that_are_undone_at_one_boundary_leave_no_trace() -> None:
    changed = at(6).apply(JOINED, choose(B))
    assert at(6).apply(changed, choose(A)) == JOINED
    assert at(6).apply(at(6).apply(JOINED, LEAVE), choose(A)) == JOINED
    assert at(6).apply(at(6).apply([], choose(A)), LEAVE) == []


def test_a_change_back_later_leaves_a_row() -> None:
    changed = at(6).apply(JOINED, choose(B))
    back = at(7).apply(changed, choose(A))
    assert back == [row(A, 1, 5), row(B, 6, 6), row(A, 7)]
    assert find_in_force(back, 6 + 8 - 1) == {A, B}
    assert find_in_force(back, 6 + 8) == {A}


def test_another_name_for_the_same_requirement_is_no_change() -> None:
    assert at(6).apply(JOINED, choose(A, "High/Small")) == [row(A, 1, level="High/Small")]
    undone = at(6).apply(at(6).apply(JOINED, LEAVE), choose(A, "High/Small"))
    assert undone == [row(A, 1, level="High/Small")]


def test_leaving_and_rejoining() -> None:
    left = at(6).apply(JOINED, LEAVE)
    assert left == [row(A, 1, 5)]
    assert find_current(left) is None
    assert at(7).apply(left, LEAVE) == left
    assert at(8).apply(left, choose(A)) == [row(A, 1, 5), row(A, 8)]
    again = at(8).apply(left, choose(B))
    assert again == [row(A, 1, 5), row(B, 8)]
    assert find_in_force(again, 8) == {A, B}


def test_an_erased_id_is_kept_under_a_digest_and_found_again() -> None:
    digest = erased_id("ann", SALT)
    named = [row(A, 1, level="High/Small")]
    erased = at(6).apply(named, ERASE)
    assert erased == [row(A, 1, 5, user=digest)]
    assert at(7).apply(erased, ERASE) == erased
    again = at(7).apply(erased, choose(B))
    assert again == [row(A, 1, 5), row(B, 7)]  # the rows have the id again: the roster finds them
    assert at(6).apply(erased, choose(A)) == [row(A, 1)]
    assert at(9).apply(again, ERASE) == [row(A, 1, 5, user=digest), row(B, 7, 8, user=digest)]


def test_an_id_that_was_unknown_may_have_been_counted_as_unregistered() -> None:
    joined = at(6, COUNTING).apply([], choose(A))
    assert joined == [row(U, 0, 5), row(A, 6)]
    assert find_in_force(joined, 6) == find_in_force(joined, 12) == {A, U}
    assert find_in_force(joined, 13) == {A}


def test_a_known_id_was_never_counted_as_unregistered() -> None:
    assert at(6, COUNTING).apply(JOINED, choose(B)) == [row(A, 1, 5), row(B, 6)]
    assert at(8, COUNTING).apply([row(A, 1, 5)], choose(B)) == [row(A, 1, 5), row(B, 8)]


def test_there_is_a_note_for_every_version_of_the_class_of_unregistered_users() -> None:
    classes = history((1, Chosen((A, B), 5)), (4, Chosen((A,), 5)))
    other = (4, 5 * 10**8)
    assert at(6, classes).apply([], choose(A)) == [row(U, 0, 3), row(other, 0, 5), row(A, 6)]
    assert at(12, classes).apply([], choose(A)) == [row(other, 0, 11), row(A, 12)]  # the first one is over


def test_a_note_stays_when_the_user_leaves_again() -> None:
    joined = at(6, COUNTING).apply([], choose(A))
    assert at(6, COUNTING).apply(joined, LEAVE) == [row(U, 0, 5)]
    digest = erased_id("ann", SALT)
    assert at(6, COUNTING).apply(joined, ERASE) == [row(U, 0, 5, user=digest)]
    assert at(7, COUNTING).apply(joined, LEAVE) == [row(U, 0, 5), row(A, 6, 6)]


def test_a_note_is_no_membership_to_come_back_to() -> None:
    """Although it ended right before: the user was not registered, so the row has no first slot to go on from."""
    classes = history((1, Chosen((A, B), 5, "replace")))
    assert at(6, classes).apply([], choose(B)) == [row(B, 0, 5), row(B, 6)]


def test_doubts_of_restores_are_no_rows() -> None:
    classes = history((1, Chosen((A, B))), restores=(Restore(5, 0, (A, B)),))
    assert at(6, classes).apply([], choose(A)) == [row(A, 6)]
    assert at(6, classes).apply(JOINED, choose(B)) == [row(A, 1, 5), row(B, 6)]


def test_rows_are_dropped_when_they_are_no_longer_kept() -> None:
    rows = [row(A, 1, 5), row(B, 6, 6), row(A, 7)]
    assert drop_expired(rows, PLAIN, 8) == rows
    assert drop_expired(rows, PLAIN, 9) == rows[1:]
    assert drop_expired(rows, PLAIN, 14) == rows[2:]
    assert drop_expired(rows, COUNTING, 12) == rows
    assert drop_expired(rows, COUNTING, 13) == rows[1:]


def test_a_class_that_a_version_dropped_is_not_held_through_slots_released_elsewhere() -> None:
    """Its users are moved after the first slot of the version; here they can be only after the slots released elsewhere."""
    other = (2, 2 * 10**9)
    classes = history((1, Chosen((A,))), (7, Chosen((other,))))
    after = at(20, classes).apply([row(A, 1)], choose(other))
    assert after == [row(A, 1, 7), row(other, 20)]
    assert find_counting_class(find_in_force(after, 20), classes.live(20)) == other
    assert at(8, classes).apply([row(A, 1)], choose(other)) == [row(A, 1, 7), row(other, 8)]
    assert at(7, classes).apply([row(A, 1)], choose(other)) == [row(A, 1, 6), row(other, 7)]
