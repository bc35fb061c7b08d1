"""What changes will mean: asked of the rule, person by person, and alike for those who are alike."""

from __future__ import annotations

from wevent.people.foresight import Foreseen, Foresight
from wevent.people.histories import Membership
from wevent.people.holdout import BUCKETS, HoldOut, Key, Reign, Restore
from wevent.people.membership import Change

SHORT, LONG, OTHER = (4, 10), (8, 20), (3, 30)
RULE = HoldOut((Reign(1, 8, None),))


def member(user: str, key: Key, first: int = 1) -> Membership:
    return Membership(user, *key, None, first, first, None)


def test_who_changes_waits_and_who_joins_does_not() -> None:
    foresight = Foresight(RULE, 6, b"salt", {SHORT: 3, OTHER: 2})
    histories = [[member(user, SHORT)] for user in "abc"]
    asked = {"a": LONG, "b": LONG, "c": SHORT, "d": OTHER}
    foresight.add([*histories, []], [[Change("set", user, key)] for user, key in asked.items()])
    assert foresight.seen() == Foreseen(6, {5 + 8: 2}, 0, (SHORT,))


def test_what_is_forgotten_at_the_boundary_holds_nobody_out() -> None:
    strangers = HoldOut((Reign(1, 8, OTHER),))
    foresight = Foresight(strangers, 13, b"salt", {})
    gone = member("a", SHORT)._replace(last=5)  # forgotten in slot 13: from then on a is somebody unknown
    foresight.add([[gone]], [[Change("set", "a", SHORT)]])
    assert foresight.seen() == Foreseen(1, {12 + 4: 1}, 0, (SHORT,))


def test_the_last_wish_counts_and_all_of_them_are_looked_at() -> None:
    foresight = Foresight(RULE, 6, b"salt", {SHORT: 1})
    there_and_back = [Change("set", "a", LONG), Change("set", "a", SHORT)]
    foresight.add([[member("a", SHORT)]], [there_and_back])
    assert foresight.seen() == Foreseen(1, {}, 0, ())


def test_who_left_and_comes_back_is_counted_as_returning() -> None:
    foresight = Foresight(RULE, 6, b"salt", {})
    gone = member("a", SHORT)._replace(last=4)
    foresight.add([[gone], []], [[Change("set", "a", SHORT)], [Change("set", "b", SHORT)]])
    assert foresight.seen() == Foreseen(2, {}, 1, ())


def test_classes_that_nobody_touches_are_left_alone() -> None:
    foresight = Foresight(RULE, 6, b"salt", {SHORT: 2, OTHER: 1})
    foresight.add([[member("a", SHORT)]], [[Change("remove", "a")]])
    assert foresight.seen() == Foreseen(2, {}, 0, (SHORT,))


def test_after_a_restore_it_matters_who_somebody_is() -> None:
    changed = bytes([0b01010101]) * (BUCKETS // 8)  # every other bucket is in doubt
    rule = HoldOut((Reign(1, 8, None),), (Restore(5, 8, 5, True, changed, frozenset((SHORT, LONG))),))
    foresight = Foresight(rule, 6, b"salt", {})
    users = [f"u{number}" for number in range(100)]
    foresight.add([[]] * 100, [[Change("set", user, SHORT)] for user in users])
    (slot, waiting), *more = foresight.seen().waits.items()
    assert (slot, more) == (5 + 8, [])
    assert 20 < waiting < 80
