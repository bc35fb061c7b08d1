"""Live classes over versions and restores, and the class that a user is counted in (spec 15.1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.people.classes import (
    ClassHistory,
    Key,
    Restore,
    VersionClasses,
    find_corner,
    find_counting_class,
    find_unregistered_class,
    is_at_least_as_strict,
    to_requirements,
)

A, B, C = (40, 10**9), (120, 6 * 10**8), (40, 5 * 10**8)


class Chosen(NamedTuple):
    """Settings of a version."""

    declared: tuple[Key, ...]
    unknown_users: int = 0
    neighbours: str = "add_remove"


def history(*versions: tuple[int, Chosen], restores: tuple[Restore, ...] = ()) -> ClassHistory:
    built = (
        VersionClasses(first, frozenset(chosen.declared), find_unregistered_class(*chosen))
        for first, chosen in versions
    )
    return ClassHistory(built, restores)


def changes(classes: ClassHistory, last: int) -> list[int]:
    """The slots through `last` that `next_change` names, one after the other, from the last version on."""
    found, slot = [], classes.versions[-1].first
    while (after := classes.next_change(slot)) is not None and after <= last:
        found.append(after)
        slot = after
    return found


class TestCountingClass:
    """The loosest class that is at least as strict as every requirement in force."""

    @pytest.mark.parametrize(
        ("in_force", "live", "counted"),
        [
            ([A], [A, B, C], A),
            ([A, C], [A, B, C], C),
            ([A, B], [A, B, C], B),
            ([B, C], [A, B, C, (120, 5 * 10**8)], (120, 5 * 10**8)),
            ([(2, 90)], [(3, 60), (4, 80)], (4, 80)),  # 60/3 = 80/4: the larger epsilon
            ([(2, 90)], [(3, 60), (4, 79)], (3, 60)),
            ([(2, 0)], [(5, 0), (9, 0)], (5, 0)),  # then the smaller window
        ],
    )
    def test_the_loosest_one_is_chosen(self, in_force: list[Key], live: list[Key], counted: Key) -> None:
        assert find_counting_class(in_force, live) == counted
        assert find_counting_class(reversed(in_force), reversed(live)) == counted

    def test_ratios_are_compared_in_integers(self) -> None:
        """As floats both are 1/3 of 10^18, and the larger epsilon would win."""
        tighter, looser = (6 * 10**9, 2 * 10**18 - 1), (3 * 10**9, 10**18)
        assert tighter[1] / tighter[0] == looser[1] / looser[0]
        assert find_counting_class([(1, 3 * 10**18)], [tighter, looser]) == looser

    @given(st.data())
    def test_it_is_what_exact_fractions_give(self, data: st.DataObject) -> None:
        keys = st.tuples(st.integers(1, 9), st.integers(0, 20))
        live = set(data.draw(st.lists(keys, min_size=1, max_size=8)))
        live.add(find_corner(live))
        in_force = data.draw(st.lists(st.sampled_from(sorted(live)), min_size=1, max_size=4))
        fitting = [key for key in live if all(is_at_least_as_strict(key, held) for held in in_force)]
        best = max(fitting, key=lambda key: (Fraction(key[1], key[0]), key[1], -key[0]))
        assert find_counting_class(in_force, live) == best


def test_strictness_compares_both_numbers() -> None:
    assert is_at_least_as_strict(A, A)
    assert is_at_least_as_strict(C, A)
    assert is_at_least_as_strict(B, A)
    assert not is_at_least_as_strict(A, B)
    assert not is_at_least_as_strict(B, C)
    assert not is_at_least_as_strict(C, B)


def test_unregistered_users_have_the_corner_with_half_of_its_epsilon_or_all_of_it() -> None:
    assert find_unregistered_class(*Chosen((A, B, C))) is None
    assert find_unregistered_class(*Chosen((A, B, C), 5)) == (120, 25 * 10**7)
    assert find_unregistered_class(*Chosen((A, B, C), 5, "replace")) == (120, 5 * 10**8)
    assert find_unregistered_class(*Chosen(((10, 21),), 5)) == (10, 10)


class TestLiveClasses:
    """Classes that a slot offers to and charges."""

    def test_they_are_the_declared_ones_and_the_corner(self) -> None:
        assert history((1, Chosen((A,)))).live(1) == {A}
        assert history((1, Chosen((A, B)))).live(7) == {A, B}
        assert history((1, Chosen((B, C)))).live(7) == {B, C, (120, 5 * 10**8)}
        assert history((1, Chosen((B, C), 3))).live(7) == {B, C, (120, 25 * 10**7)}
        assert history((1, Chosen((B, C), 3))).max_window == 120

    def test_a_dropped_class_is_retained_for_its_window(self) -> None:
        """Users are moved at the boundary after the first slot of a version, so it may be held through that slot."""
        classes = history((1, Chosen((A, B))), (101, Chosen((A, C))))
        assert classes.live(100) == {A, B}
        corner = (120, 5 * 10**8)
        assert classes.live(101) == classes.live(101 + 120 - 1) == {A, B, C, corner}
        assert classes.live(101 + 120) == {A, C}
        assert classes.max_window == 120
        assert changes(classes, 999) == [221]

    def test_a_dropped_class_that_is_declared_again_is_retained_from_the_last_drop_on(self) -> None:
        classes = history((1, Chosen((A, C))), (10, Chosen((A,))), (20, Chosen((A, C))), (30, Chosen((A,))))
        assert [C in classes.live(slot) for slot in (9, 10, 20, 29, 30, 69, 70)] == [True] * 6 + [False]

    def test_every_dropped_class_has_a_window_of_its_own(self) -> None:
        one, two, three = (2, 9), (5, 8), (3, 5)
        classes = history((1, Chosen((one, two))), (11, Chosen((two,))), (12, Chosen((three,))))
        assert classes.live(10) == {one, two}
        assert classes.live(11) == {one, two}
        assert classes.live(12) == {one, two, three, (5, 5)}
        assert classes.live(13) == classes.live(16) == {two, three, (5, 5)}
        assert classes.live(17) == {three}
        assert changes(classes, 99) == [13, 17]

    def test_the_class_of_unregistered_users_is_retained_too(self) -> None:
        with_users, without = Chosen((A, C), 5), Chosen((A, C))
        classes = history((1, with_users), (50, without))
        unregistered = (40, 25 * 10**7)
        assert classes.live(49) == classes.live(89) == {A, C, unregistered}
        assert classes.live(90) == {A, C}

    def test_an_order_of_classes_is_kept_for_the_ledger(self) -> None:
        assert [one.key for one in to_requirements({B, A, C})] == [C, A, B]


class TestUnregisteredUsers:
    """The class in which users are counted whom the registry does not know."""

    U, V = (40, 25 * 10**7), (120, 3 * 10**8)

    def test_it_is_that_of_the_version(self) -> None:
        assert history((1, Chosen((A, C)))).unregistered_class(5) is None
        assert history((1, Chosen((A, C), 5))).unregistered_class(1) == self.U

    def test_after_a_version_that_changes_it_both_are_in_force(self) -> None:
        classes = history((1, Chosen((A, C), 5)), (101, Chosen((A, B), 5)))
        corner = (120, self.U[1])
        assert classes.unregistered_class(100) == self.U
        assert classes.live(101) >= {self.U, self.V, corner}
        assert classes.unregistered_class(101) == classes.unregistered_class(100 + 40 - 1) == corner
        assert classes.unregistered_class(100 + 40) == self.V
        assert changes(classes, 999) == [140, 141]

    def test_a_version_without_them_does_not_end_what_is_in_force(self) -> None:
        classes = history((1, Chosen((A, C), 5)), (101, Chosen((A, C))), (110, Chosen((A, B), 5)))
        assert classes.unregistered_class(105) is None
        assert classes.unregistered_class(110) == (120, self.U[1])
        assert classes.unregistered_class(140) == self.V

    def test_an_id_that_was_unknown_may_have_been_counted(self) -> None:
        classes = history((1, Chosen((A, C), 5)), (50, Chosen((A, B))), (60, Chosen((A, B), 5)))
        assert classes.unregistered_before(1) == []
        assert classes.unregistered_before(2) == [(self.U, 1)]
        assert classes.unregistered_before(50) == [(self.U, 49)]
        assert classes.unregistered_before(60) == [(self.U, 49)]
        assert classes.unregistered_before(70) == [(self.U, 49), (self.V, 69)]
        assert classes.unregistered_before(49 + 40) == [(self.V, 88)]

    def test_the_same_class_in_several_versions_is_one(self) -> None:
        same = Chosen((A, C), 5)
        classes = history((1, same), (10, Chosen((A, C))), (20, same))
        assert classes.unregistered_before(15) == [(self.U, 9)]
        assert classes.unregistered_before(25) == [(self.U, 24)]

    def test_a_version_without_a_slot_counted_nobody(self) -> None:
        classes = history((1, Chosen((A, C), 5)), (10, Chosen((A, B), 5)), (10, Chosen((C,), 5)))
        assert classes.unregistered_before(10) == [(self.U, 9)]


class TestRestores:
    """Slots that another copy released."""

    DOUBT = Restore(100, 0, (A, B))

    def test_what_is_doubted_is_in_force_for_its_window(self) -> None:
        classes = history((1, Chosen((A, B, C))), restores=(self.DOUBT,))
        assert classes.doubted(101) == classes.doubted(139) == {A, B}
        assert classes.doubted(140) == classes.doubted(219) == {B}
        assert classes.doubted(220) == frozenset()
        assert not classes.is_silent(101)
        assert changes(classes, 999) == [140, 220]

    def test_what_is_doubted_is_live_also_if_no_version_declares_it(self) -> None:
        """Otherwise no live class would be at least as strict as it."""
        classes = history((1, Chosen((A,))), restores=(Restore(100, 0, (B,)),))
        assert classes.live(219) == {A, B}
        assert find_counting_class([A, *classes.doubted(219)], classes.live(219)) == B
        assert classes.live(220) == {A}

    def test_doubts_of_several_restores_add_up(self) -> None:
        classes = history((1, Chosen((A, B, C))), restores=(Restore(90, 0, (A,)), Restore(100, 0, (C,))))
        assert classes.doubted(101) == {A, C}
        assert classes.doubted(130) == {C}

    def test_unregistered_users_are_not_counted_in_doubt(self) -> None:
        classes = history((1, Chosen((A, B), 5)), restores=(Restore(100, 0, (A,)),))
        assert classes.unregistered_class(219) is None  # the widest live window, not that of what is doubted
        assert classes.unregistered_class(220) == (120, 3 * 10**8)
        assert 220 in changes(classes, 999)

    def test_a_restore_without_doubts_leaves_them_alone(self) -> None:
        classes = history((1, Chosen((A, B), 5)), restores=(Restore(100, 0, ()),))
        assert classes.unregistered_class(101) is not None
        assert classes.next_change(101) is None

    def test_nobody_is_counted_while_a_version_may_be_lost(self) -> None:
        classes = history((1, Chosen((A,), 5)), restores=(Restore(100, 300, (A,)),))
        assert classes.is_silent(300)
        assert not classes.is_silent(301)
        assert classes.unregistered_class(300) is None
        assert classes.unregistered_class(301) == (40, 5 * 10**8)
        assert 301 in changes(classes, 999)


def test_rows_are_kept_for_their_window_and_for_the_widest_where_unregistered_users_are_counted() -> None:
    plain = history((1, Chosen((A, B))))
    assert plain.kept_through(40, 10) == 49
    assert plain.kept_through(120, 10) == 129
    for counting in (
        history((1, Chosen((A, B), 5))),
        history((1, Chosen((A,))), (9, Chosen((A, B), 5))),
        history((1, Chosen((A, B), 5)), (9, Chosen((A,)))),
    ):
        assert counting.kept_through(40, 10) == counting.kept_through(120, 10) == 129


keys = st.tuples(st.integers(1, 6), st.integers(2, 9))
versions = st.lists(
    st.tuples(st.integers(1, 12), st.lists(keys, min_size=1, max_size=3, unique=True), st.integers(0, 1)),
    min_size=1,
    max_size=4,
)
restores = st.lists(
    st.builds(Restore, st.integers(1, 30), st.sampled_from([0, 20, 35]), st.lists(keys, max_size=2).map(tuple)),
    max_size=2,
)


@given(versions, restores)
def test_nothing_changes_before_the_next_change(drawn: Any, found: list[Restore]) -> None:
    """Within a version; a new version begins with a roster of its own. And the corner is live in every slot."""
    first, made = 1, []
    for span, declared, unknown in drawn:
        made.append((first, Chosen(tuple(declared), unknown)))
        first += span
    classes = history(*made, restores=tuple(found))

    def state(slot: int) -> Any:
        kept = classes.live(slot), classes.doubted(slot), classes.is_silent(slot)
        return (*kept, classes.unregistered_class(slot))

    last = made[-1][0]
    for slot in range(last, last + 60):
        assert find_corner(classes.live(slot)) in classes.live(slot)
        assert classes.live(slot) >= classes.version_at(slot).classes
        after = classes.next_change(slot)
        assert after is None or after > slot
        if after is None or after > slot + 1:
            assert state(slot) == state(slot + 1)
