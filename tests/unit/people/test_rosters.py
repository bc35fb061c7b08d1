"""Rosters: every member in the class that the rule gives, one by one and all at once (spec 15.1, rule 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.people.test_classes import Chosen, history
from wevent.core.requirements import Population
from wevent.counting.roster import Roster
from wevent.counting.string_column import StringColumn
from wevent.people.classes import ClassHistory, Key, Restore, find_corner, find_counting_class
from wevent.people.membership import (
    Boundary,
    Change,
    KeyColumn,
    KnownIds,
    MemberColumns,
    Membership,
    Rosters,
    TailColumns,
    erased_id,
    find_current,
    find_in_force,
)

A, B, C = (4, 10**9), (8, 6 * 10**8), (3, 4 * 10**8)
PLAIN = history((1, Chosen((A, B, C))))
SALT = bytes(32)


def members(**held: Key) -> MemberColumns:
    return MemberColumns(StringColumn.from_texts(list(held)), KeyColumn.of(held.values()))


def tails(*rows: tuple[str, Key, int]) -> TailColumns:
    lasts = np.array([last for _, _, last in rows], dtype=np.int64)
    return TailColumns(
        StringColumn.from_texts([user for user, _, _ in rows]), KeyColumn.of(key for _, key, _ in rows), lasts
    )


def counted(roster: Roster) -> dict[str, Key]:
    """Every user with the class they are counted in."""
    classes = [held.key for held in roster.population.classes]
    return {str(user): classes[row] for user, row in zip(roster.users, roster.classes.tolist(), strict=True)}


def sizes(population: Population) -> dict[Key, tuple[int, int]]:
    """Size and own size of the classes that have any."""
    rows = zip(population.items(), population.own.tolist(), strict=True)
    return {held.key: (size, own) for (held, size), own in rows if size}


def test_every_live_class_is_there() -> None:
    rosters = Rosters(members(a=A), classes=PLAIN)
    population = rosters.at(1).population
    assert {held.key for held in population.classes} == {A, B, C, (8, C[1])} == PLAIN.live(1)
    assert sizes(population) == {A: (1, 1)}
    assert rosters.next_change(1) is None
    assert rosters.at(1).count(["a", "x"], [0, 0], 1).matrix.sum() == 1


def test_a_roster_without_members_rejects_everybody() -> None:
    roster = Rosters(members(), classes=PLAIN).at(1)
    assert len(roster) == 0
    assert roster.count(["x"], [0], 1).rejected == 1


def test_a_tail_counts_in_a_stricter_class_until_it_ends() -> None:
    rosters = Rosters(members(a=A, b=A, c=C), tails(("a", C, 5), ("a", B, 4), ("gone", B, 5)), classes=PLAIN)
    corner = (8, C[1])
    assert counted(rosters.at(6)) == counted(rosters.at(7)) == {"a": corner, "b": A, "c": C}
    assert sizes(rosters.at(6).population) == {corner: (1, 0), A: (1, 1), C: (1, 1)}
    assert counted(rosters.at(8)) == counted(rosters.at(11)) == {"a": B, "b": A, "c": C}
    assert counted(rosters.at(12)) == {"a": A, "b": A, "c": C}
    assert [rosters.next_change(slot) for slot in (6, 7, 8, 11, 12)] == [8, 8, 12, 12, None]


def test_ids_that_are_numbers_have_tails_too() -> None:
    held = MemberColumns(StringColumn.from_texts(["7", "20"]), KeyColumn.of([A, A]))
    rosters = Rosters(held, tails(("20", B, 5), ("8", B, 5)), classes=PLAIN)
    assert counted(rosters.at(6)) == {"7": A, "20": B}
    assert rosters.at(6).numbered


class TestUnregisteredUsers:
    """They are counted on top of the members of a class."""

    CLASSES = history((1, Chosen((A, B, C), 2)))
    U = (8, C[1] // 2)

    def test_they_are_in_the_population_and_in_the_counts(self) -> None:
        roster = Rosters(members(m=A), classes=self.CLASSES, limit=2).at(1)
        assert roster.unknown_limit == 2
        assert sizes(roster.population) == {A: (1, 1), self.U: (2, 2)}
        counts = roster.count(["m", "x", "y", "z"], [0] * 4, 1)
        assert (counts.matrix.sum(), counts.rejected) == (3, 1)

    def test_a_joiner_is_outside_the_limit(self) -> None:
        """Counted in the same class and displaces nobody."""
        roster = Rosters(members(m=A), tails(("m", self.U, 5)), classes=self.CLASSES, limit=2).at(6)
        assert counted(roster) == {"m": self.U}
        assert sizes(roster.population) == {self.U: (3, 2)}
        counts = roster.count(["m", "a", "b", "c"], [0] * 4, 1)
        assert (counts.matrix.sum(), counts.rejected) == (3, 1)

    def test_the_smallest_ids_are_counted_and_known_ones_take_no_place(self) -> None:
        known = KnownIds(["a", erased_id("b", SALT)], SALT)
        roster = Rosters(members(m=A), classes=self.CLASSES, limit=2, known=known).at(1)
        counts = roster.count(["a", "b", "c", "d", "e", "m"], [0, 1, 2, 3, 4, 0], 5)
        assert counts.matrix.sum(axis=0).tolist() == [1, 0, 1, 1, 0]
        assert counts.rejected == 3

    def test_a_whole_float_is_the_number_it_stands_for(self) -> None:
        """A frame column with gaps is float: the same id, on the roster, known, or neither."""
        for users in (["1", "2"], ["1", "x"]):
            held = MemberColumns(StringColumn.from_texts(users), KeyColumn.of([A, A]))
            roster = Rosters(held, classes=self.CLASSES, limit=9, known=KnownIds(["3"])).at(1)
            counts = roster.count(np.array([1.0, 3.0, 4.0]), [0, 0, 0], 1)
            assert sorted(counts.matrix[:, 0].tolist())[-2:] == [1, 1]
            assert counts.rejected == 1


def count_each(
    histories: dict[str, Sequence[Membership]], classes: ClassHistory, slot: int, limit: int
) -> tuple[dict[str, Key], dict[Key, tuple[int, int]]]:
    """The rule for one user after the other."""
    if classes.is_silent(slot):
        return {}, {}
    held = {user: row.key for user, rows in histories.items() if (row := find_current(rows)) is not None}
    in_force = {user: find_in_force(histories[user], slot) for user in held}
    live = set(classes.live(slot)).union(*in_force.values())
    live.add(find_corner(live))
    found = {user: find_counting_class([*keys, *classes.doubted(slot)], live) for user, keys in in_force.items()}
    all_sizes = Counter(found.values())
    own = Counter(key for user, key in found.items() if key == held[user])
    unregistered = classes.unregistered_class(slot)
    if unregistered is not None:
        all_sizes[unregistered] += limit
        own[unregistered] += limit * (unregistered == classes.version_at(slot).unregistered)
    return found, {key: (size, own[key]) for key, size in all_sizes.items() if size}


keys = st.tuples(st.integers(1, 6), st.integers(2, 9))
wishes = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from("abcde"), st.sampled_from(["set", "set", "remove", "erase"]), keys),
    max_size=15,
)


@given(
    wishes,
    st.lists(keys, min_size=1, max_size=4, unique=True),
    st.lists(keys, min_size=1, max_size=3, unique=True),
    st.lists(keys, max_size=2).map(tuple),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_all_at_once_is_one_by_one(
    drawn: list[tuple[int, str, str, Key]],
    declared: list[Key],
    later: list[Key],
    doubted: tuple[Key, ...],
    before: int,
    limit: int,
) -> None:
    """Any changes, under two versions and after a restore: the roster of every slot is the naive one."""
    versions = (1, Chosen(tuple(declared), before)), (5, Chosen(tuple(later), limit))
    classes = history(*versions, restores=(Restore(9, 0, doubted), Restore(3, 16, ())))
    histories: dict[str, list[Membership]] = {}
    for slot, user, action, key in sorted(drawn, key=lambda wish: wish[0]):
        change = Change("set", user, key) if action == "set" else Change(action, user)  # type: ignore[arg-type]
        histories[user] = Boundary(classes, slot, SALT).apply(histories.get(user, ()), change)
    rows = [row for user_rows in histories.values() for row in user_rows]
    current, ended = ([row for row in rows if (row.last is None) == now] for now in (True, False))
    rosters = Rosters(
        MemberColumns(StringColumn.from_texts([row.user for row in current]), KeyColumn.of(row.key for row in current)),
        tails(*((row.user, row.key, row.last or 0) for row in ended)),
        classes=classes,
        limit=limit,
    )
    for slot in range(13, 30):
        roster = rosters.at(slot)
        found, expected = count_each(dict(histories), classes, slot, limit)
        assert counted(roster) == found
        assert sizes(roster.population) == expected
        assert {held.key for held in roster.population.classes} >= classes.live(slot)
        after = rosters.next_change(slot)
        assert after is None or after > slot
        if after is None or after > slot + 1:
            following = rosters.at(slot + 1)
            assert counted(following) == found
            assert following.population == roster.population
            assert following.unknown_limit == roster.unknown_limit
